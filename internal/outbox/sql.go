package outbox

import (
	"context"
	"time"
)

// page is how many jobs are looked at at once.
const page = 50

// due are the jobs whose time has come, the longest overdue first.
func (o *Outbox) due(ctx context.Context) (due []Job, err error) {
	rows, err := o.db.Query(ctx, `
		SELECT tenant_id, id, kind, payload, attempts, created_at, due_at FROM outbox WHERE due_at <= $1 ORDER BY due_at LIMIT $2`,
		o.clock().UnixMicro(), int64(page))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var job Job
		var attempts, created int64
		if err := rows.Scan(&job.TenantID, &job.ID, &job.Kind, &job.payload, &attempts, &created, &job.due); err != nil {
			return nil, err
		}
		job.Attempt, job.CreatedAt = int(attempts)+1, time.UnixMicro(created).UTC()
		due = append(due, job)
	}
	return due, rows.Err()
}

// claim takes a job for as long as the lease lasts. It reports whether it is ours.
func (o *Outbox) claim(ctx context.Context, job *Job) (bool, error) {
	until := o.clock().Add(lease).UnixMicro()
	n, err := o.db.Exec(ctx, `UPDATE outbox SET due_at = $4, attempts = $5 WHERE tenant_id = $1 AND id = $2 AND due_at = $3`,
		job.TenantID, job.ID, job.due, until, int64(job.Attempt))
	job.due = until
	return n == 1, err
}

// done removes a job.
func (o *Outbox) done(ctx context.Context, job Job) error {
	_, err := o.db.Exec(ctx, `DELETE FROM outbox WHERE tenant_id = $1 AND id = $2 AND due_at = $3`, job.TenantID, job.ID, job.due)
	return err
}

// again lets a job be tried later.
func (o *Outbox) again(ctx context.Context, job Job, after time.Duration) error {
	_, err := o.db.Exec(ctx, `UPDATE outbox SET due_at = $4 WHERE tenant_id = $1 AND id = $2 AND due_at = $3`,
		job.TenantID, job.ID, job.due, o.clock().Add(after).UnixMicro())
	return err
}
