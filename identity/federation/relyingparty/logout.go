package relyingparty

import (
	"context"
	"net/url"
	"time"
)

// Logout describes a sign-out at the provider. Empty members are not sent.
type Logout struct {
	IDToken string // [Identity.IDToken]: the session to end
	// RedirectURI is the address to which the provider sends the browser back. It must be
	// registered at the provider.
	RedirectURI string
	State       string // returned to RedirectURI
}

// LogoutURL returns the URL to which the browser is sent to sign out at the provider
// (RP-Initiated Logout 1.0 §2); empty: the provider has none.
func (s *Service) LogoutURL(ctx context.Context, p Provider, l Logout) (string, error) {
	m, err := s.Metadata(ctx, p)
	if err != nil || m.EndSessionEndpoint == "" {
		return "", err
	}
	u, err := url.Parse(m.EndSessionEndpoint)
	if err != nil {
		return "", failed(Misconfigured, Discovery, "end_session_endpoint: not a URL")
	}
	query := u.Query()
	for name, value := range map[string]string{
		"client_id": p.ClientID, "id_token_hint": l.IDToken, "post_logout_redirect_uri": l.RedirectURI, "state": l.State,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

const (
	// logoutEvent is the event of logout tokens (Back-Channel Logout 1.0 §2.4).
	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
	// maxLogoutAge bounds the time for which a logout token can be used, and so the time for
	// which its id must be stored.
	maxLogoutAge = time.Hour
	// defaultLogoutAge is that of a token without exp, which the drafts of the standard did not
	// require. The standard recommends two minutes at most.
	defaultLogoutAge = 2 * time.Minute
	// maxTokenID bounds jti, in bytes.
	maxTokenID = 256
)

// LoggedOut is the content of a logout token: the end of a session, or of all sessions of a user.
type LoggedOut struct {
	Issuer    string
	Subject   string // empty: only SessionID is stated
	SessionID string // sid; empty: all sessions of Subject
	// ID is the jti. The caller must refuse a token with an id that it has seen before, until
	// Expires.
	ID      string
	Expires time.Time
}

// VerifyLogoutToken verifies a token that a provider sent to end sessions (Back-Channel Logout 1.0
// §2.6). The signature is as of ID tokens; iss, aud, iat, jti and the logout event are required, and
// sub or sid; nonce is prohibited, so that no ID token is a logout token. typ is logout+jwt, JWT or
// none.
func (s *Service) VerifyLogoutToken(ctx context.Context, p Provider, token string) (LoggedOut, error) {
	preset, err := s.preset(p)
	if err != nil {
		return LoggedOut{}, err
	}
	m, err := s.Metadata(ctx, p)
	if err != nil {
		return LoggedOut{}, err
	}
	if m.JWKSURI == "" {
		return LoggedOut{}, failed(Misconfigured, LogoutToken, "the provider has no logout tokens")
	}
	opened, err := s.verify(ctx, m, token, "", "jwt", "logout+jwt")
	if err != nil {
		return LoggedOut{}, at(LogoutToken, err)
	}
	c, err := readClaims(opened.payload)
	if err == nil {
		err = c.check(issuersOf(preset, p, m), opened.key, p.ClientID, s.clock())
	}
	if err != nil {
		return LoggedOut{}, at(LogoutToken, err)
	}
	expires := instant(*c.IssuedAt).Add(defaultLogoutAge)
	if c.Expires != nil {
		expires = instant(*c.Expires)
		if most := instant(*c.IssuedAt).Add(maxLogoutAge); expires.After(most) {
			expires = most
		}
	}
	expires = expires.Add(Skew)
	id, session := c.text("jti"), c.text("sid")
	events, _ := c.all["events"].(map[string]any)
	_, event := events[logoutEvent].(map[string]any)
	_, nonce := c.all["nonce"]
	switch {
	case !event:
		err = refused("events does not contain the logout event")
	case nonce:
		err = refused("nonce is prohibited")
	case c.Subject == "" && session == "":
		err = refused("sub and sid are missing")
	case id == "" || len(id) > maxTokenID || len(session) > maxSubject:
		err = refused("jti is missing, or it or sid is too long")
	case !s.clock().Before(expires):
		err = refused("the token has expired")
	}
	if err != nil {
		return LoggedOut{}, at(LogoutToken, err)
	}
	return LoggedOut{Issuer: c.Issuer, Subject: c.Subject, SessionID: session, ID: id, Expires: expires}, nil
}
