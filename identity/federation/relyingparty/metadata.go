package relyingparty

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stonetown/internal/outbound"
)

// Metadata is the metadata of a provider (OpenID Connect Discovery §3, RFC 8414 §2), as far as it
// is used. The names of the members are those of the document.
type Metadata struct {
	Issuer                string `json:"issuer"`
	AuthorizationEndpoint string `json:"authorization_endpoint"`
	TokenEndpoint         string `json:"token_endpoint"`
	JWKSURI               string `json:"jwks_uri"`
	UserinfoEndpoint      string `json:"userinfo_endpoint"`
	EndSessionEndpoint    string `json:"end_session_endpoint"`

	// Algorithms are those of ID tokens. If there are none, all of [Algorithms] are allowed,
	// each for keys of its type.
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	ResponseTypes []string `json:"response_types_supported"`
	Scopes        []string `json:"scopes_supported"`
	Claims        []string `json:"claims_supported"`
	ACRValues     []string `json:"acr_values_supported"`

	// IssParameter states that every answer of the authorization endpoint has iss (RFC 9207 §3).
	IssParameter bool `json:"authorization_response_iss_parameter_supported"`
	// BackchannelLogout states that the provider sends logout tokens, and
	// BackchannelLogoutSession that they have sid.
	BackchannelLogout        bool `json:"backchannel_logout_supported"`
	BackchannelLogoutSession bool `json:"backchannel_logout_session_supported"`
}

// location is the address of a metadata document, and the issuer that it must have.
type location struct {
	url, issuer string
	// filled states that the issuer must have the id of a directory in the place of [placeOfID].
	filled bool
}

// accepts reports whether the issuer of a document is that of the location.
func (l location) accepts(issuer string) bool {
	if l.filled {
		return directoryIn(issuer, l.issuer) != ""
	}
	return issuer == l.issuer
}

const wellKnown = "/.well-known/openid-configuration"

// MetadataURL returns the address of an issuer's metadata (Discovery §4.1).
func MetadataURL(issuer string) string { return strings.TrimSuffix(issuer, "/") + wellKnown }

// locate returns the location of an issuer's metadata.
func locate(issuer string) location { return location{url: MetadataURL(issuer), issuer: issuer} }

// Discover fetches the metadata of an issuer now. It fails with the class [Misconfigured] if the
// document is not valid: the issuer in it must be the same bytes, authorization_endpoint,
// token_endpoint and jwks_uri are required, and all endpoints must be URLs that package outbound
// accepts.
func (s *Service) Discover(ctx context.Context, issuer string) (Metadata, error) {
	return s.metadata.refresh(ctx, locate(issuer))
}

// Metadata returns the metadata of a provider: its own, that of the preset, or the cached document.
func (s *Service) Metadata(ctx context.Context, p Provider) (Metadata, error) {
	preset, err := s.preset(p)
	if err != nil {
		return Metadata{}, err
	}
	switch {
	case preset.Metadata != nil:
		return *preset.Metadata, nil
	case preset.Issuer != "":
		return s.metadata.get(ctx, preset.locate(p.Directory), time.Time{})
	case p.Metadata != nil:
		return *p.Metadata, s.CheckMetadata(*p.Metadata)
	}
	return s.metadata.get(ctx, locate(p.Issuer), time.Time{})
}

// CheckMetadata validates metadata that a tenant sets, or that was fetched. It sends no request.
func (s *Service) CheckMetadata(m Metadata) error {
	if m.Issuer == "" {
		return failed(Misconfigured, Discovery, "issuer is missing")
	}
	for _, endpoint := range []struct {
		name, url string
		required  bool
	}{
		{"authorization_endpoint", m.AuthorizationEndpoint, true},
		{"token_endpoint", m.TokenEndpoint, true},
		{"jwks_uri", m.JWKSURI, true},
		{"userinfo_endpoint", m.UserinfoEndpoint, false},
		{"end_session_endpoint", m.EndSessionEndpoint, false},
	} {
		if endpoint.url == "" && !endpoint.required {
			continue
		}
		if endpoint.url == "" {
			return failed(Misconfigured, Discovery, "%s is missing", endpoint.name)
		}
		if err := s.client.CheckURL(endpoint.url); err != nil {
			return failed(Misconfigured, Discovery, "%s: %s", endpoint.name, reasonOf(err))
		}
	}
	if len(m.ResponseTypes) > 0 && !slices.Contains(m.ResponseTypes, "code") {
		return failed(Misconfigured, Discovery, "response_types_supported does not contain code")
	}
	if len(m.algorithms()) == 0 {
		return failed(Misconfigured, Discovery, "id_token_signing_alg_values_supported has none of %q", Algorithms)
	}
	return nil
}

// reasonOf returns why package outbound refuses a URL, which does not quote it.
func reasonOf(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		return cause.Error()
	}
	return err.Error()
}

// CheckIssuer validates an issuer that a tenant sets (Discovery §3). It sends no request.
func (s *Service) CheckIssuer(issuer string) error {
	if err := s.client.CheckURL(issuer); err != nil {
		return failed(Misconfigured, Discovery, "issuer: %s", reasonOf(err))
	}
	if u, err := url.Parse(issuer); err != nil || u.RawQuery != "" || u.ForceQuery {
		return failed(Misconfigured, Discovery, "issuer: a query")
	}
	return nil
}

// algorithms returns the algorithms that ID tokens may have: never none or one of the HMAC family,
// whose key would be the client secret, or in an attack the public key.
func (m Metadata) algorithms() []string {
	if len(m.Algorithms) == 0 {
		return Algorithms
	}
	return slices.DeleteFunc(slices.Clone(Algorithms), func(alg string) bool { return !slices.Contains(m.Algorithms, alg) })
}

func (s *Service) fetchMetadata(ctx context.Context, from location) (m Metadata, err error) {
	// The braces of a template are not those of a URL, so the address is validated instead.
	if err := s.CheckIssuer(strings.TrimSuffix(from.url, wellKnown)); err != nil {
		return Metadata{}, err
	}
	text, err := s.fetch(ctx, from.url, Discovery)
	if err != nil {
		return Metadata{}, at(Discovery, err)
	}
	return s.parseMetadata(text, from)
}

// ParseMetadata parses and validates a metadata document of an issuer, as [Service.Discover]
// does.
func (s *Service) ParseMetadata(document []byte, issuer string) (Metadata, error) {
	return s.parseMetadata(document, locate(issuer))
}

func (s *Service) parseMetadata(document []byte, from location) (m Metadata, err error) {
	if json.Unmarshal(document, &m) != nil {
		return Metadata{}, failed(Misconfigured, Discovery, "the document is not the JSON of a provider's metadata")
	}
	if !from.accepts(m.Issuer) {
		return Metadata{}, failed(Misconfigured, Discovery, "issuer of the document is %s, not the configured issuer", quote(m.Issuer, nil))
	}
	if err := s.CheckMetadata(m); err != nil {
		return Metadata{}, err
	}
	return m, nil
}

// fetch returns a JSON document for a step.
func (s *Service) fetch(ctx context.Context, from string, step Step) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, &outbound.Error{Class: outbound.Invalid}
	}
	req.Header.Set("Accept", "application/json")
	a, err := s.do(req, step)
	return a.Body, err
}
