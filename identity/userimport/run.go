package userimport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/password"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

const (
	// cleanup is the interval of deleting imports: those not received within abandonedAfter,
	// and those that ended keptFor ago.
	cleanup        = time.Hour
	abandonedAfter = 6 * time.Hour
	keptFor        = 30 * 24 * time.Hour
)

// kind is the kind of the background jobs that import a chunk.
const kind = "user_import"

// chunkJob is the payload of a background job that imports a chunk, or that completes the
// import if all chunks are imported.
type chunkJob struct {
	Import string `json:"import"`
	Chunk  int    `json:"chunk"`
}

// errSuperseded: the import was canceled, or another process has imported the chunk.
var errSuperseded = errors.New("import canceled or advanced")

// register registers the jobs. A failed chunk is repeated until it succeeds or the import is
// canceled. Hashing the passwords of a chunk takes long if many users are signing in.
func (i *Importer) register() {
	i.jobs.Register(jobs.Kind{
		Name: kind, Handle: i.handle, Concurrency: 1, Timeout: time.Hour,
		Attempts: jobs.Unlimited, Backoff: jobs.Exponential(5*time.Second, time.Minute),
	})
}

// Run deletes old imports until ctx ends. Several processes may run it.
func (i *Importer) Run(ctx context.Context) {
	jobs.Loop{Name: "remove old imports", Every: cleanup, Logger: i.log}.Run(ctx, jobs.Once(func(ctx context.Context) error {
		now := i.now()
		return deleteJobs(ctx, i.db, now.Add(-abandonedAfter), now.Add(-keptFor))
	}))
}

// handle imports a chunk and enqueues the job of the next one, in one transaction. It has no
// effect if the import was canceled or the chunk was imported before.
func (i *Importer) handle(ctx context.Context, work jobs.Job) error {
	var next chunkJob
	if err := work.Read(&next); err != nil {
		return errors.Join(err, jobs.ErrDrop)
	}
	err := i.advance(ctx, work.TenantID, next)
	if errors.Is(err, errSuperseded) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (i *Importer) advance(ctx context.Context, tenantID string, next chunkJob) error {
	job, err := selectJob(ctx, i.db, tenantID, next.Import)
	if err != nil {
		return err
	}
	if job.next != next.Chunk {
		return errSuperseded
	}
	switch job.State {
	case Queued:
		if err := begin(ctx, i.db, job, i.now()); err != nil {
			return err
		}
	case Running:
	default:
		return errSuperseded
	}
	if ctx, err = onBehalf(ctx, job); err != nil {
		return err
	}
	if job.next < job.chunks {
		err = i.importChunk(ctx, job)
	} else {
		err = i.complete(ctx, job)
	}
	if err == nil {
		i.jobs.Wake()
	}
	return err
}

func (i *Importer) complete(ctx context.Context, job Job) error {
	job.FinishedAt = i.now()
	return i.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := finish(ctx, tx, job); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, job.TenantID, completed(ctx, job))
		return tx.Send(ctx, &b)
	})
}

// onBehalf returns a context with the origin and the caller of the request that created a job.
func onBehalf(ctx context.Context, job Job) (context.Context, error) {
	ctx = eventlog.WithOrigin(ctx, func() eventlog.Origin { return job.Origin })
	if len(job.caller) == 0 {
		return ctx, nil
	}
	var caller authority.Caller
	if err := json.Unmarshal(job.caller, &caller); err != nil {
		return ctx, fmt.Errorf("read caller of import: %w", err)
	}
	return authority.With(ctx, func() authority.Caller { return caller }), nil
}

// candidate is a row of the chunk that is being imported.
type candidate struct {
	line   int
	row    Row
	failed *RowError
}

// importChunk imports the next chunk of an import.
func (i *Importer) importChunk(ctx context.Context, job Job) error {
	sealed, err := selectChunk(ctx, i.db, job)
	if err != nil {
		return err
	}
	text, err := i.seal.Open(job.TenantID, job.ID, sealed)
	if err != nil {
		return fmt.Errorf("open rows of import: %w", err)
	}
	var lines []line
	if err := json.Unmarshal(text, &lines); err != nil {
		return fmt.Errorf("read rows of import: %w", err)
	}
	candidates := make([]candidate, len(lines))
	hashing, hashCtx := errgroup.WithContext(fair.NewContext(ctx, &fair.Request{
		Caller: fair.Caller{Tenant: job.TenantID, ID: job.ID}, Patient: true,
	}))
	hashing.SetLimit(fair.HeavyPlaces())
	policy := sync.OnceValues(func() (password.Policy, error) {
		settings, err := i.users.Settings(hashCtx, job.TenantID)
		return settings.PasswordPolicy, err
	})
	for n, l := range lines {
		c := &candidates[n]
		c.line = l.Number
		if l.TooLong {
			c.failed = &RowError{Code: "line_too_long", Message: fmt.Sprintf("a line must have at most %d bytes", MaxLine)}
			continue
		}
		if c.row, c.failed = i.parse(l.Text); c.failed != nil || c.row.Password == "" {
			continue
		}
		hashing.Go(func() (err error) {
			about := identity.User{Email: c.row.Email, Profile: c.row.Profile}
			// A breached password is found at the first sign-in, when the user can choose
			// another one.
			p, err := policy()
			if err == nil {
				err = p.Check(c.row.Password, about.Identifiers())
			}
			if err == nil {
				c.row.PasswordHash, err = password.NewHash(hashCtx, c.row.Password)
			}
			if violation, ok := errors.AsType[*password.PolicyError](err); ok {
				c.failed, err = &RowError{Code: "password_policy_violation", Message: violation.Error()}, nil
			}
			return err
		})
	}
	if err := hashing.Wait(); err != nil {
		return err
	}
	if err := i.commit(ctx, job, candidates); err != nil {
		return fmt.Errorf("import users: %w", err)
	}
	return nil
}

// commit creates the users of a chunk, advances the import, and enqueues the job of the next
// chunk, in one transaction.
func (i *Importer) commit(ctx context.Context, job Job, candidates []candidate) error {
	bulk := identity.Bulk{Actor: job.ID, Source: identity.FromImport, SendVerification: job.SendVerification}
	var accepted []int // the candidates of bulk.Users
	for n, c := range candidates {
		if c.failed == nil {
			bulk.Users, accepted = append(bulk.Users, c.row.BulkUser), append(accepted, n)
		}
	}
	bulk.Commit = func(ctx context.Context, tx *sqldb.Tx, b *sqldb.Batch, errs []error) error {
		results := slices.Clone(candidates)
		for k, err := range errs {
			results[accepted[k]].failed = rowError(err)
		}
		imported, failed := 0, 0
		for _, c := range results {
			if c.failed == nil {
				imported++
				continue
			}
			if failed++; job.Failed+failed <= MaxErrors {
				insertError(b, job, c)
			}
		}
		i.jobs.Enqueue(b, job.TenantID, kind, chunkJob{job.ID, job.next + 1})
		return advance(ctx, tx, job, imported, failed)
	}
	return i.users.CreateMany(ctx, job.TenantID, bulk)
}

// rowError returns the error of a row whose user was not created, or nil.
func rowError(err error) *RowError {
	if err == nil {
		return nil
	}
	var unknown *identity.UnknownGroupError
	var denied *authority.DeniedError
	e := &RowError{Message: err.Error()}
	switch {
	case errors.Is(err, identity.ErrEmailInvalid):
		e.Code = "email_invalid"
	case errors.Is(err, identity.ErrUserExists):
		e.Code = "user_exists"
	case errors.As(err, &unknown):
		e.Code = "group_not_found"
	case errors.As(err, &denied):
		e.Code = "permission_denied"
	}
	return e
}
