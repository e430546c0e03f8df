package grants

import (
	"context"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"

	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// Request is a request to the token endpoint.
type Request struct {
	client.Credentials
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
	Exchange TokenExchange

	// Audience are the values of the audience or resource (RFC 8707) parameter.
	Audience []string

	key string // thumbprint of the one that the tokens will be bound to; empty: to none
}

// Config is the configuration of a [Service]. All fields are required.
type Config struct {
	DB            *sqldb.DB
	Users         access.Users
	Authenticator *client.Authenticator
	Clients       *client.Registry
	Access        *access.Store
	Tokens        *token.Service
	Minter        *token.Minter
	Relations     Relations
	Clock         func() time.Time
}

// Service is the token endpoint. It is safe for concurrent use.
type Service struct {
	db        *sqldb.DB
	users     access.Users
	authn     *client.Authenticator
	clients   *client.Registry
	access    *access.Store
	tokens    *token.Service
	minter    *token.Minter
	relations Relations
	clock     func() time.Time
	record    *eventlog.Recorder
}

// New returns the token endpoint.
func New(c Config) *Service {
	return &Service{c.DB, c.Users, c.Authenticator, c.Clients, c.Access, c.Tokens, c.Minter, c.Relations, c.Clock, eventlog.NewRecorder(c.DB)}
}

// Token answers a request to the token endpoint. Refusals are [*Error]; any
// other error is the server's.
func (s *Service) Token(ctx context.Context, tenant protocol.Tenant, req Request) (token.Response, error) {
	var answer func(context.Context, protocol.Tenant, client.Application, Request) (token.Response, error)
	switch req.GrantType {
	case "":
		return token.Response{}, protocol.NewError(protocol.InvalidRequest, "grant_type is missing")
	case protocol.GrantTokenExchange:
		return s.exchangeToken(ctx, tenant, req)
	case protocol.GrantClientCredentials:
		answer = s.clientCredentials
	case protocol.GrantAuthorizationCode:
		answer = s.exchangeCode
	case protocol.GrantDeviceCode:
		answer = s.deviceToken
	case protocol.GrantRefreshToken, "refresh": // which some clients have from the product's documentation
		answer = s.refresh
	default:
		return token.Response{}, protocol.NewError(protocol.UnsupportedGrantType, "supported: "+strings.Join(protocol.GrantTypes, " "))
	}
	app, err := s.authn.Authenticate(ctx, tenant, &req.Credentials)
	if err != nil {
		return token.Response{}, err
	}
	if req.GrantType != protocol.GrantClientCredentials && !app.Type.HasUsers() {
		return token.Response{}, protocol.NewError(protocol.UnauthorizedClient, "applications of this type cannot get tokens for users")
	}
	var issued token.Response
	if req.key, err = s.authn.BindingKey(tenant, app, req.Credentials); err == nil {
		issued, err = answer(ctx, tenant, app, req)
	}
	return issued, req.Refused(ctx, err)
}
