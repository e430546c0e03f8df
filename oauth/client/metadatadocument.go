package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"stonetown/engine"
	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/oauth/protocol"
)

// DocumentMode decides which client ids may be URLs of client ID metadata documents
// (draft-ietf-oauth-client-id-metadata-document).
type DocumentMode string

// The modes of documents.
const (
	DocumentsOff   DocumentMode = "off"
	DocumentsHosts DocumentMode = "hosts" // of the hosts in [Settings.ClientIDDocumentHosts]
	DocumentsOpen  DocumentMode = "open"  // of every host
)

// DocumentModes are all modes.
var DocumentModes = []string{string(DocumentsOff), string(DocumentsHosts), string(DocumentsOpen)}

const (
	maxDocument       = 16 << 10 // bytes
	maxDocumentHosts  = 50
	leastDocumentAge  = 5 * time.Minute
	usualDocumentAge  = time.Hour
	mostDocumentAge   = 24 * time.Hour
	documentCacheSize = 4096
	maxWaiting        = 64          // requests that wait for documents at a time
	retryAfter        = time.Minute // the pause after a failed fetch
)

// IsDocument reports whether a client id is the URL of a document.
func IsDocument(clientID string) bool {
	return strings.HasPrefix(clientID, "https://") || strings.HasPrefix(clientID, "http://")
}

// HostOfDocument returns the host of a client id that is the URL of a document; else empty.
func (a Application) HostOfDocument() string {
	if a.Source != FromDocument {
		return ""
	}
	u, err := url.Parse(a.ClientID)
	if err != nil {
		return ""
	}
	return u.Host
}

// ValidateDocumentHosts requires hosts, with a port unless it is that of https, in lower case.
func ValidateDocumentHosts(list []string) error {
	if len(list) > maxDocumentHosts {
		return fmt.Errorf("%d hosts, at most %d are allowed", len(list), maxDocumentHosts)
	}
	for _, host := range list {
		u, err := url.Parse("https://" + host + "/")
		if err != nil || host == "" || u.Host != host || u.Hostname() == "" || u.Path != "/" || host != strings.ToLower(host) || strings.ContainsAny(host, "*@ ") || !visible(host) {
			return fmt.Errorf("%q is not a host in lower case, without wildcards", host)
		}
	}
	return nil
}

// DocumentError is the refusal of a client id that is a URL.
type DocumentError struct{ Reason string }

func (e *DocumentError) Error() string { return "the client_id is refused: " + e.Reason }

// documents are the documents that this process has fetched or failed to fetch.
type documents struct {
	cache   *lru.Cache[[2]string, fetchedDocument] // by tenant and client id
	flight  singleflight.Group
	waiting chan struct{}
}

// fetchedDocument is the result of a fetch.
type fetchedDocument struct {
	refused *DocumentError // nil: the application is as the document describes it
	until   time.Time
}

func newDocuments() *documents {
	cache, err := lru.New[[2]string, fetchedDocument](documentCacheSize)
	if err != nil {
		panic(err) // the size is positive
	}
	return &documents{cache: cache, waiting: make(chan struct{}, maxWaiting)}
}

// AdmitDocument makes the application of a client id that is a URL, if the tenant permits it, or
// changes it to what its document says now. Other client ids are left alone. A document is fetched
// again when its response permits, after five minutes at the earliest and a day at the latest; a
// failure is remembered for a minute. It fails with [*DocumentError], and with [*protocol.Error]
// if the tenant admits no more clients.
func (s *Registry) AdmitDocument(ctx context.Context, tenant protocol.Tenant, clientID string) error {
	if !IsDocument(clientID) {
		return nil
	}
	settings, err := SelectSettings(ctx, s.db, tenant.ID)
	if err != nil {
		return err
	}
	u, err := s.checkDocumentURL(clientID, settings)
	if err != nil {
		return err
	}
	known, err := Select(ctx, s.db, tenant.ID, clientID)
	if err != nil && !IsNotFound(err) {
		return err
	}
	key := [2]string{tenant.ID, clientID}
	if seen, ok := s.documents.cache.Get(key); ok && s.clock().Before(seen.until) && (seen.refused != nil || known.ClientID != "") {
		return seen.err()
	}
	select {
	case s.documents.waiting <- struct{}{}:
		defer func() { <-s.documents.waiting }()
	default: // a slow publisher must not occupy the whole server
		return &DocumentError{"too many documents are being fetched; try again"}
	}
	// Other requests may wait for the same document, so the fetch does not end with this one.
	done := s.documents.flight.DoChan(tenant.ID+"\x00"+clientID, func() (any, error) {
		return nil, s.readDocument(context.WithoutCancel(ctx), tenant, u, key)
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// err returns the refusal as an error.
func (d fetchedDocument) err() error {
	if d.refused != nil {
		return d.refused
	}
	return nil
}

// checkDocumentURL refuses URLs that the tenant does not permit, or that the draft forbids (§3).
// With insecure targets, http and a loopback host are permitted: for development.
func (s *Registry) checkDocumentURL(clientID string, settings Settings) (*url.URL, error) {
	u, err := url.Parse(clientID)
	switch {
	case settings.ClientIDDocuments == DocumentsOff:
		return nil, &DocumentError{"the tenant accepts no URLs"}
	case err != nil || len(clientID) > engine.MaxID || !visible(clientID):
		return nil, &DocumentError{fmt.Sprintf("it must be a URL of at most %d characters", engine.MaxID)}
	case s.allowed.fetch.CheckURL(clientID) != nil || u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, &DocumentError{"it must be an https URL on the public Internet, without user information and fragment"}
	case u.Host != strings.ToLower(u.Host) || u.RawQuery != "" || u.ForceQuery || len(u.EscapedPath()) < 2 || dotSegments(u.EscapedPath()):
		return nil, &DocumentError{"it must have a host in lower case and a path, without a query and dot segments"}
	case settings.ClientIDDocuments == DocumentsHosts && !slices.Contains(settings.ClientIDDocumentHosts, u.Host):
		return nil, &DocumentError{"the tenant does not accept documents of this host"}
	}
	return u, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// dotSegments reports whether a path has a segment . or .., also encoded.
func dotSegments(path string) bool {
	return slices.ContainsFunc(strings.Split(strings.ReplaceAll(strings.ToLower(path), "%2e", "."), "/"), func(s string) bool { return s == "." || s == ".." })
}

// readDocument fetches a document and stores what it says.
func (s *Registry) readDocument(ctx context.Context, tenant protocol.Tenant, u *url.URL, key [2]string) error {
	said, good, err := s.fetchDocument(ctx, u)
	if err == nil {
		err = s.storeDocument(ctx, tenant, u.String(), said)
	}
	if refused, ok := errors.AsType[*protocol.Error](refusedMetadata(err)); ok && refused.Code != protocol.InvalidRequest {
		err = &DocumentError{"its document is not valid: " + refused.Description}
	}
	refused, ok := errors.AsType[*DocumentError](err)
	switch {
	case err == nil:
		s.documents.cache.Add(key, fetchedDocument{until: s.clock().Add(good)})
	case ok:
		s.documents.cache.Add(key, fetchedDocument{refused, s.clock().Add(retryAfter)})
	}
	return err
}

// clientDocument has the members of a document that are used.
type clientDocument struct {
	ClientID     string          `json:"client_id"`
	ClientSecret json.RawMessage `json:"client_secret"`

	RedirectURIs    []string   `json:"redirect_uris"`
	AuthMethod      AuthMethod `json:"token_endpoint_auth_method"`
	AuthAlg         string     `json:"token_endpoint_auth_signing_alg"`
	GrantTypes      []string   `json:"grant_types"`
	ApplicationType string     `json:"application_type"`
	Scope           string     `json:"scope"`

	ClientName string `json:"client_name"`
	ClientURI  string `json:"client_uri"`
	LogoURI    string `json:"logo_uri"`
	TOSURI     string `json:"tos_uri"`
	PolicyURI  string `json:"policy_uri"`

	JWKS    json.RawMessage `json:"jwks"`
	JWKSURI string          `json:"jwks_uri"`

	RequirePAR bool `json:"require_pushed_authorization_requests"`
	DPoPBound  bool `json:"dpop_bound_access_tokens"`
}

// fetchDocument fetches the document at a URL. good is how long it need not be fetched again. It
// fails with [*DocumentError].
func (s *Registry) fetchDocument(ctx context.Context, u *url.URL) (m Metadata, good time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return m, 0, &DocumentError{"it is not a URL"}
	}
	req.Header.Set("Accept", "application/json")
	a, err := s.allowed.fetch.Do(req, maxDocument)
	if failed, ok := errors.AsType[*outbound.Error](err); ok {
		return m, 0, &DocumentError{"its document cannot be fetched: " + failed.Error()}
	} else if err != nil {
		return m, 0, err
	}
	media, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return m, 0, &DocumentError{"its document is not JSON (Content-Type)"}
	}
	m, err = parseDocument(u.String(), a.Body)
	return m, documentAge(a.Header), err
}

// parseDocument reads a document, which must be about the client id. It fails with
// [*DocumentError].
func parseDocument(clientID string, text []byte) (m Metadata, err error) {
	var d clientDocument
	switch err := jsonv2.Unmarshal(text, &d); {
	case err != nil:
		return m, &DocumentError{"its document is not a JSON object of client metadata"}
	case d.ClientID != clientID:
		return m, &DocumentError{"its document has another client_id"}
	case d.ClientSecret != nil:
		return m, &DocumentError{"its document has a client_secret"}
	case d.AuthMethod == "":
		d.AuthMethod = NoClientAuth
	case d.AuthMethod != NoClientAuth && d.AuthMethod != PrivateKeyJWT:
		return m, &DocumentError{"its token_endpoint_auth_method must be none or private_key_jwt"}
	}
	m = Metadata{
		RedirectURIs: d.RedirectURIs, AuthMethod: d.AuthMethod, AuthAlg: d.AuthAlg, ApplicationType: d.ApplicationType, Scope: d.Scope,
		ClientName: d.ClientName, ClientURI: d.ClientURI, LogoURI: d.LogoURI, TOSURI: d.TOSURI, PolicyURI: d.PolicyURI,
		JWKS: d.JWKS, JWKSURI: d.JWKSURI, RequirePAR: d.RequirePAR, DPoPBound: d.DPoPBound,
	}
	m = m.withDefaults(Server)
	// A document is for all authorization servers, so it may name grants that this one lacks.
	m.GrantTypes = []string{protocol.GrantAuthorizationCode}
	if slices.Contains(d.GrantTypes, protocol.GrantRefreshToken) {
		m.GrantTypes = append(m.GrantTypes, protocol.GrantRefreshToken)
	}
	return m, nil
}

// documentAge returns how long a response can be used, from its Cache-Control (RFC 9111 §5.2.2).
func documentAge(h http.Header) time.Duration {
	age := usualDocumentAge
	for directive := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32); {
		case name == "no-store" || name == "no-cache":
			return leastDocumentAge
		case name == "max-age" && err == nil:
			age = time.Duration(seconds) * time.Second
		}
	}
	return min(max(age, leastDocumentAge), mostDocumentAge)
}

// storeDocument creates or changes the application that a document describes.
func (s *Registry) storeDocument(ctx context.Context, tenant protocol.Tenant, clientID string, m Metadata) error {
	describe, err := s.described(ctx, tenant, m)
	if err != nil {
		return err
	}
	known, err := Select(ctx, s.db, tenant.ID, clientID)
	switch {
	case IsNotFound(err):
		return s.createDocument(ctx, tenant, clientID, m, describe)
	case err != nil:
		return err
	case m.applicationType() != known.Type: // which decides about its grants and its authentication
		return &DocumentError{"its token_endpoint_auth_method or application_type has changed"}
	}
	after := known
	if describe(&after); reflect.DeepEqual(known, after) {
		return nil
	}
	_, err = s.Update(ctx, tenant.ID, known.ID, clientID, describe)
	return err
}

func (s *Registry) createDocument(ctx context.Context, tenant protocol.Tenant, clientID string, m Metadata, describe func(*Application)) error {
	err := s.db.QueryRow(ctx, `SELECT 1 FROM retired_clients WHERE tenant_id = $1 AND client_id = $2`, tenant.ID, clientID).Scan(new(int64))
	switch {
	case err == nil:
		return &DocumentError{"an administrator has deleted it"}
	case !errors.Is(err, sqldb.ErrNoRows):
		return err
	}
	a := *m.applicationType().Defaults()
	a.ClientID, a.Source = clientID, FromDocument
	a.AllowedScopes, a.FirstParty, a.GroupScopes = nil, false, AllowedGroupScopes
	a.Registration = new(Registration)
	describe(&a)
	_, _, err = s.Create(ctx, tenant.ID, a)
	if sqldb.IsUniqueViolation(err) { // another process was first
		return nil
	}
	return err
}
