package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stonetown/engine"
	"stonetown/engine/authority"
	"stonetown/identity/password"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

const (
	// importLease is how long a process that works on a job may take for a chunk
	// before another takes over.
	importLease = time.Minute
	// importPoll is how often the database is asked for jobs that other processes
	// received or left.
	importPoll = 2 * time.Second
	// importTidy is how often jobs are removed that are of no use any more: those not
	// received within abandonedAfter, and those that ended keptFor ago.
	importTidy     = time.Hour
	abandonedAfter = 6 * time.Hour
	keptFor        = 30 * 24 * time.Hour
	// chunkAttempts is how often a chunk is tried that others get in the way of.
	chunkAttempts = 5
)

// errNotOurs: the job was cancelled, or another process works on it.
var errNotOurs = errors.New("import lease lost")

// Run works on imports until ctx ends. Several processes may run it.
func (i *Importer) Run(ctx context.Context, log *slog.Logger) {
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() {
		jobs.Loop{Name: "remove old imports", Every: importTidy, Logger: log}.Run(ctx, jobs.Once(func(ctx context.Context) error {
			now := i.directory.now()
			return deleteImports(ctx, i.directory.db, now.Add(-abandonedAfter), now.Add(-keptFor))
		}))
	})
	jobs.Loop{Name: "import users", Every: importPoll, Wake: i.kicked, Logger: log}.Run(ctx, i.work)
}

// work does what there is to do on one job. It reports whether there was one.
func (i *Importer) work(ctx context.Context) (found bool, err error) {
	d, owner := i.directory, rand.Text()
	now := d.now()
	job, err := selectWaiting(ctx, d.db, now)
	if errors.Is(err, ErrImportNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	claimed, err := claimImport(ctx, d.db, job, owner, now, now.Add(importLease))
	if err != nil || !claimed {
		return err == nil, err
	}
	defer func() {
		switch {
		case errors.Is(err, errNotOurs):
			err = nil
			return
		case err != nil && ctx.Err() == nil:
			return // until the lease ends others have their turn
		}
		// So that the next one need not wait for the lease to end.
		err = errors.Join(err, releaseImport(context.WithoutCancel(ctx), d.db, job, owner))
	}()
	if job, err = selectImport(ctx, d.db, job.TenantID, job.ID); err != nil {
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
	job.FinishedAt = d.now()
	return true, d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := finishImport(ctx, tx, job, owner, job.FinishedAt); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, job.TenantID, importCompleted(ctx, job))
		return tx.Send(ctx, &b)
	})
}

// onBehalf is a context in which a job has the origin of the request that asked for it, and
// the rights of its caller.
func onBehalf(ctx context.Context, job Import) (context.Context, error) {
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

// mayJoin fails with [*authority.DeniedError] unless the caller may put users into a group.
func (d *Directory) mayJoin(ctx context.Context, g Group) error {
	return d.authority.MayGive(ctx, g.TenantID, append([]string{"groups:write"}, g.Scopes...))
}

// candidate is a row on its way.
type candidate struct {
	line   int
	row    ImportRow
	failed *RowError
}

// importChunk imports the next chunk of a job.
func (i *Importer) importChunk(ctx context.Context, job *Import, owner string) error {
	d := i.directory
	sealed, err := selectChunk(ctx, d.db, *job)
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
	renewed := d.now()
	for n, l := range lines {
		c := &candidates[n]
		c.line = l.Number
		if l.TooLong {
			c.failed = &RowError{Code: "line_too_long", Message: fmt.Sprintf("a line must have at most %d bytes", MaxImportLine)}
			continue
		}
		if c.row, c.failed = i.parse(l.Text); c.failed != nil || c.row.Password == "" {
			continue
		}
		// Where many sign in, a chunk may take longer than the lease.
		if now := d.now(); now.Sub(renewed) > importLease/3 {
			renewed = now
			if err := renewImport(ctx, d.db, *job, owner, now.Add(importLease)); err != nil {
				return errors.Join(err, hashing.Wait())
			}
		}
		hashing.Go(func() (err error) {
			about := User{Email: c.row.Email, Profile: c.row.Profile}
			// Nobody is there to choose another one that is not breached: that is
			// looked up at the first sign-in.
			settings, err := d.Settings(hashCtx, job.TenantID)
			if err == nil {
				err = settings.PasswordPolicy.Check(c.row.Password, about.Identifiers())
			}
			if err == nil {
				c.row.PasswordHash, err = password.NewHash(hashCtx, c.row.Password)
			}
			if policy, ok := errors.AsType[*password.PolicyError](err); ok {
				c.failed, err = &RowError{Code: "password_policy_violation", Message: policy.Error()}, nil
			}
			return err
		})
	}
	if err := hashing.Wait(); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		imported, failed, err := i.commitChunk(ctx, *job, owner, slices.Clone(candidates))
		if sqldb.IsUniqueViolation(err) || errors.Is(err, errChanged) {
			if attempt < chunkAttempts {
				continue // somebody created one of these users meanwhile, or deleted a group
			}
		}
		if err != nil {
			return fmt.Errorf("import users: %w", err)
		}
		job.Imported, job.Failed, job.next = job.Imported+imported, job.Failed+failed, job.next+1
		return nil
	}
}

// commitChunk creates the users of a chunk, and their memberships, and counts them.
func (i *Importer) commitChunk(ctx context.Context, job Import, owner string, candidates []candidate) (imported, failed int, err error) {
	d := i.directory
	groups := map[string]Group{} // by slug
	for n := range candidates {
		c := &candidates[n]
		for _, slug := range c.row.Groups {
			if _, known := groups[slug]; known || c.failed != nil {
				continue
			}
			g, err := selectGroupBySlug(ctx, d.db, job.TenantID, slug)
			if errors.Is(err, ErrGroupNotFound) {
				c.failed = &RowError{Code: "group_not_found", Message: fmt.Sprintf("group %q not found", slug)}
				continue
			}
			if err != nil {
				return 0, 0, err
			}
			err = d.mayJoin(ctx, g)
			if denied, ok := errors.AsType[*authority.DeniedError](err); ok {
				c.failed = &RowError{Code: "permission_denied", Message: denied.Error()}
				continue
			}
			if err != nil {
				return 0, 0, err
			}
			groups[slug] = g
		}
	}
	// Everybody gets an id before anything is written, for memberships name it.
	var emails []string
	users := make([]User, len(candidates))
	for n := range candidates {
		c := &candidates[n]
		if c.failed != nil {
			continue
		}
		if !ValidEmail(c.row.Email) {
			c.failed = &RowError{Code: "email_invalid", Message: ErrEmailInvalid.Error()}
			continue
		}
		users[n] = d.newUser(job.TenantID, c.row.NewUser)
		emails = append(emails, NormalEmail(c.row.Email))
	}
	taken, err := selectTaken(ctx, d.db, job.TenantID, emails)
	if err != nil {
		return 0, 0, err
	}
	var created []User
	joined := map[string][]string{} // user ids by group id
	req := engine.WriteRequest{Origin: engine.Origin{Actor: job.ID}}
	for n := range candidates {
		c := &candidates[n]
		if c.failed != nil {
			continue
		}
		email := NormalEmail(c.row.Email)
		if taken[email] {
			c.failed = &RowError{Code: "user_exists", Message: ErrUserExists.Error()}
			continue
		}
		taken[email] = true // of two rows with one address the first wins
		created = append(created, users[n])
		for _, slug := range slices.Compact(slices.Sorted(slices.Values(c.row.Groups))) {
			g := groups[slug]
			req.Ops = append(req.Ops, membership(g.ID, users[n].ID))
			joined[g.ID] = append(joined[g.ID], users[n].ID)
		}
	}
	outer := ctx // events have its origin, which the context of a shared transaction lacks
	commit := func(ctx context.Context, tx *sqldb.Tx) error {
		imported, failed = len(created), len(candidates)-len(created)
		if err := advanceImport(ctx, tx, job, owner, imported, failed, d.now().Add(importLease)); err != nil {
			return err
		}
		var b sqldb.Batch
		var events []eventlog.Event
		for _, u := range created {
			queueUser(&b, u)
			if job.SendVerification {
				d.verify(&b, u)
			}
			events = append(events, UserCreated(outer, u, FromImport))
		}
		left := max(0, MaxImportErrors-job.Failed) // of the errors that are kept
		for _, c := range candidates {
			if c.failed == nil || left == 0 {
				continue
			}
			left--
			b.Queue(`INSERT INTO user_import_errors (tenant_id, import_id, line, email, code, message) VALUES ($1, $2, $3, $4, $5, $6)`,
				[]any{job.TenantID, job.ID, int64(c.line), cmp.Or(c.failed.Email, c.row.Email), c.failed.Code, c.failed.Message}, nil)
		}
		for _, g := range groups {
			if len(joined[g.ID]) == 0 {
				continue
			}
			now, err := selectGroup(ctx, tx, job.TenantID, g.ID)
			if errors.Is(err, ErrGroupNotFound) || err == nil && len(added(g.Scopes, now.Scopes)) > 0 {
				return errChanged
			}
			if err != nil {
				return err
			}
			countMembers(&b, g, len(joined[g.ID]), d.now())
			events = append(events, membersChanged(outer, memberAdded, g, joined[g.ID])...)
		}
		eventlog.Append(&b, job.TenantID, events...)
		return tx.Send(ctx, &b)
	}
	if len(req.Ops) == 0 {
		err = d.db.Tx(ctx, func(tx *sqldb.Tx) error { return commit(ctx, tx) })
		return imported, failed, err
	}
	req.Also = commit
	_, err = d.relations.Write(ctx, job.TenantID, req)
	return imported, failed, err
}
