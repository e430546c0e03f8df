package reporting

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("reporting", migrations) }

// Config contains the dependencies of a registry. All fields but Clock and Logger are required.
type Config struct {
	DB           *sqldb.DB
	Events       Events
	Engine       Engine
	People       People
	Applications Applications
	Mail         Sender
	// Inactive lists the tenants whose schedules wait.
	Inactive func(ctx context.Context) ([]string, error)
	Jobs     *jobs.Queue
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
	// Logger receives the errors of background work. Default: errors are discarded.
	Logger *slog.Logger
}

// Registry stores the reports of tenants and runs them. It is safe for concurrent use.
type Registry struct {
	db           *sqldb.DB
	events       Events
	engine       Engine
	people       People
	applications Applications
	mail         Sender
	inactive     func(ctx context.Context) ([]string, error)
	jobs         *jobs.Queue
	clock        func() time.Time
	log          *slog.Logger
}

// New returns the registry, and registers its jobs.
func New(c Config) *Registry {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{c.DB, c.Events, c.Engine, c.People, c.Applications, c.Mail, c.Inactive, c.Jobs, c.Clock, c.Logger}
	r.register()
	return r
}

func (r *Registry) now() time.Time { return r.clock().UTC().Truncate(time.Microsecond) }

// Run starts the reports that are due, and removes old results, until ctx ends. Several processes may
// run it.
func (r *Registry) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() {
		jobs.Loop{Name: "start scheduled reports", Every: lookForDue, Logger: r.log}.Run(ctx, r.StartDue)
	})
	running.Go(func() {
		jobs.Loop{Name: "remove old results of reports", Every: removeOldResults, Logger: r.log}.Run(ctx, func(ctx context.Context) (bool, error) {
			return r.removeOld(ctx)
		})
	})
	running.Wait()
}

// List lists the reports of a tenant, newest first: at most limit, and those before an id unless that
// is empty.
func (r *Registry) List(ctx context.Context, tenantID, before string, limit int) ([]Report, error) {
	found, err := selectReports(ctx, r.db, tenantID, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list reports: %w", err)
	}
	return found, nil
}

// Get reads a report. It fails with [ErrNotFound].
func (r *Registry) Get(ctx context.Context, tenantID, reportID string) (Report, error) {
	return selectReport(ctx, r.db, tenantID, reportID)
}

// Create saves a report. It fails with [ErrTooMany] or [*UnknownRecipientError].
func (r *Registry) Create(ctx context.Context, tenantID string, kind Kind, s Settings) (Report, error) {
	now := r.now()
	report := Report{
		ID: id.NewOrdered(id.Report, now), TenantID: tenantID, Kind: kind, Settings: s,
		CreatedAt: now, CreatedBy: eventlog.OriginOf(ctx).Actor, UpdatedAt: now,
	}
	report.Parameters = s.Parameters.WithDefaults(kind)
	if err := r.checkRecipients(ctx, tenantID, s.Schedule); err != nil {
		return Report{}, err
	}
	if s.Schedule != nil {
		report.NextRunAt = s.Schedule.next(now)
	}
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var n int64
		if err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM reports WHERE tenant_id = $1`, tenantID).Scan(&n); err != nil {
			return err
		}
		if n >= MaxReports {
			return ErrTooMany
		}
		var b sqldb.Batch
		if err := insertReport(&b, report); err != nil {
			return err
		}
		eventlog.Append(&b, tenantID, created(ctx, report))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Report{}, fmt.Errorf("create report: %w", err)
	}
	return report, nil
}

// checkRecipients requires that the recipients of a schedule are users.
func (r *Registry) checkRecipients(ctx context.Context, tenantID string, s *Schedule) error {
	if s == nil || len(s.Recipients) == 0 {
		return nil
	}
	found, err := r.people.Addresses(ctx, tenantID, s.Recipients)
	if err != nil {
		return fmt.Errorf("recipients of report: %w", err)
	}
	for i, userID := range s.Recipients {
		if _, ok := found[userID]; !ok {
			return &UnknownRecipientError{i}
		}
	}
	return nil
}

// Update changes a report. change is applied to the present settings, of a kind, and may be called
// more than once; its error refuses the change. If it changes nothing, nothing is written. Update fails
// with [ErrNotFound] or [*UnknownRecipientError].
func (r *Registry) Update(ctx context.Context, tenantID, reportID string, change func(Kind, *Settings) error) (after Report, err error) {
	seen, err := r.Get(ctx, tenantID, reportID)
	if err != nil {
		return Report{}, err
	}
	before := seen.Schedule
	if err := change(seen.Kind, &seen.Settings); err != nil {
		return Report{}, err
	}
	if !reflect.DeepEqual(before, seen.Schedule) {
		if err := r.checkRecipients(ctx, tenantID, seen.Schedule); err != nil {
			return Report{}, err
		}
	}
	err = r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		before, err := lockReport(ctx, tx, tenantID, reportID)
		if err != nil {
			return err
		}
		after = before
		if err := change(after.Kind, &after.Settings); err != nil {
			return err
		}
		after.Parameters = after.Parameters.WithDefaults(after.Kind)
		if reflect.DeepEqual(before, after) {
			return nil
		}
		after.UpdatedAt = r.now()
		if !reflect.DeepEqual(before.Schedule, after.Schedule) {
			after.NextRunAt = time.Time{}
			if after.Schedule != nil {
				after.NextRunAt = after.Schedule.next(after.UpdatedAt)
			}
		}
		var b sqldb.Batch
		if err := updateReport(&b, after); err != nil {
			return err
		}
		eventlog.Append(&b, tenantID, updated(ctx, before, after))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Report{}, fmt.Errorf("change report: %w", err)
	}
	return after, nil
}

// Delete deletes a report with the results of its runs. It fails with [ErrNotFound].
func (r *Registry) Delete(ctx context.Context, tenantID, reportID string) error {
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		report, err := lockReport(ctx, tx, tenantID, reportID)
		if err != nil {
			return err
		}
		runs, err := selectRunIDs(ctx, tx, tenantID, reportID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		for _, runID := range runs {
			deleteRun(&b, tenantID, reportID, runID)
		}
		b.Queue(`DELETE FROM reports WHERE tenant_id = $1 AND id = $2`, []any{tenantID, reportID}, nil)
		eventlog.Append(&b, tenantID, deleted(ctx, report))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("delete report: %w", err)
	}
	return nil
}

// Start starts a run of a report. It fails with [ErrNotFound] or [ErrUnderway].
func (r *Registry) Start(ctx context.Context, tenantID, reportID string) (run Run, err error) {
	err = r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		report, err := lockReport(ctx, tx, tenantID, reportID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		if run, err = r.enqueue(ctx, tx, &b, report, false); err != nil {
			return err
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Run{}, fmt.Errorf("run report: %w", err)
	}
	r.jobs.Wake()
	return run, nil
}

// enqueue queues a run of a report that the transaction has locked, and the removal of its oldest
// runs. It fails with [ErrUnderway].
func (r *Registry) enqueue(ctx context.Context, tx *sqldb.Tx, b *sqldb.Batch, report Report, scheduled bool) (Run, error) {
	now := r.now()
	run := Run{
		ID: id.NewOrdered(id.ReportRun, now), TenantID: report.TenantID, ReportID: report.ID, Name: report.Name, Kind: report.Kind,
		Parameters: report.Parameters, State: Queued, Scheduled: scheduled, CreatedAt: now, CreatedBy: eventlog.OriginOf(ctx).Actor,
	}
	if scheduled {
		run.Recipients = report.Schedule.Recipients
	}
	earlier, err := selectRuns(ctx, tx, report.TenantID, report.ID, "", KeptRuns+1)
	if err != nil {
		return Run{}, err
	}
	for n, e := range earlier {
		if e.State == Queued || e.State == Running {
			return Run{}, ErrUnderway
		}
		if n >= KeptRuns-1 {
			deleteRun(b, e.TenantID, e.ReportID, e.ID)
		}
	}
	if err := insertRun(b, run); err != nil {
		return Run{}, err
	}
	r.jobs.Enqueue(b, report.TenantID, jobRun, runJob{report.ID, run.ID})
	return run, nil
}

// Runs lists the runs of a report, newest first: at most limit, and those before an id unless that is
// empty. It fails with [ErrNotFound].
func (r *Registry) Runs(ctx context.Context, tenantID, reportID, before string, limit int) ([]Run, error) {
	if _, err := r.Get(ctx, tenantID, reportID); err != nil {
		return nil, err
	}
	found, err := selectRuns(ctx, r.db, tenantID, reportID, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list runs of report: %w", err)
	}
	return found, nil
}

// GetRun reads a run, with its mails. It fails with [ErrRunNotFound].
func (r *Registry) GetRun(ctx context.Context, tenantID, reportID, runID string) (Run, []Mail, error) {
	run, err := selectRun(ctx, r.db, tenantID, reportID, runID)
	if err != nil {
		return Run{}, nil, err
	}
	mails, err := selectMails(ctx, r.db, tenantID, runID)
	if err != nil {
		return Run{}, nil, fmt.Errorf("read mails of report: %w", err)
	}
	return run, mails, nil
}

// Rows returns rows of a completed run, from one, counted from 0, at most limit. It fails with
// [ErrUnfinished].
func (r *Registry) Rows(ctx context.Context, run Run, from, limit int) ([][]any, error) {
	if run.State != Completed {
		return nil, ErrUnfinished
	}
	found, err := selectRows(ctx, r.db, run, from, limit)
	if err != nil {
		return nil, fmt.Errorf("read rows of report: %w", err)
	}
	return found, nil
}

// StartDue starts reports that are due. Another process may do so at the same time: the one that
// changes next_run_at starts the run.
func (r *Registry) StartDue(ctx context.Context) (more bool, err error) {
	now := r.now()
	due, err := selectDue(ctx, r.db, now, dueAtOnce)
	if err != nil || len(due) == 0 {
		return false, err
	}
	list, err := r.inactive(ctx)
	if err != nil {
		return false, err
	}
	inactive := map[string]bool{}
	for _, tenantID := range list {
		inactive[tenantID] = true
	}
	var failed []error
	ctx = eventlog.AsProduct(ctx)
	for _, seen := range due {
		err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
			report, err := lockReport(ctx, tx, seen.TenantID, seen.ID)
			if errors.Is(err, ErrNotFound) || err == nil && !report.NextRunAt.Equal(seen.NextRunAt) {
				return nil // it was deleted or changed, or another process starts it
			}
			if err != nil {
				return err
			}
			report.NextRunAt = report.Schedule.next(now)
			var b sqldb.Batch
			if err := updateReport(&b, report); err != nil {
				return err
			}
			if !inactive[report.TenantID] {
				if _, err := r.enqueue(ctx, tx, &b, report, true); err != nil && !errors.Is(err, ErrUnderway) {
					return err
				}
			}
			return tx.Send(ctx, &b)
		})
		if err != nil { // the others do not wait for this one
			failed = append(failed, fmt.Errorf("start report %s: %w", seen.ID, err))
		}
	}
	r.jobs.Wake()
	return len(due) == dueAtOnce, errors.Join(failed...)
}

// removeOld deletes runs that are kept no longer.
func (r *Registry) removeOld(ctx context.Context) (more bool, err error) {
	old, err := selectOldRuns(ctx, r.db, r.now().Add(-KeptFor), dueAtOnce)
	if err != nil || len(old) == 0 {
		return false, err
	}
	for _, run := range old { // one at a time, because each may have many rows
		err = r.db.Tx(ctx, func(tx *sqldb.Tx) error {
			var b sqldb.Batch
			deleteRun(&b, run.TenantID, run.ReportID, run.ID)
			return tx.Send(ctx, &b)
		})
		if err != nil {
			return false, fmt.Errorf("remove run %s: %w", run.ID, err)
		}
	}
	return len(old) == dueAtOnce, nil
}
