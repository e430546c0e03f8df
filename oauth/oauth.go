package oauth

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"stonetown/engine/authority"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/audience"
	"stonetown/oauth/authorization"
	"stonetown/oauth/claim"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/grants"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/revocation"
	"stonetown/oauth/token"
	"stonetown/oauth/workload"
)

// Relations is the part of [engine.Engine] that the module uses.
type Relations interface {
	client.Relations
	claim.Relations
	detail.Relations
	grants.Relations
}

// Config is the configuration of a [Service].
type Config struct {
	// DB stores the module's state. Its tables are [Migrations]. Required.
	DB *sqldb.DB

	// Seal encrypts private signing keys at rest, and derives refresh tokens and DPoP nonces. Required.
	Seal *seal.Key

	// Users has the users that give access to applications. Required.
	Users access.Users

	// Relations has the relations of applications, which decide about token exchange.
	// Required.
	Relations Relations

	// Authority compares the rights that an application gets with those of the caller.
	// Required.
	Authority *authority.Checker

	// Jobs sends logout tokens to applications, and makes signing keys. Required.
	Jobs *jobs.Queue

	// Tenants finds the tenant of a job. Required.
	Tenants func(ctx context.Context, tenantID string) (protocol.Tenant, error)

	// Outbound fetches the keys that applications publish and delivers logout
	// notifications. Default: a client that reaches the public Internet only.
	Outbound *outbound.Client

	// LocalRedirects is that of [client.Config].
	LocalRedirects bool

	// Certificates is that of [client.Config].
	Certificates bool

	// Logger logs refused clients, and key sets that cannot be fetched. Default: slog.Default().
	Logger *slog.Logger

	// Clock returns the time. Default: time.Now.
	Clock func() time.Time
}

// Service is the module, composed of its packages. It is safe for concurrent use.
type Service struct {
	Clients       *client.Registry
	Authenticator *client.Authenticator
	Keys          *keys.Service
	Access        *access.Store
	Claims        *claim.Finder
	Tokens        *token.Service
	Grants        *grants.Service
	Workloads     *workload.Registry
	Authorization *authorization.Service

	db      *sqldb.DB
	details *detail.Checker
	clock   func() time.Time

	certificates bool // the server gets the certificates of clients
}

// New returns the service whose state is in c.DB.
func New(c Config) (*Service, error) {
	if c.DB == nil || c.Seal == nil || c.Users == nil || c.Relations == nil || c.Authority == nil || c.Jobs == nil || c.Tenants == nil {
		return nil, errors.New("oauth: all fields of Config without a default are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Outbound == nil {
		c.Outbound = outbound.New(outbound.Config{})
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	s := &Service{db: c.DB, clock: c.Clock, certificates: c.Certificates}
	revoked := revocation.New(c.DB, c.Clock)
	s.Keys = keys.New(c.DB, c.Seal, c.Clock, revoked, c.Jobs)
	s.Access = access.NewStore(c.DB, c.Users, c.Seal, c.Clock)
	s.Clients = client.NewRegistry(client.Config{
		DB: c.DB, Relations: c.Relations, Authority: c.Authority, Access: s.Access, Keys: s.Keys, Revoked: revoked, Outbound: c.Outbound, Clock: c.Clock,
		LocalRedirects: c.LocalRedirects, Certificates: c.Certificates,
	})
	s.Authenticator = client.NewAuthenticator(c.DB, c.Seal, c.Outbound, c.Logger, c.Clock)
	s.details = detail.NewChecker(c.Relations)
	s.Claims = claim.NewFinder(c.Relations, c.Users)
	var minter *token.Minter
	s.Tokens, minter = token.New(token.Config{
		DB: c.DB, Users: c.Users, Keys: s.Keys, Access: s.Access, Clients: s.Authenticator, Claims: s.Claims, Details: s.details, Revoked: revoked, Clock: c.Clock,
	})
	s.Workloads = workload.NewRegistry(workload.Config{DB: c.DB, Authority: c.Authority, Outbound: c.Outbound, Logger: c.Logger, Clock: c.Clock})
	s.Grants = grants.New(grants.Config{
		DB: c.DB, Users: c.Users, Authenticator: s.Authenticator, Clients: s.Clients, Access: s.Access, Tokens: s.Tokens, Minter: minter,
		Relations: c.Relations, Details: s.details, Workloads: s.Workloads, Logger: c.Logger, Clock: c.Clock,
	})
	s.Authorization = authorization.New(authorization.Config{
		DB: c.DB, Registry: s.Clients, Clients: s.Authenticator, Keys: s.Keys, Access: s.Access, Details: s.details, Audiences: audience.NewChecker(c.Relations), Tokens: s.Tokens, Jobs: c.Jobs, Outbound: c.Outbound,
		Tenants: c.Tenants, Clock: c.Clock,
	})
	return s, nil
}
