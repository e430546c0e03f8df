package jobs

import (
	"context"
	"time"

	"stonetown/internal/sqldb"
)

const insertJob = `
	INSERT INTO jobs (tenant_id, id, kind, payload, attempts, created_at, due_at) VALUES ($1, $2, $3, $4, 0, $5, $5)`

const columns = `tenant_id, id, kind, payload, attempts, created_at, due_at`

const (
	selectDue = `SELECT ` + columns + ` FROM jobs WHERE kind = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3`

	selectAfter = `SELECT ` + columns + ` FROM jobs WHERE kind = $1 AND due_at <= $2 AND tenant_id > $4 ORDER BY tenant_id, due_at LIMIT $3`
)

// due reads the due jobs of some kinds, the longest overdue first: of each kind one more
// than can run, if there are that many.
func (q *Queue) due(ctx context.Context, free map[*lane]int) (map[*lane][]Job, error) {
	found := make(map[*lane][]Job)
	now := q.clock().UnixMicro()
	var b sqldb.Batch
	for l, n := range free {
		b.Queue(selectDue, []any{l.Name, now, int64(n + 1)}, func(rows *sqldb.Rows) (err error) {
			found[l], err = scan(rows)
			return err
		})
	}
	if b.Len() == 0 {
		return found, nil
	}
	return found, q.db.Send(ctx, &b)
}

// dueAfter reads some due jobs of the first tenant that has any, of those whose id follows
// another id.
func (q *Queue) dueAfter(ctx context.Context, l *lane, tenantID string) ([]Job, error) {
	rows, err := q.db.Query(ctx, selectAfter, l.Name, q.clock().UnixMicro(), int64(candidates), tenantID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found, err := scan(rows)
	for i := range found {
		if found[i].TenantID != found[0].TenantID {
			return found[:i], err
		}
	}
	return found, err
}

func scan(rows *sqldb.Rows) (found []Job, err error) {
	for rows.Next() {
		var job Job
		var attempts, created int64
		if err := rows.Scan(&job.TenantID, &job.ID, &job.Kind, &job.payload, &attempts, &created, &job.due); err != nil {
			return nil, err
		}
		job.Attempt, job.CreatedAt = int(attempts)+1, time.UnixMicro(created).UTC()
		found = append(found, job)
	}
	return found, rows.Err()
}

// claim takes a job for the duration of a lease. It reports false if another process has
// taken it. A stop of the process does not interrupt it: the statement can have taken the job
// although its result was not received, and then no process would run the job during the lease.
func (q *Queue) claim(ctx context.Context, l *lane, job *Job) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteFor)
	defer cancel()
	until := q.clock().Add(l.Lease).UnixMicro()
	n, err := q.db.Exec(ctx, `UPDATE jobs SET due_at = $4, attempts = $5 WHERE tenant_id = $1 AND id = $2 AND due_at = $3`,
		job.TenantID, job.ID, job.due, until, int64(job.Attempt))
	job.due = until
	return n == 1, err
}

// renew extends the lease of a job. It reports false if another process has taken the job.
func (q *Queue) renew(ctx context.Context, l *lane, job *Job) (bool, error) {
	until := max(q.clock().Add(l.Lease).UnixMicro(), job.due)
	n, err := q.db.Exec(ctx, `UPDATE jobs SET due_at = $4 WHERE tenant_id = $1 AND id = $2 AND due_at = $3`, job.TenantID, job.ID, job.due, until)
	if err == nil && n == 1 {
		job.due = until
	}
	return n == 1, err
}

// remove deletes a job, unless another process has taken it.
func (q *Queue) remove(ctx context.Context, job Job) error {
	_, err := q.db.Exec(ctx, deleteJob, job.TenantID, job.ID, job.due)
	return err
}

const deleteJob = `DELETE FROM jobs WHERE tenant_id = $1 AND id = $2 AND due_at = $3`

// again lets a job run again after a pause.
func (q *Queue) again(ctx context.Context, job Job, attempts int, after time.Duration) error {
	_, err := q.db.Exec(ctx, `UPDATE jobs SET due_at = $4, attempts = $5 WHERE tenant_id = $1 AND id = $2 AND due_at = $3`,
		job.TenantID, job.ID, job.due, q.clock().Add(after).UnixMicro(), int64(attempts))
	return err
}

// bury moves a job to the dead ones, unless another process has taken it.
func (q *Queue) bury(ctx context.Context, l *lane, job Job, last error) error {
	return q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, deleteJob, job.TenantID, job.ID, job.due)
		if err != nil || n == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO dead_jobs (tenant_id, id, kind, attempts, created_at, died_at) VALUES ($1, $2, $3, $4, $5, $6)`,
			job.TenantID, job.ID, job.Kind, int64(min(job.Attempt, l.Attempts)), job.CreatedAt.UnixMicro(), q.clock().UnixMicro())
		if err != nil {
			return err
		}
		return l.Dead(ctx, tx, job, last)
	})
}

// deleteDead deletes jobs that died before an instant.
func (q *Queue) deleteDead(ctx context.Context, before time.Time) error {
	_, err := q.db.Exec(ctx, `DELETE FROM dead_jobs WHERE died_at < $1`, before.UnixMicro())
	return err
}

// dueRow is a row of the table of a [Due].
type dueRow struct {
	tenantID, id string
	at           int64
}

func selectDueRows(ctx context.Context, db *sqldb.DB, table string, now time.Time) (found []dueRow, err error) {
	rows, err := db.Query(ctx, `SELECT tenant_id, id, check_at FROM `+table+` WHERE check_at <= $1 ORDER BY check_at, tenant_id, id LIMIT $2`, now.UnixMicro(), int64(dueAtOnce))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r dueRow
		if err := rows.Scan(&r.tenantID, &r.id, &r.at); err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

// claimDueRow sets when a row is due again. It reports false if the row was changed since it was read.
func claimDueRow(ctx context.Context, tx *sqldb.Tx, table string, r dueRow, again int64) (bool, error) {
	n, err := tx.Exec(ctx, `UPDATE `+table+` SET check_at = $4 WHERE tenant_id = $1 AND id = $2 AND check_at = $3`, r.tenantID, r.id, r.at, again)
	return n == 1, err
}
