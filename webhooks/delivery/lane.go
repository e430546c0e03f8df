package delivery

import (
	"context"
	"errors"
	"sync"
	"time"

	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/subscription"
)

const (
	// fresh is how old the subscription may be by which a delivery is sent, if another process
	// has changed it; changes by this process take effect at once.
	fresh = time.Second
	// linger is how long an idle lane is held, so that it need not be taken for each event.
	linger = 2 * time.Second
	// reread is how often a lane that is not idle reads its due deliveries: retries, and those of
	// an earlier holder.
	reread = 5 * time.Second
	// failingAfter is the number of failures in succession after which a lane gets one place.
	failingAfter = Concurrency
)

// lane is a lane that this process holds: the deliveries of a subscription.
type lane struct {
	queue  *Queue
	key    laneKey
	offset int64 // of the clock of the lane, in microseconds
	wake   jobs.Signal

	mu     sync.Mutex
	until  time.Time       // the end of the lease
	ended  bool            // no further attempt begins
	window []*Delivery     // to be sent, in the order of their due times
	size   int64           // of the window, in bytes
	known  map[string]bool // the ids of the deliveries that must not be read from the database
	coming int             // how many of the known ones are not committed yet
	unread bool            // the database may have due deliveries that are not known
	active int             // attempts in progress
	// stored are the deliveries whose result was stored during a read, which may have seen them
	// as they were before.
	stored map[string]bool

	subscription *subscription.Subscription
	readAt       time.Time // when the subscription was read
	failures     int       // in succession
	failingSince time.Time // zero: the last attempt was successful
	failingNoted bool
	successNoted time.Time // the last time of a success that is stored
}

// newLane returns a lane that has to be read.
func newLane(q *Queue, key laneKey, offset int64, until time.Time) *lane {
	return &lane{queue: q, key: key, offset: offset, until: until, wake: jobs.NewSignal(), known: map[string]bool{}, unread: true}
}

// run sends the deliveries of the lane until it is idle, is stopped, or loses its lease. ctx
// ends the attempts.
func (l *lane) run(ctx context.Context) {
	defer l.queue.lanes.ended(l)
	var attempts sync.WaitGroup
	idleSince := l.queue.clock()
	readAt := idleSince
	tick := time.NewTicker(fresh)
	defer tick.Stop()
	for !l.isEnded() {
		if now := l.queue.clock(); now.Sub(readAt) >= reread {
			readAt = now
			l.mu.Lock()
			l.unread = true
			l.mu.Unlock()
		}
		if l.mustRead() {
			readAt = l.queue.clock()
			if err := l.read(ctx); err != nil {
				l.failed(ctx, "read webhook deliveries", err)
			} else if l.mustRead() && !l.hasWork() {
				continue
			}
		}
		if d := l.next(); d != nil {
			attempts.Go(func() { l.attempt(ctx, d) })
			continue
		}
		switch {
		case l.hasWork():
			idleSince = l.queue.clock()
		case l.queue.clock().Sub(idleSince) >= linger:
			more, err := l.release(ctx)
			if err != nil {
				l.failed(ctx, "release lane of webhook subscription", err)
				break
			}
			if !more {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			l.stop()
		case <-l.wake:
		case <-tick.C:
		}
	}
	attempts.Wait()
	if l.queue.clock().Before(l.leaseEnd()) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if _, err := l.release(ctx); err != nil {
			l.failed(ctx, "release lane of webhook subscription", err)
		}
	}
}

// failed logs an error, unless the process stops or the subscription was deleted: then there is
// nothing left to do.
func (l *lane) failed(ctx context.Context, doing string, err error) {
	if ctx.Err() == nil && !errors.Is(err, subscription.ErrNotFound) {
		l.queue.log.ErrorContext(ctx, doing, "tenant", l.key.tenantID, "subscription", l.key.subscriptionID, "error", err)
	}
}

// stop ends the lane after the attempts in progress.
func (l *lane) stop() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.wake.Send()
}

// isEnded reports whether no further attempt begins, also because the lease has ended.
func (l *lane) isEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended || !l.queue.clock().Before(l.until)
}

func (l *lane) leaseEnd() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// extend stores the end of a renewed lease.
func (l *lane) extend(until time.Time) {
	l.mu.Lock()
	l.until = until
	l.mu.Unlock()
	l.wake.Send()
}

// current returns the subscription as it is, or was a moment ago.
func (l *lane) current(ctx context.Context) (*subscription.Subscription, error) {
	q := l.queue
	l.mu.Lock()
	s, at := l.subscription, l.readAt
	l.mu.Unlock()
	now := q.clock()
	if s != nil && now.Sub(at) < fresh {
		return s, nil
	}
	found, err := subscription.Select(ctx, q.db, l.key.tenantID, l.key.subscriptionID)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s == nil { // the first time
		l.setFailing(&found)
	}
	l.subscription, l.readAt = &found, now
	return &found, nil
}

// expire lets the subscription be read again now: before the next attempt, and because the
// pending deliveries of a disabled one have to be moved.
func (l *lane) expire() {
	l.mu.Lock()
	l.readAt, l.unread = time.Time{}, true
	l.mu.Unlock()
	l.wake.Send()
}

// setFailing restores what an earlier holder of the lane knew of the receiver. l.mu is held, or
// the lane does not run yet.
func (l *lane) setFailing(s *subscription.Subscription) {
	if l.failingSince = s.FailingSince; !s.FailingSince.IsZero() {
		l.failures = failingAfter
	}
}

// release gives the lane up, and notes when its next delivery is due. If one is due now, the
// lane stays held, unless it was stopped, and more is true.
func (l *lane) release(ctx context.Context) (more bool, err error) {
	q := l.queue
	stopped := l.isEnded()
	// First, so that a lane that is taken again can run at once.
	q.lanes.ended(l)
	defer func() {
		if more || err != nil && !stopped {
			q.lanes.resume(l)
		}
	}()
	now := q.clock().UnixMicro()
	err = q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		more = false
		due := never
		var state string
		var offset, first int64
		err := tx.QueryRow(ctx, selectClock, l.key.tenantID, l.key.subscriptionID).Scan(&state, &offset)
		if errors.Is(err, sqldb.ErrNoRows) {
			return nil // deleted
		}
		if err == nil {
			err = tx.QueryRow(ctx, minDue, l.key.tenantID, l.key.subscriptionID).Scan(&first)
		}
		if err != nil {
			return err
		}
		if first > 0 {
			due = first + offset
			if state == string(subscription.Disabled) {
				due = 0 // they are not sent, but moved to the dead letters
			}
		}
		if due <= now && !stopped {
			more = true
			return nil
		}
		_, err = tx.Exec(ctx, releaseLane, l.key.tenantID, l.key.subscriptionID, q.holder, due)
		return err
	})
	if more {
		l.readAgain()
	}
	return more && err == nil, err
}
