package jobs

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

// Due describes rows for which a job runs again and again, such as feeds whose lists are fetched. Their
// table has the columns tenant_id, id and check_at, in microseconds since 1970 or [Never], and an index
// of check_at, tenant_id and id. The job sets the next check_at.
type Due struct {
	Table string
	Kind  string // of the jobs
	// Payload returns the payload of the job of a row.
	Payload func(id string) any
	// Again is when a row is due again if its job never sets check_at.
	Again time.Duration
}

// Never is the check_at of a row that is not due.
const Never = int64(1)<<62 - 1

// dueAtOnce bounds the rows of one call of [Queue.EnqueueDue].
const dueAtOnce = 50

// EnqueueDue enqueues the jobs of some rows that are due, those that are due for the longest time first.
// It reports whether there may be more. Every process may call it: a row leads to one job.
func (q *Queue) EnqueueDue(ctx context.Context, now time.Time, d Due) (more bool, err error) {
	found, err := selectDueRows(ctx, q.db, d.Table, now)
	if err != nil || len(found) == 0 {
		return false, err
	}
	again := now.Add(d.Again).UnixMicro()
	err = q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		for _, row := range found {
			claimed, err := claimDueRow(ctx, tx, d.Table, row, again)
			if err != nil {
				return err
			}
			if claimed {
				q.Enqueue(&b, row.tenantID, d.Kind, d.Payload(row.id))
			}
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return false, fmt.Errorf("%s: %w", d.Kind, err)
	}
	q.Wake()
	return true, nil
}
