package delivery

import (
	"context"
	"errors"
	"time"

	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

const (
	collectEvery = time.Minute
	// collectedTogether is how many rows one statement deletes.
	collectedTogether = 500
	// maxFinished is how many finished deliveries of a subscription are stored; the oldest
	// beyond it are deleted before their time.
	maxFinished = 100_000

	purgeKind = "webhook_purge"
)

// purgeJob is the payload of a job of purgeKind.
type purgeJob struct {
	SubscriptionID string `json:"subscription_id"`
}

const (
	// selectLanes lists the lanes with rows to delete: finished deliveries before $4 or beyond $6,
	// and dead letters that have expired at $5. So lanes without any cost no statements. Scalar
	// subqueries are read for each row by an index; EXISTS might become a join with a scan.
	selectLanes = `
		SELECT l.tenant_id, l.subscription_id, l.clock_offset, l.paused_at FROM webhook_lanes AS l
		WHERE (l.tenant_id, l.subscription_id) > ($1, $2) AND (
			(SELECT d.id FROM webhook_deliveries AS d
				WHERE d.tenant_id = l.tenant_id AND d.subscription_id = l.subscription_id AND d.id < $4 AND d.due_at = 0 ORDER BY d.id LIMIT 1) IS NOT NULL
			OR (SELECT d.id FROM webhook_deliveries AS d
				WHERE d.tenant_id = l.tenant_id AND d.subscription_id = l.subscription_id AND d.due_at = 0 ORDER BY d.id DESC LIMIT 1 OFFSET $6) IS NOT NULL
			OR (SELECT MIN(m.expires_at) FROM webhook_dead_letters AS m
				WHERE m.tenant_id = l.tenant_id AND m.subscription_id = l.subscription_id) <= CASE WHEN l.paused_at > 0 THEN l.paused_at ELSE $5 END - l.clock_offset)
		ORDER BY l.tenant_id, l.subscription_id LIMIT $3`

	deleteFinished = `
		DELETE FROM webhook_deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND id IN (
			SELECT id FROM webhook_deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND id < $3 AND due_at = 0 ORDER BY id LIMIT $4)`
	selectNth = `SELECT id FROM webhook_deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND due_at = 0 ORDER BY id DESC LIMIT 1 OFFSET $3`

	deleteExpiredDead = `
		DELETE FROM webhook_dead_letters WHERE tenant_id = $1 AND subscription_id = $2 AND id IN (
			SELECT id FROM webhook_dead_letters WHERE tenant_id = $1 AND subscription_id = $2 AND expires_at <= $3 ORDER BY expires_at LIMIT $4)`

	purgeDeliveries = `
		DELETE FROM webhook_deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND id IN (
			SELECT id FROM webhook_deliveries WHERE tenant_id = $1 AND subscription_id = $2 ORDER BY id LIMIT $3)`
	purgeDead = `
		DELETE FROM webhook_dead_letters WHERE tenant_id = $1 AND subscription_id = $2 AND id IN (
			SELECT id FROM webhook_dead_letters WHERE tenant_id = $1 AND subscription_id = $2 ORDER BY id LIMIT $3)`
)

// collect deletes finished deliveries and expired dead letters until ctx ends.
func (q *Queue) collect(ctx context.Context) {
	jobs.Loop{Name: "collect webhook deliveries", Every: collectEvery, Logger: q.log}.Run(ctx, jobs.Once(q.Collect))
}

// Collect deletes the finished deliveries that are past their retention or too many, and the
// dead letters that have expired. Several processes may do so at once.
func (q *Queue) Collect(ctx context.Context) error {
	var after laneKey
	for {
		page, last, err := q.lanePage(ctx, after)
		if err != nil {
			return err
		}
		for _, l := range page {
			if err := q.collectLane(ctx, l); err != nil {
				return err
			}
		}
		if len(page) < collectedTogether {
			return nil
		}
		after = last
	}
}

// clockedLane is a lane with its clock.
type clockedLane struct {
	laneKey
	offset, paused int64
}

func (q *Queue) lanePage(ctx context.Context, after laneKey) (page []clockedLane, last laneKey, err error) {
	now := q.clock()
	rows, err := q.db.Query(ctx, selectLanes, after.tenantID, after.subscriptionID, int64(collectedTogether), q.keptSince(now), now.UnixMicro(), int64(maxFinished))
	if err != nil {
		return nil, last, err
	}
	defer rows.Close()
	for rows.Next() {
		var l clockedLane
		if err := rows.Scan(&l.tenantID, &l.subscriptionID, &l.offset, &l.paused); err != nil {
			return nil, last, err
		}
		page = append(page, l)
		last = l.laneKey
	}
	return page, last, rows.Err()
}

// keptSince returns the id below which finished deliveries are past their retention.
func (q *Queue) keptSince(now time.Time) string {
	return id.Earliest(id.WebhookDelivery, now.Add(-q.retention))
}

// collectLane deletes the rows of a lane that [Queue.Collect] deletes.
func (q *Queue) collectLane(ctx context.Context, l clockedLane) error {
	before := q.keptSince(q.clock())
	var nth string
	err := q.db.QueryRow(ctx, selectNth, l.tenantID, l.subscriptionID, int64(maxFinished)).Scan(&nth)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return err
	}
	if err := q.deleteAll(ctx, deleteFinished, l.tenantID, l.subscriptionID, max(before, nth), int64(collectedTogether)); err != nil {
		return err
	}
	now := q.clock().UnixMicro()
	if l.paused > 0 { // the clock has stopped
		now = l.paused
	}
	return q.deleteAll(ctx, deleteExpiredDead, l.tenantID, l.subscriptionID, now-l.offset, int64(collectedTogether))
}

// deleteAll repeats a statement that deletes some rows until it deletes fewer.
func (q *Queue) deleteAll(ctx context.Context, sql string, args ...any) error {
	for {
		var n int64
		err := q.db.Tx(ctx, func(tx *sqldb.Tx) (err error) {
			n, err = tx.Exec(ctx, sql, args...)
			return err
		})
		if err != nil || n < collectedTogether {
			return err
		}
	}
}

// purge deletes the rows of a deleted subscription.
func (q *Queue) purge(ctx context.Context, job jobs.Job) error {
	var p purgeJob
	if err := job.Read(&p); err != nil {
		return errors.Join(err, jobs.ErrDrop)
	}
	if err := q.deleteAll(ctx, purgeDeliveries, job.TenantID, p.SubscriptionID, int64(collectedTogether)); err != nil {
		return err
	}
	return q.deleteAll(ctx, purgeDead, job.TenantID, p.SubscriptionID, int64(collectedTogether))
}
