package token

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// Introspection is the state of a token (RFC 7662 §2.2). The zero value is the response for a
// token that is not valid or does not concern the client.
type Introspection struct {
	Active                bool
	TokenType             string       // [protocol.TokenTypeBearer] or [protocol.TokenTypeDPoP]; empty for refresh tokens
	Confirmation          Confirmation // of an access token that is bound
	ClientID              string
	Subject               string
	Username              string // the e-mail address of a user
	Scope                 string
	Audience              []string
	Issuer                string
	TokenID               string
	SessionID             string
	TenantID              string
	IssuedAt              time.Time
	NotBefore             time.Time
	ExpiresAt             time.Time
	AuthTime              time.Time
	AuthenticationContext string          // acr
	Actor                 *Actor          // act; nil: there is none
	Details               []detail.Detail // what the subject may still do of them; nil: the token has none
}

// Introspect returns the state of a token to a client that authenticates: of its own tokens,
// and of access tokens that have its audience. The end of a token is seen at once. Refusals of
// the client are [*protocol.Error].
func (s *Service) Introspect(ctx context.Context, tenant protocol.Tenant, by client.Credentials, token string) (Introspection, error) {
	app, err := s.authn.Client(ctx, tenant, by)
	if err != nil {
		return Introspection{}, err
	}
	if !app.Type.Confidential() {
		return Introspection{}, protocol.NewError(protocol.InvalidClient, "introspection requires a client with credentials")
	}
	var i Introspection
	if strings.HasPrefix(token, access.RefreshTokenPrefix) {
		i, err = s.introspectRefreshToken(ctx, tenant, app, token)
	} else {
		i, err = s.introspectAccessToken(ctx, tenant, app, token)
	}
	var refused *Error
	if errors.As(err, &refused) || errors.Is(err, access.ErrInvalidGrant) || errors.Is(err, access.ErrUserGone) {
		return Introspection{}, nil
	}
	return i, err
}

// introspectionType is the typ header of signed responses (RFC 9701 §5).
const introspectionType = "token-introspection+jwt"

// SignIntrospection returns a response of the introspection endpoint to a client that has
// authenticated, as a JWT for that client (RFC 9701 §5). It is no access token: it has another typ.
func (s *Service) SignIntrospection(ctx context.Context, tenant protocol.Tenant, clientID string, response any) (string, error) {
	app, err := client.Select(ctx, s.db, tenant.ID, clientID)
	if err != nil {
		return "", err
	}
	return s.keys.Sign(ctx, tenant, app.IntrospectionAlg, introspectionType, map[string]any{
		"iss": tenant.BaseURL, "aud": clientID, "iat": s.clock().Unix(), "token_introspection": response,
	})
}

func (s *Service) introspectAccessToken(ctx context.Context, tenant protocol.Tenant, app client.Application, token string) (Introspection, error) {
	c, err := s.Read(ctx, tenant, token, s.clock())
	if err != nil {
		return Introspection{}, err
	}
	if !app.IntrospectAll && c.ClientID != app.ClientID && (app.Audience == "" || !slices.Contains(c.Audience, app.Audience)) {
		return Introspection{}, nil
	}
	if err := s.Alive(ctx, tenant, c); err != nil {
		return Introspection{}, err
	}
	scopes, user, err := s.standingScopes(ctx, tenant, c)
	if err != nil {
		return Introspection{}, err
	}
	details, _, err := s.details.Allowed(ctx, tenant.ID, SubjectOf(c.Subject), c.Details)
	if err != nil {
		return Introspection{}, err
	}
	i := Introspection{
		Active: true, TokenType: c.Confirmation.TokenType(), Confirmation: c.Confirmation, ClientID: c.ClientID, Subject: c.Subject, Scope: strings.Join(scopes, " "), Audience: c.Audience, Issuer: c.Issuer,
		Actor: c.Act, Details: details, TokenID: c.TokenID, SessionID: c.SessionID, TenantID: c.TenantID, AuthenticationContext: c.ACR,
		IssuedAt: Seconds(c.IssuedAt), NotBefore: Seconds(c.NotBefore), ExpiresAt: Seconds(c.Expires),
	}
	if user != nil {
		i.AuthTime, i.Username = Seconds(c.AuthTime), user.Email
	}
	return i, nil
}

// standingScopes returns the scopes of an access token that its application may still have,
// and the user that it speaks for; nil for an application.
func (s *Service) standingScopes(ctx context.Context, tenant protocol.Tenant, c Claims) (scopes []string, user *access.User, err error) {
	if c.AuthTime != 0 {
		p, err := s.users.User(ctx, tenant.ID, c.Subject)
		if err != nil {
			return nil, nil, err
		}
		user = &p
	}
	scopes = strings.Fields(c.Scope)
	app, err := client.Select(ctx, s.db, tenant.ID, c.ClientID)
	if client.IsNotFound(err) { // the product itself issued the token
		return scopes, user, nil
	}
	granted := scopes
	if err == nil && user != nil && c.Parent == "" {
		var g access.Grant
		if g, err = s.access.Grant(ctx, tenant, c.GrantID); err == nil {
			granted = g.Scopes
		}
	}
	return standing(scopes, app, granted, user), user, err
}

func (s *Service) introspectRefreshToken(ctx context.Context, tenant protocol.Tenant, app client.Application, token string) (Introspection, error) {
	r, err := s.access.RefreshToken(ctx, tenant, token)
	if err != nil {
		return Introspection{}, err
	}
	if r.ClientID != app.ClientID || r.Rotated() || !storage.Now(s.clock).Before(r.ExpiresAt) {
		return Introspection{}, nil
	}
	g := r.Grant
	user, err := s.access.Holder(ctx, tenant, g, false)
	if err != nil {
		return Introspection{}, err
	}
	// The scopes to which the token would lead now.
	carries, err := s.Entitled(ctx, tenant, EntitlementRequest{App: app, User: &user, Scopes: g.Scopes, GroupScopes: true})
	if err != nil {
		return Introspection{}, err
	}
	details, _, err := s.details.Allowed(ctx, tenant.ID, SubjectOf(user.ID), g.Details)
	if err != nil {
		return Introspection{}, err
	}
	return Introspection{
		Active: true, Details: details, ClientID: r.ClientID, Subject: user.ID, Username: user.Email, Scope: carries.String(), Issuer: tenant.BaseURL,
		TenantID: tenant.ID, IssuedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, AuthTime: g.Authentication.AuthTime, AuthenticationContext: g.Authentication.ACR(),
	}, nil
}
