package delivery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/subscription"
)

const (
	// readerName is the name of the reader of the event log.
	readerName = "webhooks"
	// maxPage is how many events are compared at once, and maxDeliveries how many deliveries are
	// added at once, unless one event has more.
	maxPage       = 100
	maxDeliveries = 1000
	// lagsAtOnce is how many tenants with new events are read at once.
	lagsAtOnce = 1000
	// fanningOut is how many tenants are fanned out at the same time, apart from those with heavy
	// turns, which are half as many at most.
	fanningOut = 4
	// lightTurn and heavyTurn are how long a turn asks what subscriptions may see.
	lightTurn = 20 * time.Millisecond
	heavyTurn = 250 * time.Millisecond
)

// fanOut fans out the events of all tenants until ctx ends: at once if this process has
// committed them, and otherwise within [Config.Poll].
func (q *Queue) fanOut(ctx context.Context) {
	var workers sync.WaitGroup
	for range fanningOut {
		workers.Go(func() { q.takeTurns(ctx, &q.ahead.light) })
	}
	for range min(fair.HeavyPlaces(), fanningOut/2) {
		workers.Go(func() { q.takeTurns(ctx, &q.ahead.heavy) })
	}
	jobs.Loop{Name: "find events to fan out", Every: q.poll, Logger: q.log}.Run(ctx, jobs.Once(q.findAhead))
	workers.Wait()
}

// takeTurns fans out the events of the tenants in a queue until ctx ends.
func (q *Queue) takeTurns(ctx context.Context, from *turns) {
	for r := q.ahead.next(ctx, from); r != nil; r = q.ahead.next(ctx, from) {
		o, err := q.fanOutPage(ctx, r)
		if err != nil {
			o = failed
			if ctx.Err() == nil {
				q.log.ErrorContext(ctx, "fan out events", "tenant", r.tenantID, "error", err)
			}
		}
		q.ahead.done(r, o)
	}
}

// findAhead notes the tenants whose log is ahead of the reader.
func (q *Queue) findAhead(ctx context.Context) error {
	after, behind := "", int64(0)
	for {
		lags, err := q.reader.Behind(ctx, after, lagsAtOnce)
		if err != nil {
			return err
		}
		for _, lag := range lags {
			behind += lag.Newest - lag.Position
			q.ahead.started(lag.TenantID)
			after = lag.TenantID
		}
		if len(lags) < lagsAtOnce {
			q.stats.behind.Store(behind)
			return nil
		}
	}
}

// fanOutPage adds the deliveries of some events of a tenant.
func (q *Queue) fanOutPage(ctx context.Context, r *reading) (outcome, error) {
	limit := maxPage
	if m := r.asked; m != nil {
		limit = int(m.last - m.first + 1)
	}
	from, events, err := q.reader.Next(ctx, r.tenantID, limit)
	var expired *eventlog.ExpiredError
	switch {
	case errors.As(err, &expired):
		q.log.ErrorContext(ctx, "events were deleted before they were fanned out", "tenant", r.tenantID, "position", from, "floor", expired.Floor)
		err := q.db.Tx(ctx, func(tx *sqldb.Tx) error {
			_, err := q.reader.Advance(ctx, tx, r.tenantID, from, expired.Floor)
			return err
		})
		return moreEvents, err
	case err != nil:
		return failed, err
	case from == 0: // a reader begins after the event of the first subscription
		return noReader, nil
	case len(events) == 0:
		return allEvents, nil
	}
	// After the events, because a subscription that was created before an event must get it.
	var subscriptions []subscription.Subscription
	var b sqldb.Batch
	subscription.QueueAfter(&b, r.tenantID, from, &subscriptions)
	if err := q.db.Send(ctx, &b); err != nil {
		return failed, err
	}
	p := match(subscriptions, events)
	end, checkErr := q.ask(ctx, r, p)
	if end > 0 {
		moved, err := q.add(ctx, r.tenantID, from, p.events[end-1].Position, p.batches(q.clock()))
		if err != nil {
			return failed, err
		}
		if moved {
			p.logUnreadable(ctx, q.log)
		}
	}
	switch {
	case checkErr != nil: // the events before were added
		return failed, checkErr
	case end < len(p.events):
		return longTurn, nil
	case len(p.events) < len(events) || len(events) == limit:
		return moreEvents, nil
	}
	return allEvents, nil
}

// page is events of a tenant, and which subscriptions get them.
type page struct {
	events        []eventlog.Event
	subscriptions []subscription.Subscription
	matching      [][]int // by event: the subscriptions whose patterns match it
	deliveries    [][]delivered
	unreadable    []eventlog.Event // those that match, and whose data cannot be read
}

// delivered is an event that a subscription gets.
type delivered struct {
	event      *loggedEvent
	operations visibleOperations
}

// match compares events with the patterns of subscriptions. The page has the first of the events.
func match(subscriptions []subscription.Subscription, events []eventlog.Event) *page {
	p := &page{subscriptions: subscriptions, deliveries: make([][]delivered, len(subscriptions))}
	matches := 0
	for _, e := range events {
		var matching []int
		for i := range subscriptions {
			s := &subscriptions[i]
			if e.Position > s.After && e.Position <= s.Until && e.Type != eventlog.TestPing && s.Matches(string(e.Type)) && !about(e, s) {
				matching = append(matching, i)
			}
		}
		if matches += len(matching); matches > maxDeliveries && len(p.events) > 0 {
			break
		}
		p.events, p.matching = append(p.events, e), append(p.matching, matching)
	}
	return p
}

// ask finds out what the subscriptions of a page may see of its events, and returns how many of the
// events have been decided when that, or the turn, ends. The answers about the next event are
// stored in r. A heavy tenant becomes a light one if the questions of a whole page take a light turn.
func (q *Queue) ask(ctx context.Context, r *reading, p *page) (end int, err error) {
	start, longest := q.clock(), lightTurn
	if r.heavy {
		longest = heavyTurn
	}
	over := func() bool { return q.clock().Sub(start) >= longest }
	resumed := r.asked != nil
	for end < len(p.events) {
		n := 1
		var m *moment
		if p.isLimited(end) {
			if m = r.asked; m == nil || m.first != p.events[end].Position {
				m = momentOf(p.events[end:])
			}
			n = min(int(m.last-m.first+1), len(p.events)-end)
			all, err := m.ask(ctx, q.checker, r.tenantID, p.visibilities(end, end+n), over)
			if !all {
				r.asked = m
				return end, err
			}
		}
		for range n {
			p.decide(end, m)
			end++
		}
		if m != nil && over() {
			break
		}
	}
	r.asked = nil
	r.heavy = r.heavy && (resumed || q.clock().Sub(start) >= lightTurn)
	return end, nil
}

// isLimited reports whether an event matches a subscription with a visibility.
func (p *page) isLimited(event int) bool { return len(p.visibilities(event, event+1)) > 0 }

// visibilities returns those of the subscriptions that match some events, each once.
func (p *page) visibilities(from, to int) (found []subscription.Visibility) {
	known := map[subscription.Visibility]bool{}
	for _, matching := range p.matching[from:to] {
		for _, i := range matching {
			if v := p.subscriptions[i].VisibleTo; v != nil && !known[*v] {
				known[*v] = true
				found = append(found, *v)
			}
		}
	}
	return found
}

// decide adds an event to the deliveries of the subscriptions that may see it.
func (p *page) decide(event int, m *moment) {
	e := &loggedEvent{Event: p.events[event]}
	readable := len(p.matching[event]) == 0 || jsontext.Value(e.Data).IsValid()
	for _, i := range p.matching[event] {
		v := p.subscriptions[i].VisibleTo
		if v == nil {
			p.deliveries[i] = append(p.deliveries[i], delivered{event: e})
			continue
		}
		readable = readable && !m.unreadable[e.Position]
		if operations, ok := m.visible(*v, e.Event); ok {
			p.deliveries[i] = append(p.deliveries[i], delivered{e, operations})
		}
	}
	if !readable {
		p.unreadable = append(p.unreadable, e.Event)
	}
}

// batches returns the deliveries by subscription.
func (p *page) batches(now time.Time) (all []batch) {
	for i := range p.subscriptions {
		if len(p.deliveries[i]) == 0 {
			continue
		}
		of := batch{subscription: &p.subscriptions[i]}
		for _, d := range p.deliveries[i] {
			of.deliveries = append(of.deliveries, newDelivery(of.subscription, d.event, d.operations, now))
		}
		all = append(all, of)
	}
	return all
}

// logUnreadable logs the events whose data cannot be read, without their data. They are not
// visible to any subject; subscriptions without a visibility get them without data.
func (p *page) logUnreadable(ctx context.Context, log *slog.Logger) {
	for _, e := range p.unreadable {
		log.ErrorContext(ctx, "data of an event cannot be read", "tenant", e.TenantID, "event", e.ID, "type", string(e.Type))
	}
}

// newDelivery returns the first state of a delivery.
func newDelivery(s *subscription.Subscription, e *loggedEvent, operations visibleOperations, now time.Time) *Delivery {
	return &Delivery{
		ID: id.NewOrdered(id.WebhookDelivery, now), TenantID: s.TenantID, SubscriptionID: s.ID, EventID: e.ID, EventType: string(e.Type),
		Status: Pending, CreatedAt: now, NextAttemptAt: now, position: e.Position, operations: operations, size: int64(len(e.Data)), event: e,
	}
}

// batch is deliveries of one subscription that are added together.
type batch struct {
	subscription *subscription.Subscription
	deliveries   []*Delivery
	reserved     *lane // that this process held before
	taken        bool  // the lane was free and is held by this process now
	added        bool  // the subscription was still enabled
	offset       int64 // of the clock of the lane
}

func (b *batch) lane() laneKey { return laneKey{b.subscription.TenantID, b.subscription.ID} }

// add commits deliveries with the new position of the reader, and starts those of lanes that
// this process holds or can take. It reports whether the position was still from.
func (q *Queue) add(ctx context.Context, tenantID string, from, to int64, page []batch) (moved bool, err error) {
	for i := range page {
		q.lanes.reserve(&page[i])
	}
	err = q.db.Tx(ctx, func(tx *sqldb.Tx) (err error) {
		if moved, err = q.reader.Advance(ctx, tx, tenantID, from, to); err != nil || !moved || len(page) == 0 {
			return err
		}
		var b sqldb.Batch
		for i := range page {
			q.queueBatch(&b, &page[i])
		}
		return tx.Send(ctx, &b)
	})
	for i := range page {
		q.lanes.start(&page[i], err == nil && moved)
	}
	return moved, err
}

// queueBatch queues the statements that add deliveries and take their lane if it is free.
func (q *Queue) queueBatch(b *sqldb.Batch, of *batch) {
	of.taken, of.added = false, false
	now := q.clock()
	tenantID, subscriptionID := of.subscription.TenantID, of.subscription.ID
	for _, d := range of.deliveries {
		b.Queue(insertDelivery, []any{
			tenantID, subscriptionID, d.ID, d.position, d.EventID, d.EventType, d.body, d.operations.text(), d.size, now.UnixMicro(),
		}, func(rows *sqldb.Rows) error {
			if !rows.Next() {
				return rows.Err()
			}
			of.added = true
			return rows.Scan(&d.due)
		})
	}
	if q.lanes.mayTake(of.lane()) {
		b.Queue(takeForNew, []any{tenantID, subscriptionID, q.holder, now.Add(lease).UnixMicro(), now.UnixMicro()}, func(rows *sqldb.Rows) error {
			if !rows.Next() {
				return rows.Err()
			}
			of.taken = true
			return rows.Scan(&of.offset)
		})
	}
	b.Queue(makeDue, []any{tenantID, subscriptionID, now.UnixMicro()}, nil)
}

// subjectOf returns the subscription that an event of the category webhook is about.
func subjectOf(e eventlog.Event) string {
	var data struct {
		Subscription struct {
			ID string `json:"id"`
		} `json:"subscription"`
	}
	_ = jsonv2.Unmarshal(e.Data, &data) // data without a subscription is about none
	return data.Subscription.ID
}
