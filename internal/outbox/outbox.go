// Package outbox runs jobs after a transaction has committed, such as sending mails.
//
// A job commits with the change that requires it ([Outbox.Queue]). One process then runs
// it in the background ([Outbox.Run]), at least once: if the process dies, another one
// takes the job over, and a job that fails is retried with growing delays for a day.
// Payloads are encrypted, because they may contain personal data.
package outbox

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/internal/tracing"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("outbox", migrations) }

const (
	// lease is how long a process may take for a job before another does it.
	lease = 2 * time.Minute
	// Poll is how often the database is asked for jobs that nobody was woken for.
	Poll = time.Second
	// giveUpAfter is how long a job is tried.
	giveUpAfter = 24 * time.Hour
	// firstRetry is when a job that failed is tried again; the time doubles until it
	// is lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = time.Hour
	// atOnce is how many jobs a process does at the same time.
	atOnce = 4
)

// Job is something to do.
type Job struct {
	ID        string
	TenantID  string
	Kind      string
	Attempt   int // from 1
	CreatedAt time.Time

	payload []byte // JSON
	due     int64
}

// Read decodes what the job says.
func (j Job) Read(payload any) error { return json.Unmarshal(j.payload, payload) }

// ErrDrop is returned by what does jobs for one that will never succeed.
var ErrDrop = errors.New("not to be tried again")

// RetryError is returned by what does jobs to be tried again at another time than others
// are.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap is what went wrong.
func (e *RetryError) Unwrap() error { return e.Err }

// Config says what an outbox works on. DB and Seal are required.
type Config struct {
	DB   *sqldb.DB
	Seal *seal.Key
	// Clock tells the time. Default: time.Now.
	Clock func() time.Time
	// Logger gets what goes wrong in the background. Default: discarded.
	Logger *slog.Logger
	// Tracer records each job that is done as a trace. Default: none.
	Tracer *tracing.Tracer
}

// Outbox keeps jobs. It is safe for concurrent use.
type Outbox struct {
	db     *sqldb.DB
	seal   *seal.Key
	clock  func() time.Time
	log    *slog.Logger
	tracer *tracing.Tracer
	woken  jobs.Signal
}

// New returns the outbox kept in c.DB.
func New(c Config) (*Outbox, error) {
	if c.DB == nil || c.Seal == nil {
		return nil, errors.New("outbox: Config.DB and Seal are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Outbox{c.DB, c.Seal, c.Clock, c.Logger, c.Tracer, jobs.NewSignal()}, nil
}

// Queue lets a job commit with the transaction that b is part of. [Outbox.Wake] after
// the commit spares it the wait.
func (o *Outbox) Queue(b *sqldb.Batch, tenantID, kind string, payload any) {
	text, err := json.Marshal(payload)
	if err != nil {
		panic("outbox: " + err.Error()) // of our own types
	}
	jobID, now := id.New(id.OutboxJob), o.clock().UnixMicro()
	b.Queue(`INSERT INTO outbox (tenant_id, id, kind, payload, attempts, created_at, due_at) VALUES ($1, $2, $3, $4, 0, $5, $5)`,
		[]any{tenantID, jobID, kind, o.seal.Seal(tenantID, jobID, text), now}, nil)
}

// Put queues a job that nothing else commits with. It is done within [Poll], whatever is
// done about it: that the time of an answer does not tell.
func (o *Outbox) Put(ctx context.Context, tenantID, kind string, payload any) error {
	err := o.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		o.Queue(&b, tenantID, kind, payload)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("queue %s: %w", kind, err)
	}
	return nil
}

// Wake says that there may be something to do.
func (o *Outbox) Wake() { o.woken.Send() }

// Run does jobs until ctx ends. Several processes may run it.
func (o *Outbox) Run(ctx context.Context, do func(context.Context, Job) error) {
	working := make(chan struct{}, atOnce)
	defer func() { // wait for those under way
		for range atOnce {
			working <- struct{}{}
		}
	}()
	jobs.Loop{Name: "look for jobs", Every: Poll, Wake: o.woken, Logger: o.log}.Run(ctx, func(ctx context.Context) (more bool, err error) {
		due, err := o.due(ctx)
		for _, job := range due {
			select {
			case working <- struct{}{}:
			case <-ctx.Done():
				return false, nil
			}
			go func() {
				defer func() { <-working }()
				o.work(ctx, job, do)
			}()
		}
		return len(due) == page, err
	})
}

// work does one job, if no other process does.
func (o *Outbox) work(ctx context.Context, job Job, do func(context.Context, Job) error) {
	claimed, err := o.claim(ctx, &job)
	if err == nil && claimed {
		if job.payload, err = o.seal.Open(job.TenantID, job.ID, job.payload); err == nil {
			ctx, cancel := context.WithTimeout(ctx, lease-10*time.Second)
			ctx, span := o.tracer.Job(ctx, "job "+job.Kind)
			span.String("stonetown.tenant", job.TenantID)
			span.Int("stonetown.attempt", job.Attempt)
			err = do(ctx, job)
			span.End(err)
			cancel()
		}
	}
	// What was done is noted even if the service stops meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	over := o.clock().Sub(job.CreatedAt) > giveUpAfter || errors.Is(err, ErrDrop)
	switch {
	case !claimed && err == nil:
		return
	case err == nil:
		err = o.done(ctx, job)
	case claimed:
		o.log.WarnContext(ctx, "job failed", "job", job.ID, "tenant", job.TenantID, "kind", job.Kind, "attempt", job.Attempt, "given_up", over, "error", err)
		if over {
			err = o.done(ctx, job)
		} else {
			after := min(lastRetry, firstRetry<<min(job.Attempt-1, 20))
			if own := new(RetryError); errors.As(err, &own) {
				after = own.After
			}
			err = o.again(ctx, job, after)
		}
	}
	if err != nil {
		o.log.ErrorContext(ctx, "note what became of a job", "job", job.ID, "tenant", job.TenantID, "error", err)
	}
}
