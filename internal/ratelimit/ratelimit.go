// Package ratelimit counts requests against limits, by the generic cell rate algorithm
// (GCRA): a fresh bucket allows its whole limit at once, and then fills up evenly. A
// decision is arithmetic on one number for each bucket, which all processes of a
// deployment share through the database.
//
// With embedded SQLite there is one process, so the numbers stay in memory: they cost
// nothing there, and a restart resets them.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/throttled/throttled/v2"

	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

// Config configures a limiter.
type Config struct {
	// DB shares the buckets; its table is among [Migrations]. Required.
	DB *sqldb.DB
	// Limits replace those of [Defaults] that they name.
	Limits Limits
	// Clock returns the current time for buckets in memory; shared buckets use the clock of the
	// database. Default: time.Now.
	Clock func() time.Time
	// Logger receives errors of background work. Default: discarded.
	Logger *slog.Logger
}

// Limiter counts requests. It is safe for concurrent use.
type Limiter struct {
	shared *sqlStore // nil: the buckets are in memory
	store  throttled.GCRAStoreCtx
	local  *memoryStore // buckets, or until when a bucket is known to be empty
	log    *slog.Logger
	byKind sync.Map // Limit -> *throttled.GCRARateLimiterCtx

	limits Limits
}

// New returns a limiter without any requests counted here.
func New(c Config) (*Limiter, error) {
	if c.DB == nil {
		return nil, errors.New("ratelimit: Config.DB is required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Limiter{local: newMemoryStore(c.Clock), log: c.Logger, limits: Defaults()}
	for counted, limit := range c.Limits {
		if err := limit.validate(); err != nil {
			return nil, fmt.Errorf("ratelimit: %s: %w", counted, err)
		}
		l.limits[counted] = limit
	}
	l.store = l.local
	if c.DB.Dialect() != sqldb.SQLite {
		l.shared = &sqlStore{c.DB}
		l.store = l.shared
	}
	return l, nil
}

// Limit returns the effective limit, given the limits of the tenant.
func (l *Limiter) Limit(tenant Limits, c Counted) Limit {
	if limit, ok := tenant[c]; ok {
		return limit
	}
	return l.limits[c]
}

// Decision is the result for a request.
type Decision struct {
	Limited    bool
	Limit      Limit
	Remaining  int           // requests that may follow at once
	Reset      time.Duration // until the bucket is full again
	RetryAfter time.Duration // if Limited: until a request is allowed
}

// Bucket identifies requests that are counted together: those of one address or caller to one
// family of one tenant.
type Bucket struct {
	Tenant  string
	Counted Counted
	Key     string // the address or caller
}

// attempts bounds how often a request that meets others at the same bucket tries.
const attempts = 100

// Take counts a request against a limit.
func (l *Limiter) Take(ctx context.Context, b Bucket, limit Limit) (Decision, error) {
	if limit == (Limit{}) {
		return Decision{}, nil
	}
	// With the limit in its name a bucket starts anew when its limit changes.
	name := b.Tenant + "|" + b.Counted.String() + "|" + limit.String() + "|" + b.Key
	if l.shared != nil {
		// A flood is turned away here once it has emptied its bucket.
		if wait := l.local.emptyFor(name); wait > 0 {
			return Decision{Limited: true, Limit: limit, Reset: limit.Window, RetryAfter: wait}, nil
		}
	}
	g, err := l.gcra(limit)
	if err != nil {
		return Decision{}, err
	}
	limited, result, err := g.RateLimitCtx(ctx, name, 1)
	if err != nil {
		return Decision{}, fmt.Errorf("count request: %w", err)
	}
	if limited && l.shared != nil {
		l.local.setEmpty(name, result.RetryAfter)
	}
	return Decision{
		Limited: limited, Limit: limit, Remaining: result.Remaining, Reset: result.ResetAfter, RetryAfter: max(0, result.RetryAfter),
	}, nil
}

func (l *Limiter) gcra(limit Limit) (*throttled.GCRARateLimiterCtx, error) {
	if known, ok := l.byKind.Load(limit); ok {
		return known.(*throttled.GCRARateLimiterCtx), nil
	}
	if limit.Requests < 1 || limit.Window <= 0 {
		return nil, fmt.Errorf("%d requests in %v is not a limit", limit.Requests, limit.Window)
	}
	g, err := throttled.NewGCRARateLimiterCtx(l.store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(limit.Requests, limit.Window), MaxBurst: limit.Requests - 1,
	})
	if err != nil {
		return nil, err
	}
	g.SetMaxCASAttemptsLimit(attempts)
	known, _ := l.byKind.LoadOrStore(limit, g)
	return known.(*throttled.GCRARateLimiterCtx), nil
}

// collectEvery is the interval at which full buckets are deleted.
const collectEvery = time.Minute

// Run collects full buckets until ctx ends.
func (l *Limiter) Run(ctx context.Context) {
	jobs.Loop{Name: "collect rate limits", Every: collectEvery, Logger: l.log}.Run(ctx, jobs.Once(func(ctx context.Context) error {
		l.local.collect()
		if l.shared == nil {
			return nil
		}
		return l.shared.collect(ctx)
	}))
}
