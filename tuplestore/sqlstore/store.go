package sqlstore

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/fairqueue"
	"stonetown/tuplestore/readlease"
)

// Config is the database of a store and the limits of its queues. Zero values get the
// stated defaults.
type Config struct {
	// DB is the database; its tables come from [Migrations]. Required.
	DB *sqldb.DB

	// MaxWaitingPerResource is the number of queued writes to one object. Further ones fail
	// with [*tuplestore.BusyError]. Default: 1,000.
	MaxWaitingPerResource int
	// MaxWaitingPerTenant is the number of queued writes of one tenant. Default: 10,000.
	MaxWaitingPerTenant int
	// RetryAfter is the time that refused writers should wait. Default: 1 second.
	RetryAfter time.Duration

	// GroupOps is the number of ops of one transaction; a larger write has a transaction of
	// its own. A new write waits for the group in progress and its own, so larger groups
	// increase latency; beyond some hundred ops they do not increase throughput. Default:
	// 1,000.
	GroupOps int
	// Committers is the number of tenants that this process writes concurrently; each takes
	// a connection. Default: 4; always 1 on SQLite, which has one writer.
	Committers int
	// CommitTimeout bounds one attempt to commit a group. Default: 30 seconds.
	CommitTimeout time.Duration

	// ScanPage is the number of records in one read of a scan. Default: 2,000.
	ScanPage int

	// ReadChanges is the number of changes after which a read of the changelog ends: chunks of
	// imports have many, and a reader can be far behind. Default: 200,000.
	ReadChanges int

	// Retention is how long [Store.Run] keeps history. Default: [Retention].
	Retention time.Duration

	// EventFloor returns the newest revision of a tenant whose event ([tuplestore.Write.Event]) may
	// be deleted with its commit. Default: events are kept as long as the history.
	EventFloor func(ctx context.Context, tenant string) (revision int64, err error)
	// EventRetention is how long events are kept at least, so that younger ones need not be looked
	// at. Default: 0.
	EventRetention time.Duration

	// Leases sends messages to the holders of read leases. Default: none are sent, and a holder
	// delays a write for the term of its lease.
	Leases Revoker
	// LeaseClock measures how long a write waits for holders. Default: [readlease.Machine].
	LeaseClock readlease.Clock

	// Clock is the time of commits. Default: time.Now.
	Clock func() time.Time
	// Logger gets commits whose outcome was unknown. Default: none.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.DB == nil {
		return c, errors.New("sqlstore: Config.DB is missing")
	}
	byDefault(&c.MaxWaitingPerResource, 1000)
	byDefault(&c.MaxWaitingPerTenant, 10_000)
	byDefault(&c.RetryAfter, time.Second)
	byDefault(&c.GroupOps, 1000)
	byDefault(&c.Committers, 4)
	if c.DB.Dialect() == sqldb.SQLite {
		c.Committers = 1
	}
	byDefault(&c.CommitTimeout, 30*time.Second)
	byDefault(&c.ScanPage, 2000)
	byDefault(&c.ReadChanges, 200_000)
	byDefault(&c.Retention, Retention)
	if c.EventFloor == nil {
		c.EventFloor = func(context.Context, string) (int64, error) { return math.MaxInt64, nil }
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.LeaseClock == nil {
		c.LeaseClock = readlease.Machine{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func byDefault[N int | time.Duration](field *N, value N) {
	if *field <= 0 {
		*field = value
	}
}

//go:embed migrations
var migrations embed.FS

// Migrations are the tables of a store.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("tuplestore", migrations) }

// Store is a [tuplestore.Store] in a database.
type Store struct {
	Config
	queue fairqueue.Config

	// known has the head of every tenant whose row was read, if this process is the only
	// writer; otherwise it is empty. Only a tenant's committer replaces an entry, before it
	// returns the new revision.
	known  sync.Map // tenant -> tuplestore.Head
	recent recent
	texts  texts

	// For tests: loads that were committed as they were prepared ahead, and groups that were on the
	// state that the process knows.
	asPrepared, asKnown atomic.Int64

	stop    context.Context // ends with Close
	cancel  context.CancelFunc
	working sync.WaitGroup // committers; grows only under mu before Close

	mu         sync.Mutex
	closed     bool
	queues     map[string]*tenantQueue // the tenants with writes queued or in progress
	ready      []*tenantQueue          // those of them that no committer has, round robin
	committers int
	preparing  int // loads that are prepared ahead and that no committer has
}

var _ tuplestore.Store = (*Store)(nil)

// New returns the store in a database that has been migrated.
func New(c Config) (*Store, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{
		Config: c,
		queue:  fairqueue.Config{PerKey: c.MaxWaitingPerResource, Total: c.MaxWaitingPerTenant, RetryAfter: c.RetryAfter},
		queues: make(map[string]*tenantQueue),
	}
	s.stop, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// onlyWriter reports whether only this store writes to its tables.
func (s *Store) onlyWriter() bool { return s.DB.Dialect() == sqldb.SQLite }
