package authorization

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// LogoutRequest is a request of an application to sign its user out (OIDC RP-Initiated Logout
// §2).
type LogoutRequest struct {
	SessionID string // of the ID token; empty: there is none
	Redirect  string // the address to which the user is redirected; empty: none
	State     string // is sent with the redirect; empty: none
}

// Logout validates a request to sign a user out. Without an ID token of the tenant the user is
// asked, and a redirect requires that the application has registered the address. It fails
// with [*PageError].
func (s *Service) Logout(ctx context.Context, tenant protocol.Tenant, params url.Values) (r LogoutRequest, err error) {
	for _, name := range []string{"id_token_hint", "client_id", "post_logout_redirect_uri", "state"} {
		if len(params[name]) > 1 {
			return r, &PageError{name + " is given more than once"}
		}
	}
	if state := params.Get("state"); len(state) > maxState || !printable(state) {
		return r, &PageError{"state must be at most 2,048 printable ASCII characters"}
	}
	clientID := params.Get("client_id")
	if hint := params.Get("id_token_hint"); hint != "" {
		// An expired ID token is accepted, because sessions outlive ID tokens.
		c, err := s.tokens.ReadIDToken(ctx, tenant, hint)
		var bad *token.Error
		switch {
		case err != nil && !errors.As(err, &bad):
			return r, err
		case err != nil && bad.Reason != token.Expired: // its claims are not verified
		case clientID != "" && clientID != c.Audience:
			return r, &PageError{"the ID token was issued to another application"}
		default:
			clientID, r.SessionID = c.Audience, c.SessionID
		}
	}
	to := params.Get("post_logout_redirect_uri")
	if to == "" || clientID == "" {
		return r, nil
	}
	app, err := client.Select(ctx, s.db, tenant.ID, clientID)
	if client.IsNotFound(err) || err == nil && !slices.Contains(app.PostLogoutRedirectURIs, to) {
		return r, nil
	}
	r.Redirect, r.State = to, params.Get("state")
	return r, err
}
