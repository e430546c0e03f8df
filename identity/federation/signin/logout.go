package signin

import (
	"context"
	"errors"
	"net/url"

	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/federation"
	"stonetown/identity/federation/relyingparty"
	"stonetown/identity/onetime"
	"stonetown/internal/sqldb"

	"golang.org/x/oauth2"
)

const (
	kindLogout onetime.Kind = "federation_logout"

	// maxHint bounds the ID token in the URL of a sign-out, in bytes: servers refuse longer URLs.
	// Without it, the provider may ask the user.
	maxHint = 4 << 10
)

// logout is a sign-out between [Service.BeginLogout] and [Service.FinishLogout].
type logout struct {
	ConnectionID string `json:"connection_id"`
	State        string `json:"state"`
	Next         string `json:"next"`
}

// BeginLogout begins to sign the user of a session out at the provider where the session began, which
// the caller ends: RP-Initiated Logout 1.0, or SAML Profiles §4.4. The browser returns to the PostLogout
// or SLO URL of the connection, and then goes to next, which the caller must have validated. The result is zero if the
// session did not begin at a connection that is enabled, or the provider has no sign-out; a failure
// of the provider is logged, because it does not prevent the sign-out here.
func (s *Service) BeginLogout(ctx context.Context, t federation.Tenant, sessionID, next string) (Begun, error) {
	at, err := s.Accounts.SessionAtProvider(ctx, t.ID, sessionID)
	if errors.Is(err, external.ErrNotFound) {
		return Begun{}, nil
	}
	if err != nil {
		return Begun{}, err
	}
	c, err := s.Connections.Get(ctx, t.ID, at.ConnectionID)
	if errors.Is(err, federation.ErrNotFound) || err == nil && c.State != federation.Enabled {
		return Begun{}, nil
	}
	if err != nil {
		return Begun{}, err
	}
	b, err := s.requestLogout(ctx, t, c, at)
	if failed, ok := errors.AsType[*Failure](failing(err)); ok {
		_ = s.logged(ctx, c, failed)
		return Begun{}, nil
	}
	if b.URL == "" || err != nil {
		return Begun{}, err
	}
	b.Secret, _, err = s.tokens.Create(ctx, onetime.New{Kind: kindLogout, TenantID: t.ID, Payload: logout{c.ID, b.State, next}, For: For})
	return b, err
}

// requestLogout returns the request with which the provider of a connection ends a session; zero:
// there is none.
func (s *Service) requestLogout(ctx context.Context, t federation.Tenant, c federation.Connection, at external.Session) (b Begun, err error) {
	switch c.Kind {
	case federation.SAML:
		return s.requestSAMLLogout(ctx, t, c, at)
	case federation.OIDC:
	default:
		return Begun{}, nil
	}
	provider, err := s.Connections.Provider(c)
	if err != nil {
		return Begun{}, err
	}
	hint := at.Hint
	if len(url.QueryEscape(hint)) > maxHint {
		hint = ""
	}
	b.State = oauth2.GenerateVerifier() // 256 random bits
	b.URL, err = s.Providers.LogoutURL(ctx, provider, relyingparty.Logout{IDToken: hint, RedirectURI: c.URLs(t).PostLogout, State: b.State})
	return b, err
}

// FinishLogout returns the place at which a browser continues that comes back from the provider, once.
// It fails with [ErrExpired].
func (s *Service) FinishLogout(ctx context.Context, tenantID, slug, state, secret string) (next string, err error) {
	var l logout
	token, err := s.tokens.Find(ctx, tenantID, kindLogout, secret)
	if err == nil {
		err = token.Read(&l)
	}
	if err == nil && l.State != state {
		err = onetime.ErrInvalid
	}
	if err == nil {
		err = s.DB.Tx(ctx, func(tx *sqldb.Tx) error { return onetime.Use(ctx, tx, token) })
	}
	var c federation.Connection
	if err == nil {
		c, err = s.Connections.Get(ctx, tenantID, l.ConnectionID)
	}
	if errors.Is(err, onetime.ErrInvalid) || errors.Is(err, federation.ErrNotFound) || err == nil && c.Slug != slug {
		err = ErrExpired
	}
	return l.Next, err
}

// EndByToken ends the sessions that a logout token of a provider names (Back-Channel Logout 1.0
// §2.6): those that began at a session of the provider (sid), or all of a subject. A token is accepted
// once, also while the connection is disabled, because its sessions stay. EndByToken fails with
// [federation.ErrNotFound], also for other kinds than OIDC, or with [*Failure].
func (s *Service) EndByToken(ctx context.Context, tenantID, slug, token string) error {
	c, err := s.Connections.BySlug(ctx, tenantID, slug)
	if err == nil && c.Kind != federation.OIDC {
		err = federation.ErrNotFound
	}
	if err != nil {
		return err
	}
	provider, err := s.Connections.Provider(c)
	if err != nil {
		return err
	}
	out, err := s.Providers.VerifyLogoutToken(ctx, provider, token)
	if err != nil {
		return s.logged(ctx, c, failing(err))
	}
	at := authn.AtProvider{ConnectionID: c.ID, Subject: out.Subject}
	if out.SessionID != "" {
		at.ProviderIDs = []string{out.SessionID}
	}
	err = s.Accounts.EndAtProvider(ctx, tenantID, at, func(ctx context.Context, tx *sqldb.Tx) error {
		first, err := once(ctx, tx, c, "logout "+out.ID, out.Expires)
		if err == nil && !first {
			err = &relyingparty.Error{Class: relyingparty.Stale, Step: relyingparty.LogoutToken, Detail: "the token was used before"}
		}
		return err
	})
	return s.logged(ctx, c, failing(err))
}
