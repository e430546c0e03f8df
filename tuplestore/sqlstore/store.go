package sqlstore

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"sync"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/fairqueue"
)

// Config says where a store lives and how much may wait in it. The zero value
// of a field stands for its default.
type Config struct {
	// DB is the database; its tables come from [Migrations]. Required.
	DB *sqldb.DB

	// MaxWaitingPerResource is how many writes may wait for one object before
	// more are refused with [*tuplestore.BusyError]. Default: 1,000.
	MaxWaitingPerResource int
	// MaxWaitingPerTenant is how many writes may wait in one tenant. Default:
	// 10,000.
	MaxWaitingPerTenant int
	// RetryAfter is what refused writes are told to wait. Default: 1 second.
	RetryAfter time.Duration

	// GroupOps is how many ops one transaction carries; a single larger write
	// has one to itself. Whoever comes new waits for the group under way and its
	// own, so larger ones make waits longer; beyond some hundred they bring no more
	// throughput. Default: 1,000.
	GroupOps int
	// Committers is how many tenants are written at the same time by this
	// process; each takes a connection. Default: 4; always 1 on SQLite, which has
	// one writer.
	Committers int
	// CommitTimeout bounds one attempt to commit a group. Default: 30 seconds.
	CommitTimeout time.Duration

	// ScanPage is how many records a scan reads at a time. Default: 2,000.
	ScanPage int

	// Retention is how long [Store.Run] keeps the past. Default: [Retention].
	Retention time.Duration

	// Clock tells when a write was committed. Default: time.Now.
	Clock func() time.Time
	// Logger hears of commits whose outcome was unknown. Default: none.
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
	byDefault(&c.Retention, Retention)
	if c.Clock == nil {
		c.Clock = time.Now
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

	// known has the head of every tenant whose row was seen, if this process is
	// the only writer; otherwise it stays empty. A tenant's committer alone
	// replaces an entry, before anyone hears of the new revision.
	known sync.Map // tenant -> tuplestore.Head

	stop    context.Context // ends with Close
	cancel  context.CancelFunc
	working sync.WaitGroup // committers; grows only under mu while not closed

	mu         sync.Mutex
	closed     bool
	queues     map[string]*tenantQueue // the tenants with writes waiting or under way
	ready      []*tenantQueue          // those of them that no committer has, in turn
	committers int
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

// onlyWriter reports whether nobody but this store writes to its tables.
func (s *Store) onlyWriter() bool { return s.DB.Dialect() == sqldb.SQLite }
