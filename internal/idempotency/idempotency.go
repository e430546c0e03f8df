// Package idempotency lets clients repeat a request without applying it twice
// (draft-ietf-httpapi-idempotency-key-header).
//
// A request with a key first claims the key by inserting a row, which succeeds for only
// one of several concurrent requests, in any process. That request does the work and
// stores its response. For 24 hours, other requests with the key receive the stored
// response, or an error if the work is in progress or the request differs.
//
// A claim is a lease. If its holder dies, the next request with the key takes the claim
// over, with its commit ID, which never changes: work that carries the ID into its
// transaction ([tuplestore.Write.CommitID]) is not applied again, even if the holder died
// between the commit and storing the response.
package idempotency

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stonetown/internal/jobs"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations create the package's table.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("idempotency", migrations) }

// Window is how long a key means the same request.
const Window = 24 * time.Hour

var (
	// ErrInProgress: another request under the key has not ended.
	ErrInProgress = errors.New("a request with this idempotency key is in progress")
	// ErrReused: the key belongs to another request.
	ErrReused = errors.New("the idempotency key was used for a different request")
)

// Config configures a store. DB and Seal are required.
type Config struct {
	DB *sqldb.DB
	// Seal encrypts stored responses, some of which carry secrets.
	Seal *seal.Key
	// Lease is the time for which a claim is held. It must be longer than the timeout of
	// requests. Default: 90 s.
	Lease time.Duration
	// Clock returns the current time, on which the processes of a deployment must roughly
	// agree. Default: time.Now.
	Clock func() time.Time
	// Logger receives errors of background work. Default: discarded.
	Logger *slog.Logger
}

// Store keeps claims and responses. It is safe for concurrent use.
type Store struct {
	db    *sqldb.DB
	seal  *seal.Key
	lease time.Duration
	clock func() time.Time
	log   *slog.Logger
}

// New returns the store kept in c.DB.
func New(c Config) (*Store, error) {
	if c.DB == nil || c.Seal == nil {
		return nil, errors.New("idempotency: Config.DB and Seal are required")
	}
	if c.Lease == 0 {
		c.Lease = 90 * time.Second
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{db: c.DB, seal: c.Seal, lease: c.Lease, clock: c.Clock, log: c.Logger}, nil
}

// Request identifies a request with a key.
type Request struct {
	Tenant string
	Scope  [32]byte // hash of caller, operation and key
	Hash   [32]byte // hash of the content of the request
}

// Response is a stored response.
type Response struct {
	Status int                 `json:"status"`
	Header map[string][]string `json:"header"`
	Body   []byte              `json:"body"`
}

// Claim is the right, and the duty, to do a request's work.
type Claim struct {
	// CommitID is the same for every attempt at the request.
	CommitID string

	store   *Store
	request Request
	holder  string
}

// Claim claims the key of a request. If the request has been answered, it
// returns the response and no claim. Errors: [ErrInProgress], [ErrReused], or the
// database's.
func (s *Store) Claim(ctx context.Context, r Request) (*Claim, *Response, error) {
	claim := &Claim{CommitID: rand.Text(), store: s, request: r, holder: rand.Text()}
	for {
		now := s.clock()
		inserted, err := s.insert(ctx, claim, now)
		if err != nil {
			return nil, nil, fmt.Errorf("claim idempotency key: %w", err)
		}
		if inserted {
			return claim, nil, nil
		}
		have, err := s.read(ctx, r)
		if errors.Is(err, sqldb.ErrNoRows) {
			continue // collected since
		}
		if err != nil {
			return nil, nil, fmt.Errorf("claim idempotency key: %w", err)
		}
		switch {
		case have.expiresAt <= now.UnixMicro():
			if err := s.deleteExpired(ctx, r, now); err != nil {
				return nil, nil, fmt.Errorf("claim idempotency key: %w", err)
			}
			continue
		case have.requestHash != r.Hash:
			return nil, nil, ErrReused
		case have.status != 0:
			response, err := s.open(r, have.response)
			return nil, response, err
		case have.leaseUntil > now.UnixMicro():
			return nil, nil, ErrInProgress
		}
		claim.CommitID = have.commitID
		taken, err := s.takeOver(ctx, claim, have, now)
		if err != nil {
			return nil, nil, fmt.Errorf("claim idempotency key: %w", err)
		}
		if taken {
			return claim, nil, nil
		}
	}
}

// Complete stores the response of the work, which all later requests get.
func (c *Claim) Complete(ctx context.Context, response Response) error {
	text, err := json.Marshal(response)
	if err != nil {
		return fmt.Errorf("store response: %w", err)
	}
	sealed := c.store.seal.Seal(c.request.Tenant, sealID(c.request), text)
	if err := c.store.complete(ctx, c, response.Status, sealed); err != nil {
		return fmt.Errorf("store response: %w", err)
	}
	return nil
}

// Release releases the claim without a response. The next request with the key executes the
// work under the same commit ID, because it may have been committed.
func (c *Claim) Release(ctx context.Context) error {
	if err := c.store.release(ctx, c); err != nil {
		return fmt.Errorf("release idempotency key: %w", err)
	}
	return nil
}

func (s *Store) open(r Request, sealed []byte) (*Response, error) {
	text, err := s.seal.Open(r.Tenant, sealID(r), sealed)
	if err != nil {
		return nil, fmt.Errorf("open stored response: %w", err)
	}
	response := new(Response)
	if err := json.Unmarshal(text, response); err != nil {
		return nil, fmt.Errorf("open stored response: %w", err)
	}
	return response, nil
}

func sealID(r Request) string { return "idempotency|" + hex.EncodeToString(r.Scope[:]) }

// collectEvery is the interval at which expired keys are deleted.
const collectEvery = time.Minute

// Run collects expired keys until ctx ends.
func (s *Store) Run(ctx context.Context) {
	jobs.Loop{Name: "collect idempotency keys", Every: collectEvery, Logger: s.log}.Run(ctx, jobs.Once(s.Collect))
}
