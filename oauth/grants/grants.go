// Package grants is the token endpoint: one file for each grant type (RFC 6749 §1.3), and a
// runner that all of them pass through.
//
// A grant decides to which tokens a request leads, and describes them (issuance). It issues
// none: only the runner has the [token.Minter] and opens the transaction that consumes what
// the request presents. The runner executes the phases in one order, so that no grant can
// leave one out (run.go):
//
//  1. the form of the parameters
//  2. client authentication, or for token exchange without it, the client of the token
//  3. proof of possession of a key (RFC 9449)
//  4. the decision of the grant about what is presented
//  5. entitlement: the scopes that the tokens may carry
//  6. limits; only then are assertions and proofs consumed
//  7. signatures
//  8. the commit: consumption of the code or token, and the rows and events of the new tokens
//
// A request that is over a limit, or that fails in the server, has consumed nothing and can be
// sent again. A refused request has consumed its assertion and its proof.
package grants

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/audience"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
	"stonetown/oauth/workload"
)

// Request is a request to the token endpoint.
type Request struct {
	client.Credentials
	GrantType string

	// Scope is the scope parameter: names separated by spaces. Empty requests the default.
	Scope string

	// Audience are the values of the parameters resource (RFC 8707) and audience.
	Audience []string

	// Details is the parameter authorization_details (RFC 9396 §6).
	Details string

	// The parameters of the authorization_code grant.
	Code, RedirectURI, CodeVerifier string
	// The parameter of the refresh_token grant.
	RefreshToken string
	// The parameter of the device_code grant.
	DeviceCode string
	// The parameter assertion of the jwt-bearer grant. That of a client is in Credentials.
	GrantAssertion string
	// The parameters of the token exchange grant.
	Exchange TokenExchange
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
	Details       *detail.Checker
	Workloads     *workload.Registry
	Logger        *slog.Logger // logs refused workloads
	Clock         func() time.Time
}

// Service is the token endpoint of any number of tenants. It is safe for concurrent use.
type Service struct {
	sources
	authn   *client.Authenticator
	clients *client.Registry
	minter  *token.Minter
	record  *eventlog.Recorder
	trusted *workload.Registry
	log     *slog.Logger
}

// sources is what grants decide from. It cannot issue a token.
type sources struct {
	db        *sqldb.DB
	users     access.Users
	access    *access.Store
	tokens    *token.Service
	relations Relations
	details   *detail.Checker
	audiences *audience.Checker
	clock     func() time.Time
}

// New returns the token endpoint.
func New(c Config) *Service {
	return &Service{
		sources: sources{c.DB, c.Users, c.Access, c.Tokens, c.Relations, c.Details, audience.NewChecker(c.Relations), c.Clock},
		authn:   c.Authenticator, clients: c.Clients, minter: c.Minter, record: eventlog.NewRecorder(c.DB), trusted: c.Workloads, log: c.Logger,
	}
}

// grantOf returns the grant of a grant_type, for one request.
func (s *Service) grantOf(grantType string) (grant, error) {
	switch grantType {
	case "":
		return nil, protocol.NewError(protocol.InvalidRequest, "grant_type is missing")
	case protocol.GrantClientCredentials:
		return clientCredentials{sources: s.sources}, nil
	case protocol.GrantAuthorizationCode:
		return &authorizationCode{sources: s.sources, ofUsers: ofUsers{grantType: protocol.GrantAuthorizationCode}}, nil
	case protocol.GrantRefreshToken, "refresh": // the short name is documented, too
		return refreshToken{sources: s.sources, ofUsers: ofUsers{grantType: protocol.GrantRefreshToken}}, nil
	case protocol.GrantDeviceCode:
		return deviceCode{sources: s.sources, ofUsers: ofUsers{grantType: protocol.GrantDeviceCode}}, nil
	case protocol.GrantTokenExchange:
		return &tokenExchange{sources: s.sources, record: s.record}, nil
	case protocol.GrantJWTBearer:
		return &jwtBearer{sources: s.sources, authn: s.authn, trusted: s.trusted, log: s.log}, nil
	}
	return nil, protocol.NewError(protocol.UnsupportedGrantType, "supported: "+strings.Join(protocol.GrantTypes, " ")+" "+protocol.GrantJWTBearer)
}

// Token answers a request to the token endpoint. Refusals are [*protocol.Error]; any other
// error is the server's, or that of [client.Credentials.Limit].
func (s *Service) Token(ctx context.Context, tenant protocol.Tenant, req Request) (token.Response, error) {
	g, err := s.grantOf(req.GrantType)
	if err != nil {
		return token.Response{}, err
	}
	r := &request{Request: req, tenant: tenant}
	r.Start()
	issued, err := s.run(ctx, g, r)
	var refusal *protocol.Error
	if errors.As(err, &refusal) {
		if err := g.refused(ctx, r, err); err != nil {
			return token.Response{}, err
		}
		err = r.Refused(ctx, refusal)
	}
	return issued, err
}
