package oauth

import (
	"context"
	"slices"
	"strings"
	"time"
)

// GrantClientCredentials is the grant of RFC 6749 §4.4.
const GrantClientCredentials = "client_credentials"

// TokenRequest is a request to the token endpoint.
type TokenRequest struct {
	Credentials
	GrantType string

	// Scope is the scope parameter: names separated by spaces. Empty asks for
	// the default.
	Scope string

	// Code, RedirectURI and CodeVerifier are of the authorization_code grant, RefreshToken
	// is of the refresh_token grant.
	Code, RedirectURI, CodeVerifier string
	RefreshToken                    string
	DeviceCode                      string // of the device_code grant

	// Exchange is of the token exchange grant.
	Exchange ExchangeRequest

	// Audience are the values of the audience or resource (RFC 8707) parameter.
	Audience []string

	key string // thumbprint of the one that the tokens will be bound to; empty: to none
}

// TokenResponse is a successful answer of the token endpoint (RFC 6749 §5.1).
type TokenResponse struct {
	AccessToken string
	TokenType   string        // [TokenTypeBearer] or [TokenTypeDPoP]
	ExpiresIn   time.Duration // whole seconds
	Scope       string        // what was granted, separated by spaces

	IssuedTokenType string // of token exchange

	// Of users' grants.
	RefreshToken string
	IDToken      string // with the scope openid
}

// Token answers a request to the token endpoint. Refusals are [*Error]; any
// other error is the server's.
func (s *Service) Token(ctx context.Context, tenant Tenant, req TokenRequest) (TokenResponse, error) {
	var answer func(context.Context, Tenant, Application, TokenRequest) (TokenResponse, error)
	switch req.GrantType {
	case "":
		return TokenResponse{}, &Error{InvalidRequest, "grant_type is missing"}
	case GrantTokenExchange:
		return s.exchangeToken(ctx, tenant, req)
	case GrantClientCredentials:
		answer = s.clientCredentials
	case GrantAuthorizationCode:
		answer = s.exchangeCode
	case GrantDeviceCode:
		answer = s.deviceToken
	case GrantRefreshToken, "refresh": // which some clients have from the product's documentation
		answer = s.refresh
	default:
		return TokenResponse{}, &Error{UnsupportedGrantType, "supported: " + strings.Join(grantTypes, " ")}
	}
	app, err := s.authenticate(ctx, tenant, &req.Credentials)
	if err != nil {
		return TokenResponse{}, err
	}
	if req.GrantType != GrantClientCredentials && (s.people == nil || !app.Type.hasUsers()) {
		return TokenResponse{}, &Error{UnauthorizedClient, "applications of this type cannot get tokens for users"}
	}
	var issued TokenResponse
	if req.key, err = s.bindingKey(tenant, app, req.Credentials); err == nil {
		issued, err = answer(ctx, tenant, app, req)
	}
	return issued, req.refused(ctx, err)
}

// clientCredentials issues a token to the application itself (RFC 6749 §4.4).
func (s *Service) clientCredentials(ctx context.Context, tenant Tenant, app Application, req TokenRequest) (TokenResponse, error) {
	if !app.actsForItself() {
		return TokenResponse{}, &Error{UnauthorizedClient, "the application cannot use " + GrantClientCredentials}
	}
	scopes, err := grantedScopes(app, req.Scope)
	if err != nil {
		return TokenResponse{}, err
	}
	aud, err := tokenAudience(tenant, app, req.Audience, scopes)
	if err != nil {
		return TokenResponse{}, err
	}
	carries, err := s.entitled(ctx, tenant, entitling{app: app, scopes: scopes})
	if err == nil {
		err = s.admit(ctx, req.Credentials, app.ClientID)
	}
	if err != nil {
		return TokenResponse{}, err
	}
	c := claims{Subject: app.ClientID, Audience: aud, Confirmation: confirmation{req.key}}
	token, err := s.mint(ctx, tenant, app, carries, &c)
	if err == nil {
		err = s.used(ctx, app)
	}
	if err != nil {
		return TokenResponse{}, err
	}
	return TokenResponse{AccessToken: token, TokenType: c.Confirmation.tokenType(), ExpiresIn: app.AccessTokenTTL, Scope: carries.String()}, nil
}

// grantedScopes are those asked for, all of which must be allowed, or all
// allowed ones if none is asked for.
func grantedScopes(app Application, parameter string) ([]string, error) {
	asked, err := parseScopes(parameter)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return app.AllowedScopes, nil
	}
	for _, scope := range asked {
		if !slices.Contains(app.AllowedScopes, scope) {
			return nil, &Error{InvalidScope, "the application is not allowed all of the scopes that it requested"}
		}
	}
	return asked, nil
}

// tokenAudience is whom the token is for: the audience asked for, which must be
// the application's or the tenant itself, or else the application's, or else the
// tenant. A token with scopes of the product's own API is for the tenant too.
func tokenAudience(tenant Tenant, app Application, asked, scopes []string) ([]string, error) {
	aud := tenant.BaseURL
	if app.Audience != "" {
		aud = app.Audience
	}
	switch len(asked) {
	case 0:
	case 1:
		if asked[0] != aud && asked[0] != tenant.BaseURL {
			return nil, &Error{InvalidTarget, "the application is not allowed tokens for this audience"}
		}
		aud = asked[0]
	default:
		return nil, &Error{InvalidRequest, "more than one audience"}
	}
	if aud != tenant.BaseURL && slices.ContainsFunc(scopes, isBuiltin) {
		return []string{aud, tenant.BaseURL}, nil
	}
	return []string{aud}, nil
}
