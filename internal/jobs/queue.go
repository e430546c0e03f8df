package jobs

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/internal/id"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/internal/tracing"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("jobs", migrations) }

// Poll is how often a queue reads the database for jobs that were enqueued without
// [Queue.Wake], or by another process.
const Poll = time.Second

var (
	// ErrDrop is part of the error of a handler whose job can never succeed. The job is
	// removed without a further attempt.
	ErrDrop = errors.New("job dropped")
	// ErrLeaseLost is the cause of the end of a handler's context if another process may
	// have taken the job.
	ErrLeaseLost = errors.New("lease of job lost")
	// ErrTimeout is the cause of the end of a handler's context if the timeout of the kind
	// has passed.
	ErrTimeout = errors.New("timeout of job")

	// errStopped is the cause of the end of a handler's context if the queue stops.
	errStopped = errors.New("queue stopped")
	// errAttemptLost is the last error of a job whose process died in the last attempt.
	errAttemptLost = errors.New("the process ended during the last attempt")
)

// Job is an enqueued piece of work.
type Job struct {
	ID        string
	TenantID  string
	Kind      string
	Attempt   int // from 1
	CreatedAt time.Time

	payload []byte // JSON; sealed until the job is taken
	due     int64  // microseconds since 1970; of a running job the end of its lease
}

// Read decodes the payload.
func (j Job) Read(payload any) error { return json.Unmarshal(j.payload, payload) }

// Config configures a queue. DB and Seal are required.
type Config struct {
	DB *sqldb.DB
	// Seal encrypts payloads, because they may contain personal data.
	Seal *seal.Key
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
	// Logger receives the errors of jobs. Default: errors are discarded.
	Logger *slog.Logger
	// Tracer records a trace of each attempt. Nil records none.
	Tracer *tracing.Tracer
	// Grace is how long handlers may go on after the queue was stopped. Default: 5 s.
	Grace time.Duration
}

// Queue stores jobs and runs them. It is safe for concurrent use.
type Queue struct {
	db     *sqldb.DB
	seal   *seal.Key
	clock  func() time.Time
	log    *slog.Logger
	tracer *tracing.Tracer
	grace  time.Duration
	wake   Signal

	done   atomic.Int64
	failed atomic.Int64
	dead   atomic.Int64

	mu    sync.Mutex
	kinds []*lane
}

// lane is a kind and its running jobs.
type lane struct {
	Kind
	running int    // guarded by Queue.mu
	tenant  string // whose job was started last while more were due than could run
	behind  bool   // more were due than could run
}

// New returns the queue in c.DB.
func New(c Config) (*Queue, error) {
	if c.DB == nil || c.Seal == nil {
		return nil, errors.New("jobs: Config.DB and Seal are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Grace == 0 {
		c.Grace = 5 * time.Second
	}
	return &Queue{db: c.DB, seal: c.Seal, clock: c.Clock, log: c.Logger, tracer: c.Tracer, grace: c.Grace, wake: NewSignal()}, nil
}

// Register adds a kind. It must be called before [Queue.Run], and once for each name. A
// process does not take jobs of kinds that it has not registered.
func (q *Queue) Register(k Kind) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k.Name == "" || k.Handle == nil || q.lane(k.Name) != nil {
		panic(fmt.Sprintf("jobs: kind %q has no name, no handler, or is registered already", k.Name))
	}
	q.kinds = append(q.kinds, &lane{Kind: k.withDefaults()})
}

// lane finds a kind by name. q.mu is held.
func (q *Queue) lane(name string) *lane {
	for _, l := range q.kinds {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Enqueue adds the statement that stores a job to b, so that the job commits with the
// transaction that b is part of. Calling [Queue.Wake] after the commit starts the job
// without waiting for the next poll.
func (q *Queue) Enqueue(b *sqldb.Batch, tenantID, kind string, payload any) {
	text, err := json.Marshal(payload)
	if err != nil {
		panic("jobs: " + err.Error()) // payloads are types of this program
	}
	jobID := id.New(id.Job)
	b.Queue(insertJob, []any{tenantID, jobID, kind, q.seal.Seal(tenantID, jobID, text), q.clock().UnixMicro()}, nil)
}

// Put enqueues a job in a transaction of its own. It never wakes the worker, so response
// timing does not reveal whether the job has work to do. The job starts within [Poll].
func (q *Queue) Put(ctx context.Context, tenantID, kind string, payload any) error {
	err := q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		q.Enqueue(&b, tenantID, kind, payload)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("enqueue %s: %w", kind, err)
	}
	return nil
}

// Wake makes a running queue read the database at once.
func (q *Queue) Wake() { q.wake.Send() }

// Stats are counts since the queue was opened, of this process.
type Stats struct {
	Done   int64 // jobs that succeeded
	Failed int64 // attempts that failed
	Dead   int64 // jobs that failed in all their attempts
}

// Stats returns the counts.
func (q *Queue) Stats() Stats {
	return Stats{Done: q.done.Load(), Failed: q.failed.Load(), Dead: q.dead.Load()}
}
