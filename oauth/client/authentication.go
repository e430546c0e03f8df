package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/jwks"
	"stonetown/internal/jwks/published"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/assertion"
	"stonetown/oauth/mtls"
	"stonetown/oauth/protocol"
)

// AuthMethod is a method of client authentication, by its registered name (RFC 7591 §2).
type AuthMethod string

// The methods of client authentication.
const (
	ClientSecretBasic AuthMethod = "client_secret_basic"
	ClientSecretPost  AuthMethod = "client_secret_post"
	PrivateKeyJWT     AuthMethod = "private_key_jwt" // RFC 7523
	TLSClientAuth     AuthMethod = "tls_client_auth" // RFC 8705 §2.1
	SelfSignedTLS     AuthMethod = "self_signed_tls_client_auth"
	NoClientAuth      AuthMethod = "none"
)

// Authenticator authenticates clients at the endpoints for clients, and admits their
// requests. It is safe for concurrent use.
type Authenticator struct {
	db    *sqldb.DB
	seal  *seal.Key // of DPoP nonces
	clock func() time.Time
	log   *slog.Logger
	fetch *outbound.Client
	keys  *published.Keys
}

// NewAuthenticator returns an authenticator of the applications in a database. Keys that
// applications publish are fetched with fetch. Refused clients are logged, as is a set of keys
// that cannot be fetched. DPoP nonces are derived from sealer.
func NewAuthenticator(db *sqldb.DB, sealer *seal.Key, fetch *outbound.Client, log *slog.Logger, clock func() time.Time) *Authenticator {
	s := &Authenticator{db: db, seal: sealer, clock: clock, log: log, fetch: fetch}
	s.keys = published.New(s.fetchKeys, clock, log)
	return s
}

// Credentials are what a client presents to authenticate.
type Credentials struct {
	// ClientID and ClientSecret, by any method; empty if there are none.
	ClientID     string
	ClientSecret string

	// Assertion is the JWT of the method private_key_jwt.
	Assertion string

	// Certificate is that of the TLS connection (RFC 8705); nil: there is none.
	Certificate *mtls.Certificate

	// ClientAuthMethods are the methods in the body and the header that the request uses: none or
	// one; more are refused (RFC 6749 §2.3).
	ClientAuthMethods []AuthMethod

	// Proofs are the proofs of possession of a key (RFC 9449): the values of [dpop.Header].
	Proofs []string

	// OfferNonce gets the nonce for the next proof, if the application has to use one (RFC 9449
	// §8). Default: none is offered.
	OfferNonce func(nonce string)

	// With queues reads that are sent with that of the client. Default: there are none.
	With func(*sqldb.Batch)

	// Limit counts the request against a limit of the user or client that key names. It is
	// called after authentication and before anything is consumed; its error ends the request.
	// Default: there is no limit.
	Limit func(ctx context.Context, key string) error

	once *onceOnly // what the request presents, see Admit
}

// Authenticate returns the application of a request (RFC 6749 §2.3). A client learns that it
// is disabled only after it has authenticated. An assertion is consumed when the request is
// admitted. Refused clients are logged.
func (s *Authenticator) Authenticate(ctx context.Context, tenant protocol.Tenant, c *Credentials) (Application, error) {
	c.Start()
	if len(c.ClientAuthMethods) > 1 {
		return Application{}, protocol.NewError(protocol.InvalidRequest, "the request authenticates the client in more than one way")
	}
	// An unknown client gets the same response, after the same work, as a wrong secret or a
	// method of authentication that is not the application's.
	if c.ClientID == "" {
		return Application{}, s.refused(ctx, tenant, c, unproved{reason: "no client_id"})
	}
	var b sqldb.Batch
	read := QueueSelect(&b, tenant.ID, c.ClientID)
	settings := func() (Settings, error) { return Settings{}, nil } // only assertions need them
	if c.Assertion != "" {
		settings = QueueSettings(&b, tenant.ID)
	}
	if c.With != nil {
		c.With(&b)
	}
	if err := s.db.Send(ctx, &b); err != nil {
		return Application{}, fmt.Errorf("read application: %w", err)
	}
	app, err := read()
	unknown := errors.Is(err, ErrNotFound)
	if err != nil && !unknown {
		return Application{}, err
	}
	tenantSettings, err := settings()
	if err != nil {
		return Application{}, err
	}
	secret := app.secrets.match(c.ClientSecret, s.clock())
	var why unproved
	switch {
	case unknown:
		why.reason = "unknown client"
	case app.Type == SAML:
		why.reason = "the application uses SAML"
	case app.AuthMethod.usesTLS():
		why, err = s.certified(ctx, app, c)
	case app.AuthMethod == PrivateKeyJWT:
		why, err = s.asserted(ctx, tenant, app, c, time.Duration(tenantSettings.ClientAssertionMaxS)*time.Second)
	case !app.Type.Confidential(): // it has no credentials
		if c.ClientSecret != "" || c.Assertion != "" {
			why.reason = "the application has no credentials"
		}
	case c.Assertion != "":
		why.reason = "the application has a secret, and not private_key_jwt"
	case c.ClientSecret == "":
		why.reason = "no secret"
	case !secret:
		why.reason = "the secret is wrong or has expired"
	}
	switch {
	case err != nil:
		return Application{}, err
	case why.reason != "":
		return Application{}, s.refused(ctx, tenant, c, why)
	case app.State != Enabled:
		return Application{}, protocol.NewError(protocol.UnauthorizedClient, "the application is disabled")
	}
	return app, nil
}

// unproved is why a client is not authenticated; zero: it is.
type unproved struct {
	reason string
	told   bool // to the client, which has proved its key
}

// maxLogged bounds the client_id in the log, in bytes.
const maxLogged = 64

// refused logs a refusal and returns the response: the reason, if the client has signed, and
// otherwise the same for all.
func (s *Authenticator) refused(ctx context.Context, tenant protocol.Tenant, c *Credentials, why unproved) *protocol.Error {
	clientID := c.ClientID
	if !strings.HasPrefix(clientID, id.Client+"_") || len(clientID) > maxLogged {
		clientID = "" // it may be a secret in the wrong place
	}
	origin := eventlog.OriginOf(ctx)
	s.log.InfoContext(ctx, "client authentication refused", "request_id", origin.RequestID, "tenant", tenant.ID, "client_ip", origin.ClientIP,
		"client_id", clientID, "methods", c.ClientAuthMethods, "reason", why.reason)
	if why.told {
		return protocol.NewError(protocol.InvalidClient, "the client assertion is refused: "+why.reason)
	}
	return protocol.NewError(protocol.InvalidClient, "unknown client, or wrong secret or assertion")
}

// asserted verifies that the assertion is the application's (RFC 7523 §3), and valid for at most
// a time. Only a valid assertion is consumed, so that no other client can consume it.
func (s *Authenticator) asserted(ctx context.Context, tenant protocol.Tenant, app Application, c *Credentials, longest time.Duration) (unproved, error) {
	switch {
	case c.ClientSecret != "":
		return unproved{reason: "the application has private_key_jwt, and not a secret"}, nil
	case c.Assertion == "":
		return unproved{reason: "no client assertion"}, nil
	}
	// The names of the server at all endpoints. RFC 9126 §2 requires the last one.
	names := []string{tenant.BaseURL, tenant.BaseURL + protocol.TokenPath, tenant.BaseURL + protocol.PushPath}
	now := s.clock()
	var a assertion.Assertion
	err := s.Signed(ctx, app, func(keys jwks.Set) (err error) {
		a, err = assertion.Verify(c.Assertion, app.ClientID, keys, names, longest, now)
		return err
	})
	if refusal, ok := errors.AsType[*assertion.Refusal](err); ok {
		return unproved{refusal.Reason, refusal.Signed}, nil
	} else if err != nil {
		return unproved{}, err
	}
	if app.AuthAlg != "" && a.Alg != app.AuthAlg {
		return unproved{"its alg is not the token_endpoint_auth_signing_alg of the client", true}, nil
	}
	switch {
	case app.Profile != FAPI2:
	case !slices.Contains(fapi2Algs, a.Alg):
		return unproved{"FAPI 2.0 does not permit its alg", true}, nil
	case a.Audience != tenant.BaseURL: // FAPI 2.0 Security Profile §5.3.2.1
		return unproved{"with FAPI 2.0, aud must be the issuer, as a string", true}, nil
	}
	usedBefore := unproved{"its jti was used before", true}
	used, err := s.UseAssertion(ctx, tenant, c, a.ClientID, a.ID, a.Expires, func(ctx context.Context) error { return s.refused(ctx, tenant, c, usedBefore) })
	if used {
		return usedBefore, err
	}
	return unproved{}, err
}

// UseAssertion reports whether a valid assertion was used before: one of a client or a trusted
// issuer, by their id, with a jti. Otherwise it is consumed when the request is admitted, which
// fails with refuse if another request was first. It is stored until it expires.
func (s *Authenticator) UseAssertion(ctx context.Context, tenant protocol.Tenant, c *Credentials, issuerID, tokenID string, expires time.Time, refuse func(context.Context) error) (used bool, err error) {
	hash := protocol.Hash(issuerID + "\x00" + tokenID)
	err = s.db.QueryRow(ctx, `SELECT 1 FROM client_assertions WHERE tenant_id = $1 AND hash = $2`, tenant.ID, hash).Scan(new(int64))
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, sqldb.ErrNoRows):
		return false, err
	}
	*c.once = append(*c.once, func(ctx context.Context) error {
		n, err := s.db.Exec(ctx, `INSERT INTO client_assertions (tenant_id, hash, expires_at) VALUES ($1, $2, $3) ON CONFLICT (tenant_id, hash) DO NOTHING`,
			tenant.ID, hash, expires.UnixMicro())
		if err != nil {
			return fmt.Errorf("note assertion: %w", err)
		}
		if n == 0 {
			return refuse(ctx)
		}
		return nil
	})
	return false, nil
}

// Signed calls verify with the keys by which an application signs and, if it returns
// [jwks.ErrUnknown] or [assertion.ErrUnknownKey], again with those that it publishes by now. It
// returns the last error of verify.
func (s *Authenticator) Signed(ctx context.Context, app Application, verify func(jwks.Set) error) error {
	if app.JWKSURI == "" {
		keys, err := ownKeys(app)
		if err != nil {
			return err
		}
		return verify(keys)
	}
	var last error
	err := s.keys.Use(ctx, published.Source{TenantID: app.TenantID, Owner: app.ClientID, URI: app.JWKSURI}, func(keys jwks.Set) error {
		if last = verify(keys); errors.Is(last, assertion.ErrUnknownKey) {
			return jwks.ErrUnknown
		}
		return last
	})
	if errors.Is(err, jwks.ErrUnknown) {
		return last
	}
	return err
}

// ownKeys returns the keys that are part of an application.
func ownKeys(app Application) (jwks.Set, error) {
	if app.JWKS == nil {
		return nil, nil
	}
	return assertion.ParseKeys(app.JWKS)
}

// fetchKeys fetches the keys that an application publishes.
func (s *Authenticator) fetchKeys(ctx context.Context, from published.Source) (jwks.Set, error) {
	text, err := s.fetch.Get(ctx, from.URI, published.MaxSet)
	if err != nil {
		return nil, err
	}
	return assertion.UsableKeys(text)
}

// AuthMethods returns the methods of clients with credentials. certificates states that the server
// gets the certificates of clients.
func AuthMethods(certificates bool) []AuthMethod {
	methods := []AuthMethod{ClientSecretBasic, ClientSecretPost, PrivateKeyJWT}
	if certificates {
		methods = append(methods, TLSClientAuth, SelfSignedTLS)
	}
	return methods
}
