package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/oauth/assertion"
	"stonetown/oauth/protocol"
)

// AuthMethod is a method of client authentication, by its registered name (RFC 7591 §2).
type AuthMethod string

// The methods of client authentication.
const (
	ClientSecretBasic AuthMethod = "client_secret_basic"
	ClientSecretPost  AuthMethod = "client_secret_post"
	PrivateKeyJWT     AuthMethod = "private_key_jwt" // RFC 7523
	NoClientAuth      AuthMethod = "none"
)

// Authenticator authenticates clients at the endpoints for clients, and admits their
// requests. It is safe for concurrent use.
type Authenticator struct {
	db    *sqldb.DB
	clock func() time.Time
	keys  *publishedKeys
}

// NewAuthenticator returns an authenticator of the applications in a database. Keys that
// applications publish are fetched with fetch; a set that cannot be fetched is logged.
func NewAuthenticator(db *sqldb.DB, fetch *outbound.Client, log *slog.Logger, clock func() time.Time) *Authenticator {
	return &Authenticator{db: db, clock: clock, keys: newPublishedKeys(fetch, clock, log)}
}

// Credentials are what a client presents to authenticate.
type Credentials struct {
	// ClientID and ClientSecret, by any method; empty if there are none.
	ClientID     string
	ClientSecret string

	// Assertion is the JWT of the method private_key_jwt.
	Assertion string

	// ClientAuthMethods are the methods that the request uses: none or one; more are refused
	// (RFC 6749 §2.3).
	ClientAuthMethods []AuthMethod

	// Proofs are the proofs of possession of a key (RFC 9449): the values of [dpop.Header].
	Proofs []string

	// With queues reads that are sent with that of the client. Default: there are none.
	With func(*sqldb.Batch)

	// Limit counts the request against a limit of the user or client that key names. It is
	// called after authentication and before anything is consumed; its error ends the request.
	// Default: there is no limit.
	Limit func(ctx context.Context, key string) error

	once *onceOnly // what the request presents, see Admit
}

// errUnknownClient is the only refusal of client authentication.
var errUnknownClient = protocol.NewError(protocol.InvalidClient, "unknown client, or wrong secret or assertion")

// Authenticate returns the application of a request (RFC 6749 §2.3). A client learns that it
// is disabled only after it has authenticated. An assertion is consumed when the request is
// admitted.
func (s *Authenticator) Authenticate(ctx context.Context, tenant protocol.Tenant, c *Credentials) (Application, error) {
	c.Start()
	if len(c.ClientAuthMethods) > 1 {
		return Application{}, protocol.NewError(protocol.InvalidRequest, "the request authenticates the client in more than one way")
	}
	// An unknown client gets the same response, after the same work, as a wrong secret or a
	// method of authentication that is not the application's.
	refused := errUnknownClient
	if c.ClientID == "" {
		return Application{}, refused
	}
	var b sqldb.Batch
	read := QueueSelect(&b, tenant.ID, c.ClientID)
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
	proved := app.secrets.match(c.ClientSecret, s.clock()) && c.Assertion == ""
	switch {
	case unknown || app.Type == SAML:
		return Application{}, refused
	case app.AuthMethod == PrivateKeyJWT:
		proved, err = s.asserted(ctx, tenant, app, c)
	case !app.Type.Confidential(): // it has no credentials
		proved = c.ClientSecret == "" && c.Assertion == ""
	}
	if err != nil {
		return Application{}, err
	}
	if !proved {
		return Application{}, refused
	}
	if app.State != Enabled {
		return Application{}, protocol.NewError(protocol.UnauthorizedClient, "the application is disabled")
	}
	return app, nil
}

// asserted reports whether the assertion is the application's (RFC 7523 §3). Only a valid
// assertion is consumed, so that no other client can consume it.
func (s *Authenticator) asserted(ctx context.Context, tenant protocol.Tenant, app Application, c *Credentials) (bool, error) {
	if c.Assertion == "" || c.ClientSecret != "" {
		return false, nil
	}
	// The names of the server at all endpoints. RFC 9126 §2 requires the last one.
	names := []string{tenant.BaseURL, tenant.BaseURL + protocol.TokenPath, tenant.BaseURL + protocol.PushPath}
	now := s.clock()
	keys, err := s.keys.of(ctx, app, time.Time{})
	if err != nil {
		return false, err
	}
	a, err := assertion.Verify(c.Assertion, app.ClientID, keys, names, now)
	if errors.Is(err, assertion.ErrUnknownKey) {
		if keys, err = s.keys.of(ctx, app, now); err != nil {
			return false, err
		}
		a, err = assertion.Verify(c.Assertion, app.ClientID, keys, names, now)
	}
	if err != nil {
		return false, nil // the response is that of all other refusals
	}
	hash := protocol.Hash(a.ClientID + "\x00" + a.ID)
	err = s.db.QueryRow(ctx, `SELECT 1 FROM client_assertions WHERE tenant_id = $1 AND hash = $2`, tenant.ID, hash).Scan(new(int64))
	if !errors.Is(err, sqldb.ErrNoRows) {
		return false, err // nil: the assertion was used before
	}
	*c.once = append(*c.once, func(ctx context.Context) error {
		n, err := s.db.Exec(ctx, `INSERT INTO client_assertions (tenant_id, hash, expires_at) VALUES ($1, $2, $3) ON CONFLICT (tenant_id, hash) DO NOTHING`,
			tenant.ID, hash, a.Expires.UnixMicro())
		if err != nil {
			return fmt.Errorf("note client assertion: %w", err)
		}
		if n == 0 {
			return errUnknownClient
		}
		return nil
	})
	return true, nil
}

var (
	ConfidentialAuthMethods = []string{string(ClientSecretBasic), string(ClientSecretPost), string(PrivateKeyJWT)}
	ClientAuthMethods       = append(slices.Clone(ConfidentialAuthMethods), string(NoClientAuth))
)
