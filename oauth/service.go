package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stonetown/engine/authority"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

// Config says what a service works on.
type Config struct {
	// DB holds applications and keys. Required; its tables are [Migrations].
	DB *sqldb.DB

	// Seal encrypts private signing keys at rest. Required.
	Seal *seal.Key

	// People knows the users that applications act for. Default: there are none, and
	// applications act for themselves only.
	People People

	// Relations is the engine, which is asked about token exchange. Default: there is none,
	// and applications are neither deleted nor may they exchange tokens.
	Relations Relations

	// Authority compares the rights of callers. Required by everything that gives rights
	// on behalf of a caller.
	Authority *authority.Checker

	// Jobs sends logout tokens to applications, and Tenants knows whose
	// they are. Default: there is none, and applications are told nothing.
	Jobs    *jobs.Queue
	Tenants func(ctx context.Context, tenantID string) (Tenant, error)

	// Outbound fetches the keys that applications publish, and tells them of sessions that
	// have ended. Default: a client that reaches
	// the public Internet only.
	Outbound *outbound.Client

	// Logger is told of keys that cannot be fetched. Default: slog.Default().
	Logger *slog.Logger

	// Clock tells the time. Default: time.Now.
	Clock func() time.Time
}

// Tenant is what the package needs to know of one.
type Tenant struct {
	ID      string
	BaseURL string // issuer and default audience
}

// Service issues and verifies access tokens for any number of tenants. It is
// safe for concurrent use.
type Service struct {
	db        *sqldb.DB
	relations Relations
	authority *authority.Checker
	people    People
	clock     func() time.Time
	outbound  *outbound.Client
	jobs      *jobs.Queue
	record    *eventlog.Recorder
	tenants   func(ctx context.Context, tenantID string) (Tenant, error)

	keys       *keyrings
	clientKeys *clientKeys
	verified   *verifiedTokens
	origins    *lru.Cache[string, origins]
	revoked    *revocations
}

// New returns the service whose state is in c.DB.
func New(c Config) (*Service, error) {
	if c.DB == nil || c.Seal == nil {
		return nil, errors.New("oauth: Config.DB and Config.Seal are required")
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
	known, err := lru.New[string, origins](originsCacheSize)
	if err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	revoked := newRevocations(c.DB, c.Clock)
	s := &Service{
		db: c.DB, relations: c.Relations, authority: c.Authority, people: c.People, clock: c.Clock, outbound: c.Outbound, jobs: c.Jobs, record: eventlog.NewRecorder(c.DB), tenants: c.Tenants,
		keys:       newKeyrings(c.DB, c.Seal, c.Clock, revoked),
		clientKeys: newClientKeys(c.Outbound, c.Clock, c.Logger),
		verified:   newVerifiedTokens(),
		origins:    known,
		revoked:    revoked,
	}
	if c.Jobs != nil {
		s.registerLogout(c.Jobs)
	}
	return s, nil
}
