package reporting

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

// The kinds of jobs.
const (
	jobRun  = "report.run"
	jobMail = "mail.report"
)

// runJob is a run of a report.
type runJob struct {
	Report string `json:"report"`
	Run    string `json:"run"`
}

// register registers the jobs. A process runs two reports at the same time, so that one of them does
// not delay all others.
func (r *Registry) register() {
	r.jobs.Register(jobs.Kind{
		Name: jobRun, Concurrency: 2, Attempts: 5, Timeout: MaxTime + time.Minute,
		Handle: func(ctx context.Context, job jobs.Job) error {
			var j runJob
			if err := job.Read(&j); err != nil {
				return errors.Join(err, jobs.ErrDrop)
			}
			return r.run(ctx, job.TenantID, j)
		},
		Dead: func(ctx context.Context, tx *sqldb.Tx, job jobs.Job, _ error) error {
			var j runJob
			if err := job.Read(&j); err != nil {
				return err
			}
			run, err := selectRun(ctx, tx, job.TenantID, j.Report, j.Run)
			if errors.Is(err, ErrRunNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			run.Failure = &Failure{"internal_error", "the report failed; the operator finds the cause in the log"}
			if err = r.end(ctx, tx, run, ""); errors.Is(err, errLost) {
				return nil
			}
			return err
		},
	})
	r.jobs.Register(jobs.Kind{Name: jobMail, Handle: func(ctx context.Context, job jobs.Job) error {
		var j mailJob
		if err := job.Read(&j); err != nil {
			return errors.Join(err, jobs.ErrDrop)
		}
		return r.send(ctx, job.TenantID, j)
	}})
}

var (
	// errLost: another attempt has taken the run over, or it was deleted.
	errLost = errors.New("the run belongs to another attempt")
	// errTime: the report took longer than [MaxTime].
	errTime = errors.New("time limit of report")
)

// production is one attempt of a run.
type production struct {
	*Registry
	run       Run
	claim     string
	pending   [][]any
	chunks    int
	truncated bool
	figures   []Figure
}

// run runs a report. It has no effect if the run has ended.
func (r *Registry) run(ctx context.Context, tenantID string, j runJob) error {
	p := &production{Registry: r, claim: rand.Text()}
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) (err error) {
		p.run, err = claimRun(ctx, tx, tenantID, j.Report, j.Run, p.claim, r.now())
		return err
	})
	if errors.Is(err, ErrRunNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("begin report: %w", err)
	}
	limited, stop := context.WithTimeoutCause(ctx, MaxTime, errTime)
	defer stop()
	err = p.produce(limited)
	failure, failed := errors.AsType[*Failure](err)
	switch {
	case errors.Is(err, errLost):
		return nil
	case failed:
		p.run.Failure = failure
	case err != nil && context.Cause(limited) == errTime:
		p.run.Failure = &Failure{"time_limit_exceeded", fmt.Sprintf("a report may take %d minutes; restrict it further", int(MaxTime.Minutes()))}
	case err != nil:
		return fmt.Errorf("run report: %w", err)
	}
	p.run.Truncated, p.run.Figures = p.truncated, p.figures
	err = r.db.Tx(ctx, func(tx *sqldb.Tx) error { return r.end(ctx, tx, p.run, p.claim) })
	if errors.Is(err, errLost) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end report: %w", err)
	}
	r.jobs.Wake()
	return nil
}

// produce stores the rows of the run.
func (p *production) produce(ctx context.Context) (err error) {
	switch p.run.Kind {
	case SignInsByMethod:
		err = p.signIns(ctx)
	case MFACoverage:
		err = p.coverage(ctx)
	case UnusedApplications:
		err = p.unused(ctx)
	case AccessReview:
		err = p.review(ctx)
	default:
		err = &Failure{"kind_unknown", "this version does not know the kind of the report"}
	}
	if err == nil && len(p.pending) > 0 {
		err = p.flush(ctx)
	}
	return err
}

// add adds a row. Rows beyond [MaxRows] are counted by the figures, but not stored.
func (p *production) add(ctx context.Context, values ...any) error {
	if p.full() {
		p.truncated = true
		return nil
	}
	if p.pending = append(p.pending, values); len(p.pending) < chunkRows {
		return nil
	}
	return p.flush(ctx)
}

// full reports whether the run has as many rows as it may have.
func (p *production) full() bool { return p.chunks*chunkRows+len(p.pending) >= MaxRows }

// flush stores the pending rows as a chunk.
func (p *production) flush(ctx context.Context) error {
	text, err := json.Marshal(p.pending)
	if err != nil {
		return fmt.Errorf("rows of report: %w", err)
	}
	err = p.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := countRows(ctx, tx, p.run, p.claim, len(p.pending)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO report_chunks (tenant_id, run_id, chunk, chunk_rows) VALUES ($1, $2, $3, $4)`,
			p.run.TenantID, p.run.ID, int64(p.chunks), string(text))
		return err
	})
	if err != nil {
		return err
	}
	p.chunks++
	p.pending = p.pending[:0]
	return nil
}

// figure adds a figure of the summary. The empty label is that of all.
func (p *production) figure(name, label string, value int) {
	p.figures = append(p.figures, Figure{name, document.OrNull(label), value})
}

// orNull returns a time as a value of a row.
func orNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// end ends a run that belongs to an attempt (empty: to any), with the event and the mails. It fails
// with errLost.
func (r *Registry) end(ctx context.Context, tx *sqldb.Tx, run Run, claim string) error {
	run.State, run.FinishedAt = Completed, r.now()
	if run.Failure != nil {
		run.State = Failed
	}
	if err := endRun(ctx, tx, run, claim); err != nil {
		return err
	}
	var b sqldb.Batch
	if run.State == Completed {
		for _, userID := range run.Recipients {
			insertMail(&b, run, userID)
			r.jobs.Enqueue(&b, run.TenantID, jobMail, mailJob{run.ReportID, run.ID, userID})
		}
	}
	origin := eventlog.Origin{Actor: run.CreatedBy}
	eventlog.Append(&b, run.TenantID, completed(eventlog.WithOrigin(ctx, func() eventlog.Origin { return origin }), run))
	return tx.Send(ctx, &b)
}
