package account

import (
	"context"
	"errors"
	"strings"

	"stonetown/api/web"
	"stonetown/identity/session"
	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

// Sessions knows who is signed in.
type Sessions interface {
	ByToken(ctx context.Context, tenantID, token string) (session.Session, error)
	ByID(ctx context.Context, tenantID, sessionID string) (session.Session, error)
}

// Verifier accepts tokens of sessions beside access tokens, and of those only such whose
// session has not ended.
type Verifier struct {
	Tokens   web.Verifier
	Sessions Sessions
}

// sessionScopes are what the token of a session is good for: nothing that takes a role.
var sessionScopes = scope.SetOf("me:read me:write")

// Verify implements [web.Verifier].
func (v *Verifier) Verify(ctx context.Context, t protocol.Tenant, bearer string) (*token.Principal, error) {
	if strings.HasPrefix(bearer, session.Prefix) {
		s, err := v.Sessions.ByToken(ctx, t.ID, bearer)
		if err != nil {
			return nil, ended(err)
		}
		return &token.Principal{
			Subject: s.UserID, ClientID: token.FirstParty, Scopes: sessionScopes, ExpiresAt: s.ExpiresAt,
			SessionID: s.ID, AuthTime: s.AuthTime, SecondFactor: s.SecondFactor, MustEnrol: s.MustEnrol,
		}, nil
	}
	p, err := v.Tokens.Verify(ctx, t, bearer)
	return v.alive(ctx, t, p, err)
}

// VerifyBound implements [web.Verifier]. Sessions are bound to no key.
func (v *Verifier) VerifyBound(ctx context.Context, t protocol.Tenant, token string, r dpop.Request) (*token.Principal, error) {
	p, err := v.Tokens.VerifyBound(ctx, t, token, r)
	return v.alive(ctx, t, p, err)
}

// alive refuses a token whose session has ended.
func (v *Verifier) alive(ctx context.Context, t protocol.Tenant, p *token.Principal, err error) (*token.Principal, error) {
	if err != nil || p.SessionID == "" {
		return p, err
	}
	s, err := v.Sessions.ByID(ctx, t.ID, p.SessionID)
	if err == nil && s.UserID != p.Subject {
		err = session.ErrEnded
	}
	if err != nil {
		return nil, ended(err)
	}
	return p, nil
}

func ended(err error) error {
	if errors.Is(err, session.ErrEnded) {
		return &token.Error{Reason: token.Revoked}
	}
	return err
}
