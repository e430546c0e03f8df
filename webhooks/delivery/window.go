package delivery

import (
	"context"
	"errors"

	"stonetown/internal/fair"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/subscription"
)

const (
	// window is how many deliveries of a lane are in memory before their attempts, about,
	// failingWindow how many of one that has failed repeatedly, and windowBytes their size.
	window        = 128
	failingWindow = 8
	windowBytes   = 128 << 10
)

// reserve notes deliveries that must not be read from the database.
func (l *lane) reserve(deliveries []*Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range deliveries {
		l.known[d.ID] = true
	}
	l.coming += len(deliveries)
}

// push adds reserved deliveries to the window if they were committed and there is room;
// otherwise they are read from the database later.
func (l *lane) push(deliveries []*Delivery, committed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.coming -= len(deliveries)
	for _, d := range deliveries {
		if committed && !l.unread && len(l.window) < l.room() && l.size < windowBytes {
			l.window = append(l.window, d)
			l.size += d.weight()
			continue
		}
		delete(l.known, d.ID)
		l.unread = l.unread || committed
	}
	l.wake.Send()
}

// room returns how many deliveries the window may have. l.mu is held.
func (l *lane) room() int {
	if l.failures >= failingAfter {
		return failingWindow
	}
	return window
}

// readAgain notes that the database may have due deliveries that are not known.
func (l *lane) readAgain() {
	l.mu.Lock()
	l.unread = true
	l.mu.Unlock()
	l.wake.Send()
}

// mustRead reports whether the window is empty and the database may have due deliveries.
func (l *lane) mustRead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.window) == 0 && l.unread && !l.ended
}

// hasWork reports whether there are deliveries to send, to store, or about to be committed.
func (l *lane) hasWork() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known) > 0
}

// next takes a delivery to send out of the window; nil: none can be sent now.
func (l *lane) next() *Delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	concurrency := Concurrency
	if l.failures >= failingAfter {
		concurrency = 1
	}
	if l.ended || len(l.window) == 0 || l.active >= concurrency || l.queue.clock().Add(attemptTime).After(l.until) {
		return nil
	}
	d := l.window[0]
	l.window[0] = nil // its event can be freed
	l.window = l.window[1:]
	l.size -= d.weight()
	l.active++
	return d
}

// back returns a delivery that was not sent to the database.
func (l *lane) back(d *Delivery) {
	l.mu.Lock()
	l.active--
	delete(l.known, d.ID)
	l.unread = true
	l.mu.Unlock()
	l.wake.Send()
}

// forget notes that the result of a delivery is stored, so that it may be read from the database
// again.
func (l *lane) forget(d *Delivery) {
	l.mu.Lock()
	delete(l.known, d.ID)
	if l.stored != nil {
		l.stored[d.ID] = true
	}
	l.mu.Unlock()
	l.wake.Send()
}

// read reads due deliveries with their events into the window.
func (l *lane) read(ctx context.Context) error {
	q := l.queue
	s, err := l.current(ctx)
	if errors.Is(err, subscription.ErrNotFound) {
		l.stop()
		return nil
	}
	if err != nil {
		return err
	}
	if s.State == subscription.Disabled {
		return l.drain(ctx)
	}
	place, err := q.reads.Enter(ctx, fair.Caller{Tenant: l.key.tenantID, ID: l.key.subscriptionID})
	if err != nil {
		return err
	}
	defer place.Leave()
	l.mu.Lock()
	limit := l.room() + len(l.known) - l.coming
	l.unread, l.stored = false, map[string]bool{} // what is added from now on is noted again
	l.mu.Unlock()
	found, err := scanPending(q.db.Query(ctx, SelectDueDeliveries, l.key.tenantID, l.key.subscriptionID, q.clock().UnixMicro()-l.offset, int64(limit)))
	unknown := l.unknown(found)
	var readable []*Delivery
	if err == nil {
		readable, err = q.withEvents(ctx, l.key.tenantID, unknown)
	}
	if err == nil {
		err = l.cancelRest(ctx, unknown, readable)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.unread = true
		for _, d := range unknown {
			delete(l.known, d.ID)
		}
		return err
	}
	l.unread = l.unread || len(found) == limit
	l.window = append(l.window, readable...)
	for _, d := range readable {
		l.size += d.weight()
	}
	return nil
}

// unknown returns those of some deliveries, from the first one on, that are not known, and notes
// them. Their events have windowBytes together, or one has more.
func (l *lane) unknown(found []*Delivery) (unknown []*Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := int64(0)
	for _, d := range found {
		if l.known[d.ID] || l.stored[d.ID] {
			continue
		}
		if size += d.weight(); len(unknown) > 0 && size > windowBytes {
			l.unread = true
			break
		}
		l.known[d.ID] = true
		unknown = append(unknown, d)
	}
	l.stored = nil
	return unknown
}

// withEvents reads the events of deliveries. It returns the deliveries whose event is stored.
func (q *Queue) withEvents(ctx context.Context, tenantID string, deliveries []*Delivery) (readable []*Delivery, err error) {
	var positions []int64
	for _, d := range deliveries {
		if d.body == "" && d.event == nil {
			positions = append(positions, d.position)
		}
	}
	byPosition := map[int64]*loggedEvent{}
	if len(positions) > 0 {
		events, err := q.events.Pick(ctx, tenantID, positions)
		if err != nil {
			return nil, err
		}
		for i := range events {
			byPosition[events[i].Position] = &loggedEvent{Event: events[i]}
		}
	}
	for _, d := range deliveries {
		if d.body == "" && d.event == nil {
			if d.event = byPosition[d.position]; d.event == nil {
				continue
			}
		}
		readable = append(readable, d)
	}
	return readable, nil
}

// cancelRest cancels the deliveries without an event: it was deleted at the end of its
// retention.
func (l *lane) cancelRest(ctx context.Context, all, readable []*Delivery) error {
	if len(all) == len(readable) {
		return nil
	}
	has := map[string]bool{}
	for _, d := range readable {
		has[d.ID] = true
	}
	for _, d := range all {
		if has[d.ID] {
			continue
		}
		err := l.queue.db.Tx(ctx, func(tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, bury, d.TenantID, d.SubscriptionID, d.ID, string(Cancelled))
			return err
		})
		if err != nil {
			return err
		}
		l.forget(d)
	}
	return nil
}
