package server

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

// verifier implements [web.Verifier]: it verifies the tokens of sessions, and access tokens, which
// must not belong to a session that has ended.
type verifier struct {
	Tokens   web.Verifier
	Sessions interface {
		ByToken(ctx context.Context, tenantID, token string) (session.Session, error)
		ByID(ctx context.Context, tenantID, sessionID string) (session.Session, error)
	}
}

var _ web.Verifier = (*verifier)(nil)

// sessionScopes are the scopes of session tokens, which no administrative operation accepts.
var sessionScopes = scope.SetOf("me:read me:write")

// Verify implements [web.Verifier].
func (v *verifier) Verify(ctx context.Context, t protocol.Tenant, bearer string) (*token.Principal, error) {
	if strings.HasPrefix(bearer, session.Prefix) {
		s, err := v.Sessions.ByToken(ctx, t.ID, bearer)
		if err != nil {
			return nil, ended(err)
		}
		return &token.Principal{
			Subject: s.UserID, ClientID: token.FirstParty, Scopes: sessionScopes, ExpiresAt: s.ExpiresAt,
			SessionID: s.ID, AuthTime: s.AuthTime, SecondFactor: s.SecondFactor, MustEnrol: s.MustEnrol, Opened: s.Opened(),
		}, nil
	}
	p, err := v.Tokens.Verify(ctx, t, bearer)
	return v.alive(ctx, t, p, err)
}

// VerifyCertified implements [web.Verifier]. Session tokens are not bound to certificates.
func (v *verifier) VerifyCertified(ctx context.Context, t protocol.Tenant, bearer string, certificate func() string) (*token.Principal, error) {
	if strings.HasPrefix(bearer, session.Prefix) {
		return v.Verify(ctx, t, bearer)
	}
	p, err := v.Tokens.VerifyCertified(ctx, t, bearer, certificate)
	return v.alive(ctx, t, p, err)
}

// VerifyBound implements [web.Verifier]. Session tokens are not bound to keys.
func (v *verifier) VerifyBound(ctx context.Context, t protocol.Tenant, token string, r dpop.Request) (*token.Principal, error) {
	p, err := v.Tokens.VerifyBound(ctx, t, token, r)
	return v.alive(ctx, t, p, err)
}

// alive refuses a token whose session has ended.
func (v *verifier) alive(ctx context.Context, t protocol.Tenant, p *token.Principal, err error) (*token.Principal, error) {
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
	p.Opened = s.Opened()
	return p, nil
}

func ended(err error) error {
	if errors.Is(err, session.ErrEnded) {
		return &token.Error{Reason: token.Revoked}
	}
	return err
}
