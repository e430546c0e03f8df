package userimport

import (
	"context"
	"crypto/rand"
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
	// lease is how long a process may work on a chunk before another process takes over.
	lease = time.Minute
	// poll is the interval of queries for jobs that other processes received or abandoned.
	poll = 2 * time.Second
	// cleanup is the interval of deleting jobs: those not received within abandonedAfter,
	// and those that ended keptFor ago.
	cleanup        = time.Hour
	abandonedAfter = 6 * time.Hour
	keptFor        = 30 * 24 * time.Hour
)

// errLeaseLost: the job was canceled, or its lease passed to another process.
var errLeaseLost = errors.New("import lease lost")

// Run imports the rows of jobs until ctx ends. Several processes may run it.
func (i *Importer) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() {
		jobs.Loop{Name: "remove old imports", Every: cleanup, Logger: i.log}.Run(ctx, jobs.Once(func(ctx context.Context) error {
			now := i.now()
			return deleteJobs(ctx, i.db, now.Add(-abandonedAfter), now.Add(-keptFor))
		}))
	})
	jobs.Loop{Name: "import users", Every: poll, Wake: i.kicked, Logger: i.log}.Run(ctx, i.work)
}

// work imports the remaining rows of one job. It reports whether there was a job.
func (i *Importer) work(ctx context.Context) (found bool, err error) {
	owner, now := rand.Text(), i.now()
	job, err := selectWaiting(ctx, i.db, now)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	claimed, err := claim(ctx, i.db, job, owner, now, now.Add(lease))
	if err != nil || !claimed {
		return err == nil, err
	}
	defer func() {
		switch {
		case errors.Is(err, errLeaseLost):
			err = nil
			return
		case err != nil && ctx.Err() == nil:
			return // other jobs are next until the lease ends
		}
		// The next process need not wait until the lease ends.
		err = errors.Join(err, release(context.WithoutCancel(ctx), i.db, job, owner))
	}()
	if job, err = selectJob(ctx, i.db, job.TenantID, job.ID); err != nil {
		return true, err
	}
	if ctx, err = onBehalf(ctx, job); err != nil {
		return true, err
	}
	for job.next < job.chunks {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		if err := i.importChunk(ctx, &job, owner); err != nil {
			return true, err
		}
	}
	job.FinishedAt = i.now()
	return true, i.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := finish(ctx, tx, job, owner, job.FinishedAt); err != nil {
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

// importChunk imports the next chunk of a job.
func (i *Importer) importChunk(ctx context.Context, job *Job, owner string) error {
	sealed, err := selectChunk(ctx, i.db, *job)
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
	renewed := i.now()
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
		// Hashing takes longer than the lease if many users are signing in.
		if now := i.now(); now.Sub(renewed) > lease/3 {
			renewed = now
			if err := renew(ctx, i.db, *job, owner, now.Add(lease)); err != nil {
				return errors.Join(err, hashing.Wait())
			}
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
	imported, failed, err := i.commit(ctx, *job, owner, candidates)
	if err != nil {
		return fmt.Errorf("import users: %w", err)
	}
	job.Imported, job.Failed, job.next = job.Imported+imported, job.Failed+failed, job.next+1
	return nil
}

// commit creates the users of a chunk and advances the job, in one transaction.
func (i *Importer) commit(ctx context.Context, job Job, owner string, candidates []candidate) (imported, failed int, err error) {
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
		imported, failed = 0, 0
		for _, c := range results {
			if c.failed == nil {
				imported++
				continue
			}
			if failed++; job.Failed+failed <= MaxErrors {
				insertError(b, job, c)
			}
		}
		return advance(ctx, tx, job, owner, imported, failed, i.now().Add(lease))
	}
	err = i.users.CreateMany(ctx, job.TenantID, bulk)
	return imported, failed, err
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
