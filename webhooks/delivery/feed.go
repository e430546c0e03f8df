package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/subscription"
)

// ErrNotFound is returned for a delivery that does not exist.
var ErrNotFound = errors.New("webhook delivery not found")

// ErrEventGone is returned for a delivery whose event is no longer stored.
var ErrEventGone = errors.New("the event of the delivery is no longer stored")

const (
	selectDelivery = `
		SELECT ` + deliveryColumns + `, COALESCE(l.clock_offset, 0)
		FROM webhook_deliveries AS d LEFT JOIN webhook_lanes AS l ON l.tenant_id = d.tenant_id AND l.subscription_id = d.subscription_id
		WHERE d.tenant_id = $1 AND d.id = $2`

	selectFeed = `
		SELECT ` + deliveryColumns + `, COALESCE(l.clock_offset, 0)
		FROM webhook_deliveries AS d LEFT JOIN webhook_lanes AS l ON l.tenant_id = d.tenant_id AND l.subscription_id = d.subscription_id
		WHERE d.tenant_id = $1 AND d.subscription_id = $2 AND d.id < $3 AND d.id >= $4 AND ($5 = '' OR d.status = $5) AND ($6 = '' OR d.event_type = $6)
		ORDER BY d.id DESC LIMIT $7`
)

// Filter selects the deliveries of a list; the zero value selects all.
type Filter struct {
	Status    Status
	EventType string
	Since     time.Time // when the delivery was created; to the millisecond
}

// List lists the deliveries of a subscription, newest first: at most limit after the one with an
// id; empty: from the start.
func (q *Queue) List(ctx context.Context, tenantID, subscriptionID string, f Filter, after string, limit int) ([]*Delivery, error) {
	if after == "" {
		after = id.WebhookDelivery + "_~" // after all ids
	}
	since := ""
	if !f.Since.IsZero() {
		since = id.Earliest(id.WebhookDelivery, f.Since)
	}
	found, err := scanFeed(q.db.Query(ctx, selectFeed, tenantID, subscriptionID, after, since, string(f.Status), f.EventType, int64(limit)))
	if err != nil {
		return nil, fmt.Errorf("list webhook deliveries: %w", err)
	}
	return found, nil
}

// Get reads a delivery. It fails with [ErrNotFound].
func (q *Queue) Get(ctx context.Context, tenantID, deliveryID string) (*Delivery, error) {
	if !sqldb.IsText(deliveryID) {
		return nil, ErrNotFound
	}
	found, err := scanFeed(q.db.Query(ctx, selectDelivery, tenantID, deliveryID))
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// Test queues a delivery of the event test.ping to a subscription, whatever its patterns are. It
// fails with [subscription.ErrNotFound] or [ErrDisabled].
func (q *Queue) Test(ctx context.Context, tenantID, subscriptionID string) (*Delivery, error) {
	var of batch
	err := q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		s, err := subscription.Select(ctx, tx, tenantID, subscriptionID)
		if err != nil {
			return err
		}
		if s.State != subscription.Enabled {
			return ErrDisabled
		}
		e := ping(ctx)
		e.TenantID = tenantID
		var event, b sqldb.Batch
		eventlog.Append(&event, tenantID, e) // locks the log, so that the position is its end
		if err := tx.Send(ctx, &event); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT position FROM event_heads WHERE tenant_id = $1`, tenantID).Scan(&e.Position); err != nil {
			return err
		}
		of = batch{subscription: &s, deliveries: []*Delivery{newDelivery(&s, &loggedEvent{Event: e}, nil, q.now())}}
		q.queueBatch(&b, &of)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return nil, fmt.Errorf("test webhook subscription: %w", err)
	}
	return q.startOne(&of), nil
}

// Redeliver queues a new delivery of the event of a delivery. It fails with [ErrNotFound],
// [ErrEventGone] or [ErrDisabled].
func (q *Queue) Redeliver(ctx context.Context, tenantID, deliveryID string) (*Delivery, error) {
	before, err := q.Get(ctx, tenantID, deliveryID)
	if err != nil {
		return nil, fmt.Errorf("redeliver: %w", err)
	}
	readable, err := q.withEvents(ctx, tenantID, []*Delivery{before})
	if err == nil && len(readable) == 0 {
		err = ErrEventGone
	}
	if err != nil {
		return nil, fmt.Errorf("redeliver: %w", err)
	}
	var of batch
	err = q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		s, err := subscription.Select(ctx, tx, tenantID, before.SubscriptionID)
		if errors.Is(err, subscription.ErrNotFound) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		if s.State != subscription.Enabled {
			return ErrDisabled
		}
		d := again(s, before.EventID, before.EventType, []byte(before.body), q.now())
		d.position, d.operations, d.size, d.event = before.position, before.operations, before.size, before.event
		of = batch{subscription: &s, deliveries: []*Delivery{d}}
		var b sqldb.Batch
		q.queueBatch(&b, &of)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return nil, fmt.Errorf("redeliver: %w", err)
	}
	return q.startOne(&of), nil
}

// again returns a new delivery of an event with a body; without one it is made from the log.
func again(s subscription.Subscription, eventID, eventType string, body []byte, now time.Time) *Delivery {
	return &Delivery{
		ID: id.NewOrdered(id.WebhookDelivery, now), TenantID: s.TenantID, SubscriptionID: s.ID, EventID: eventID, EventType: eventType,
		Status: Pending, CreatedAt: now, NextAttemptAt: now, body: string(body), size: int64(len(body)),
	}
}

// startOne starts the delivery of a batch of one, and returns its first state.
func (q *Queue) startOne(of *batch) *Delivery {
	first := *of.deliveries[0]
	q.lanes.start(of, true)
	return &first
}

// now has the precision of the database.
func (q *Queue) now() time.Time { return q.clock().UTC().Truncate(time.Microsecond) }

// scanFeed reads deliveryColumns and the offset of the clock.
func scanFeed(rows *sqldb.Rows, err error) ([]*Delivery, error) {
	var offset int64
	return scanDeliveries(rows, err, func() any { return &offset }, func(d *Delivery) {
		if d.due > 0 {
			d.NextAttemptAt = time.UnixMicro(d.due + offset).UTC()
		}
	})
}
