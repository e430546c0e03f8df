package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/subscription"
)

// DeadLetter is a delivery that was given up.
type DeadLetter struct {
	ID             string
	TenantID       string
	SubscriptionID string
	DeliveryID     string
	EventID        string
	EventType      string
	Event          jsontext.Value // the body
	Reason         DeadReason
	State          DeadState
	Attempts       []Attempt
	LastResponse   *Response // nil: there was none
	DeadLetteredAt time.Time
	ExpiresAt      time.Time // without an action until then, it is deleted

	ReplayedDeliveryID string
	DroppedBy          string
	DroppedAt          time.Time
}

// DeadReason is the reason of a dead letter.
type DeadReason string

// The reasons.
const (
	AttemptsExhausted    DeadReason = "attempts_exhausted"
	SubscriptionDisabled DeadReason = "subscription_disabled"
)

// DeadState is the state of a dead letter.
type DeadState string

// The states of a dead letter. A queued one can be replayed or dropped, once.
const (
	Queued   DeadState = "queued"
	Replayed DeadState = "replayed"
	Dropped  DeadState = "dropped"
)

// deadFor is how long a dead letter is stored without an action.
const deadFor = 7 * 24 * time.Hour

var (
	// ErrDeadLetterNotFound is returned for a dead letter that does not exist.
	ErrDeadLetterNotFound = errors.New("dead-letter entry not found")
	// ErrDisabled is returned for a new delivery to a disabled subscription.
	ErrDisabled = errors.New("the subscription is disabled")
)

// NotQueuedError is returned for a dead letter that was replayed or dropped.
type NotQueuedError struct{ State DeadState }

func (e *NotQueuedError) Error() string {
	return fmt.Sprintf("the dead-letter entry is %s, not queued", e.State)
}

const (
	deadColumns = `
		e.tenant_id, e.subscription_id, e.id, e.delivery_id, e.event_id, e.event_type, e.event, e.reason, e.state, e.history, e.last_response,
		e.dead_lettered_at, e.expires_at + COALESCE(l.clock_offset, 0), e.replayed_delivery_id, e.dropped_by, e.dropped_at`
	fromDead = ` FROM webhook_dead_letters AS e LEFT JOIN webhook_lanes AS l ON l.tenant_id = e.tenant_id AND l.subscription_id = e.subscription_id `

	insertDead = `
		INSERT INTO webhook_dead_letters (tenant_id, subscription_id, id, delivery_id, event_id, event_type, event, reason, state, history,
			last_response, dead_lettered_at, expires_at, replayed_delivery_id, dropped_by, dropped_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9, $10, $11, $12, '', '', 0)`
	selectDead   = `SELECT ` + deadColumns + fromDead + `WHERE e.tenant_id = $1 AND e.id = $2`
	selectQueued = `
		SELECT ` + deadColumns + fromDead + `
		WHERE e.tenant_id = $1 AND e.subscription_id = $2 AND e.state = $3 AND e.id < $4 ORDER BY e.id DESC LIMIT $5`
	// selectReplay pages through the queued dead letters of a time, the oldest first.
	selectReplay = `
		SELECT id FROM webhook_dead_letters
		WHERE tenant_id = $1 AND subscription_id = $2 AND state = 'queued' AND id > $3 AND dead_lettered_at >= $4 AND dead_lettered_at < $5
		ORDER BY id LIMIT $6`

	replayDead = `
		UPDATE webhook_dead_letters SET state = 'replayed', replayed_delivery_id = $3
		WHERE tenant_id = $1 AND id = $2 AND state = 'queued'
		RETURNING id`
	dropDead = `
		UPDATE webhook_dead_letters SET state = 'dropped', dropped_by = $3, dropped_at = $4
		WHERE tenant_id = $1 AND id = $2 AND state = 'queued'
		RETURNING id`
)

func scanDead(rows *sqldb.Rows, err error) (found []DeadLetter, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var e DeadLetter
		var event, history, response string
		var at, expires, dropped int64
		err := rows.Scan(&e.TenantID, &e.SubscriptionID, &e.ID, &e.DeliveryID, &e.EventID, &e.EventType, &event, &e.Reason, &e.State, &history,
			&response, &at, &expires, &e.ReplayedDeliveryID, &e.DroppedBy, &dropped)
		if err == nil {
			err = json.Unmarshal([]byte(history), &e.Attempts)
		}
		if err == nil && response != "" {
			e.LastResponse = new(Response)
			err = json.Unmarshal([]byte(response), e.LastResponse)
		}
		if err != nil {
			return nil, err
		}
		e.Event = jsontext.Value(event)
		e.DeadLetteredAt, e.ExpiresAt, e.DroppedAt = sqldb.Instant(at), sqldb.Instant(expires), sqldb.Instant(dropped)
		found = append(found, e)
	}
	return found, rows.Err()
}

// exhausted makes a delivery whose last attempt has failed a dead letter.
func (q *Queue) exhausted(ctx context.Context, l *lane, d *Delivery, res result, note func(*sqldb.Batch)) error {
	s, err := l.current(ctx)
	if err != nil {
		return err
	}
	body, err := q.body(ctx, d)
	if err != nil {
		return err
	}
	now := q.clock()
	err = q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, finishLast, d.TenantID, d.SubscriptionID, d.ID, string(DeadLettered), asJSON(d.Attempts),
			responseText(res.response), int64(len(d.Attempts)-1))
		if err != nil || n == 0 {
			return err
		}
		var b sqldb.Batch
		note(&b)
		e := q.queueDead(&b, d, body, AttemptsExhausted, responseText(res.response), now, l.offset)
		// The dead letter of an event about webhooks has no event, or subscriptions whose
		// receivers fail would multiply each other's events.
		if eventlog.Type(d.EventType).Category() != "webhook" {
			eventlog.Append(&b, d.TenantID, deadLettered(ctx, *s, e))
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return err
	}
	q.stats.deadLettered.Add(1)
	if res.gone() {
		return q.disable(ctx, d.TenantID, d.SubscriptionID)
	}
	return nil
}

const finishLast = `
	UPDATE webhook_deliveries SET status = $4, attempts = attempts + 1, history = $5, last_response = $6, due_at = 0
	WHERE tenant_id = $1 AND subscription_id = $2 AND id = $3 AND attempts = $7 AND due_at > 0`

// queueDead queues the dead letter of a delivery. Its id follows from the delivery's, so that
// there is one.
func (q *Queue) queueDead(b *sqldb.Batch, d *Delivery, body []byte, reason DeadReason, response string, now time.Time, offset int64) DeadLetter {
	e := DeadLetter{
		ID:       id.DeadLetter + strings.TrimPrefix(d.ID, id.WebhookDelivery),
		TenantID: d.TenantID, SubscriptionID: d.SubscriptionID, DeliveryID: d.ID, EventID: d.EventID, EventType: d.EventType,
		Event: body, Reason: reason, State: Queued, Attempts: d.Attempts, DeadLetteredAt: now, ExpiresAt: now.Add(deadFor),
	}
	b.Queue(insertDead, []any{
		e.TenantID, e.SubscriptionID, e.ID, e.DeliveryID, e.EventID, e.EventType, string(body), string(reason), asJSON(listed(e.Attempts)), response,
		now.UnixMicro(), now.Add(deadFor).UnixMicro() - offset,
	}, nil)
	return e
}

// listed is a list that is never null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// drainedTogether is how many deliveries of a disabled subscription become dead letters at once.
const drainedTogether = 100

const (
	selectPending = `
		SELECT ` + deliveryColumns + `, d.last_response FROM webhook_deliveries AS d
		WHERE d.tenant_id = $1 AND d.subscription_id = $2 AND d.due_at > 0 ORDER BY d.due_at, d.id LIMIT $3`
)

// drain makes the pending deliveries of a disabled subscription dead letters, some at a time.
func (l *lane) drain(ctx context.Context) error {
	q := l.queue
	l.mu.Lock()
	l.unread = false
	l.mu.Unlock()
	found, err := scanPending(q.db.Query(ctx, selectPending, l.key.tenantID, l.key.subscriptionID, int64(drainedTogether)))
	var unknown, readable []*Delivery
	l.mu.Lock()
	for _, d := range found {
		if !l.known[d.ID] { // others are being sent: later, when their result is stored
			unknown = append(unknown, d)
		}
	}
	l.mu.Unlock()
	if err == nil {
		readable, err = q.withEvents(ctx, l.key.tenantID, unknown)
	}
	if err == nil {
		err = l.cancelRest(ctx, unknown, readable)
	}
	if err == nil {
		err = q.buryAll(ctx, readable, l.offset)
	}
	if err != nil || len(found) == drainedTogether {
		l.readAgain()
	}
	return err
}

func (q *Queue) buryAll(ctx context.Context, deliveries []*Delivery, offset int64) error {
	bodies := make([][]byte, len(deliveries))
	for i, d := range deliveries {
		body, err := q.body(ctx, d)
		if err != nil {
			return err
		}
		bodies[i] = body
	}
	now := q.clock()
	return q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b, dead sqldb.Batch
		for i, d := range deliveries {
			b.Queue(bury, []any{d.TenantID, d.SubscriptionID, d.ID, string(DeadLettered)}, func(rows *sqldb.Rows) error {
				if rows.Next() {
					q.queueDead(&dead, d, bodies[i], SubscriptionDisabled, d.response, now, offset)
				}
				return rows.Err()
			})
		}
		if err := tx.Send(ctx, &b); err != nil || dead.Len() == 0 {
			return err
		}
		return tx.Send(ctx, &dead)
	})
}

// DeadLetter reads a dead letter. It fails with [ErrDeadLetterNotFound].
func (q *Queue) DeadLetter(ctx context.Context, tenantID, entryID string) (DeadLetter, error) {
	if !sqldb.IsText(entryID) {
		return DeadLetter{}, ErrDeadLetterNotFound
	}
	found, err := scanDead(q.db.Query(ctx, selectDead, tenantID, entryID))
	if err == nil && len(found) == 0 {
		err = ErrDeadLetterNotFound
	}
	if err != nil {
		return DeadLetter{}, err
	}
	return found[0], nil
}

// DeadLetters lists the dead letters of a subscription in a state, newest first: at most limit
// after the one with an id; empty: from the start.
func (q *Queue) DeadLetters(ctx context.Context, tenantID, subscriptionID string, state DeadState, after string, limit int) ([]DeadLetter, error) {
	if after == "" {
		after = id.DeadLetter + "_~" // after all ids
	}
	found, err := scanDead(q.db.Query(ctx, selectQueued, tenantID, subscriptionID, string(state), after, int64(limit)))
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return found, nil
}

// Replay queues a new delivery of the event of a dead letter. It fails with
// [ErrDeadLetterNotFound], [*NotQueuedError] or [ErrDisabled]. One of several concurrent
// replays and drops succeeds.
func (q *Queue) Replay(ctx context.Context, tenantID, entryID string) (deliveryID string, err error) {
	var of batch
	err = q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		e, s, err := q.queuedDead(ctx, tx, tenantID, entryID)
		if err != nil {
			return err
		}
		if s.State != subscription.Enabled {
			return ErrDisabled
		}
		d := again(s, e.EventID, e.EventType, e.Event, q.clock())
		deliveryID, e.State, e.ReplayedDeliveryID = d.ID, Replayed, d.ID
		of = batch{subscription: &s, deliveries: []*Delivery{d}}
		var b sqldb.Batch
		b.Queue(replayDead, []any{tenantID, entryID, d.ID}, nil)
		q.queueBatch(&b, &of)
		eventlog.Append(&b, tenantID, deadLetterReplayed(ctx, s, e))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return "", fmt.Errorf("replay dead letter: %w", err)
	}
	q.lanes.start(&of, true)
	return deliveryID, nil
}

// Drop drops a dead letter: it can no longer be replayed. It fails with [ErrDeadLetterNotFound]
// or [*NotQueuedError].
func (q *Queue) Drop(ctx context.Context, tenantID, entryID string) (e DeadLetter, err error) {
	err = q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var s subscription.Subscription
		if e, s, err = q.queuedDead(ctx, tx, tenantID, entryID); err != nil {
			return err
		}
		e.State, e.DroppedBy, e.DroppedAt = Dropped, eventlog.OriginOf(ctx).Actor.ID, q.clock().UTC().Truncate(time.Microsecond)
		var b sqldb.Batch
		b.Queue(dropDead, []any{tenantID, entryID, e.DroppedBy, e.DroppedAt.UnixMicro()}, nil)
		eventlog.Append(&b, tenantID, deadLetterDropped(ctx, s, e))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return DeadLetter{}, fmt.Errorf("drop dead letter: %w", err)
	}
	return e, nil
}

// queuedDead reads a queued dead letter and its subscription in a transaction.
func (q *Queue) queuedDead(ctx context.Context, tx *sqldb.Tx, tenantID, entryID string) (e DeadLetter, s subscription.Subscription, err error) {
	found, err := scanDead(tx.Query(ctx, selectDead, tenantID, entryID))
	switch {
	case err != nil:
		return e, s, err
	case len(found) == 0:
		return e, s, ErrDeadLetterNotFound
	case found[0].State != Queued:
		return e, s, &NotQueuedError{found[0].State}
	}
	s, err = subscription.Select(ctx, tx, tenantID, found[0].SubscriptionID)
	if errors.Is(err, subscription.ErrNotFound) { // deleted, with its dead letters
		err = ErrDeadLetterNotFound
	}
	return found[0], s, err
}

// Selection selects queued dead letters of a subscription: those with some ids, or all of a
// time.
type Selection struct {
	IDs          []string
	Since, Until time.Time // when they became dead letters; zero: no limit. Until is excluded
}

// MaxReplay is how many dead letters one call replays at most.
const MaxReplay = 10_000

// replayPage is how many dead letters one transaction replays.
const replayPage = 200

// ReplayMany replays the queued dead letters of a subscription that a selection names, the
// oldest first and at most [MaxReplay], and returns how many. Others, such as those that are
// replayed concurrently, are skipped. It fails with [ErrDisabled], and for an id of another
// subscription with [ErrDeadLetterNotFound].
func (q *Queue) ReplayMany(ctx context.Context, tenantID, subscriptionID string, sel Selection) (replayed int, err error) {
	if !sqldb.IsText(subscriptionID) {
		return 0, subscription.ErrNotFound
	}
	if len(sel.IDs) > 0 {
		ids := slices.Compact(slices.Sorted(slices.Values(sel.IDs)))
		if err := q.checkEntries(ctx, tenantID, subscriptionID, ids); err != nil {
			return 0, err
		}
		for page := range slices.Chunk(ids, replayPage) {
			n, err := q.replayPage(ctx, tenantID, subscriptionID, page)
			if replayed += n; err != nil {
				return replayed, err
			}
		}
		return replayed, nil
	}
	from, until, after := sqldb.Micros(sel.Since), never, ""
	if !sel.Until.IsZero() {
		until = sel.Until.UnixMicro()
	}
	for replayed < MaxReplay {
		page, err := sqldb.Texts(q.db.Query(ctx, selectReplay, tenantID, subscriptionID, after, from, until, int64(replayPage)))
		if err != nil {
			return replayed, fmt.Errorf("replay dead letters: %w", err)
		}
		n, err := q.replayPage(ctx, tenantID, subscriptionID, page)
		if replayed += n; err != nil || len(page) < replayPage {
			return replayed, err
		}
		after = page[len(page)-1]
	}
	return replayed, nil
}

// checkEntries fails with [ErrDeadLetterNotFound] unless all ids are of dead letters of a
// subscription.
func (q *Queue) checkEntries(ctx context.Context, tenantID, subscriptionID string, entryIDs []string) error {
	var b sqldb.Batch
	for _, entryID := range entryIDs {
		if !sqldb.IsText(entryID) {
			return ErrDeadLetterNotFound
		}
		b.Queue(`SELECT subscription_id FROM webhook_dead_letters WHERE tenant_id = $1 AND id = $2`, []any{tenantID, entryID}, func(rows *sqldb.Rows) error {
			found, err := sqldb.Texts(rows, nil)
			if err == nil && (len(found) == 0 || found[0] != subscriptionID) {
				err = ErrDeadLetterNotFound
			}
			return err
		})
	}
	return q.db.Send(ctx, &b)
}

// replayPage replays those of some dead letters that are queued.
func (q *Queue) replayPage(ctx context.Context, tenantID, subscriptionID string, entryIDs []string) (replayed int, err error) {
	var of batch
	err = q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		replayed = 0
		s, err := subscription.Select(ctx, tx, tenantID, subscriptionID)
		if err != nil {
			return err
		}
		if s.State != subscription.Enabled {
			return ErrDisabled
		}
		var entries []DeadLetter
		var reads, writes sqldb.Batch
		for _, entryID := range entryIDs {
			reads.Queue(selectDead, []any{tenantID, entryID}, func(rows *sqldb.Rows) error {
				found, err := scanDead(rows, nil)
				entries = append(entries, found...)
				return err
			})
		}
		if reads.Len() == 0 {
			return nil
		}
		if err := tx.Send(ctx, &reads); err != nil {
			return err
		}
		of = batch{subscription: &s}
		var events []eventlog.Event
		for _, e := range entries {
			if e.State != Queued {
				continue
			}
			d := again(s, e.EventID, e.EventType, e.Event, q.clock())
			e.State, e.ReplayedDeliveryID = Replayed, d.ID
			writes.Queue(replayDead, []any{tenantID, e.ID, d.ID}, nil)
			of.deliveries = append(of.deliveries, d)
			events = append(events, deadLetterReplayed(ctx, s, e))
		}
		if replayed = len(of.deliveries); replayed == 0 {
			return nil
		}
		q.queueBatch(&writes, &of)
		eventlog.Append(&writes, tenantID, events...)
		return tx.Send(ctx, &writes)
	})
	if err != nil {
		return 0, fmt.Errorf("replay dead letters: %w", err)
	}
	if replayed > 0 {
		q.lanes.start(&of, true)
	}
	return replayed, nil
}
