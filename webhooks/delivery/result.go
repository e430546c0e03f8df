package delivery

import (
	"context"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

const (
	// recordTime bounds the time for storing results: after that the attempts are repeated.
	recordTime = 15 * time.Second
	// failingFor is how long attempts must have failed for the event subscription_failing.
	failingFor = time.Hour
)

// queueResults queues the results of attempts, which are committed together.
func queueResults(b *sqldb.Batch, results []func(*sqldb.Batch)) {
	for _, queue := range results {
		queue(b)
	}
}

// record stores the result of an attempt: the delivery has ended, or has a next attempt, or is a
// dead letter. A result that cannot be stored is logged, and the attempt is repeated.
func (l *lane) record(ctx context.Context, d *Delivery, res result) {
	q := l.queue
	stored := context.WithoutCancel(ctx) // also if the stop of the process ends ctx
	now := q.clock()
	after := *d
	after.Attempts = append(append([]Attempt(nil), d.Attempts...), res.Attempt)
	note := l.outcome(res.ok(), now)
	var err error
	switch {
	case res.ok():
		err = q.results.Commit(stored, func(b *sqldb.Batch) {
			queueFinish(b, &after, Delivered, "", 0)
			note(b)
		})
	case len(after.Attempts) < MaxAttempts:
		due := now.Add(pause(len(after.Attempts), res.asked)).UnixMicro() - l.offset
		err = q.results.Commit(stored, func(b *sqldb.Batch) {
			queueFinish(b, &after, Retrying, responseText(res.response), due)
			note(b)
		})
	default:
		err = q.exhausted(ctx, l, &after, res, note)
	}
	if err != nil {
		l.failed(ctx, "store result of webhook delivery", err)
	}
	if !res.ok() {
		if err := l.noteFailing(ctx, now); err != nil {
			l.failed(ctx, "note failing webhook subscription", err)
		}
	}
}

// queueFinish queues the result of the last attempt of a delivery.
func queueFinish(b *sqldb.Batch, d *Delivery, s Status, response string, due int64) {
	b.Queue(finish, []any{
		d.TenantID, d.SubscriptionID, d.ID, string(s), asJSON(d.Attempts), response, due, int64(len(d.Attempts) - 1),
	}, nil)
}

func responseText(r *Response) string {
	if r == nil {
		return ""
	}
	return asJSON(r)
}

// outcome returns the statement that stores what the result of an attempt says of the receiver,
// or one that does nothing.
func (l *lane) outcome(ok bool, now time.Time) func(*sqldb.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sql := ""
	switch {
	case ok && (!l.failingSince.IsZero() || now.Sub(l.successNoted) >= time.Second):
		sql = noteSuccess
		l.failingSince, l.failingNoted, l.successNoted = time.Time{}, false, now
	case !ok && l.failingSince.IsZero():
		sql = noteFailure
		l.failingSince = now
	default:
		return func(*sqldb.Batch) {}
	}
	return func(b *sqldb.Batch) {
		b.Queue(sql, []any{l.key.tenantID, l.key.subscriptionID, now.UnixMicro()}, nil)
	}
}

// noteFailing records the event that the receiver has failed for long, once.
func (l *lane) noteFailing(ctx context.Context, now time.Time) error {
	l.mu.Lock()
	since, noted := l.failingSince, l.failingNoted
	l.mu.Unlock()
	if noted || since.IsZero() || now.Sub(since) < failingFor {
		return nil
	}
	s, err := l.current(ctx)
	if err != nil {
		return err
	}
	err = l.queue.db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, noteFailing, l.key.tenantID, l.key.subscriptionID, now.Add(-failingFor).UnixMicro())
		if err != nil || n == 0 {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, l.key.tenantID, subscriptionFailing(ctx, *s, since))
		return tx.Send(ctx, &b)
	})
	if err == nil {
		l.mu.Lock()
		l.failingNoted = true
		l.mu.Unlock()
	}
	return err
}
