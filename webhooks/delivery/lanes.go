package delivery

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

const (
	// lease is how long after the death of a process another one takes its lanes.
	lease = time.Minute
	// renewEvery is how often leases are renewed.
	renewEvery = lease / 4
	// attemptTime is the longest time of an attempt; none begins whose lane could end before.
	attemptTime = 20 * time.Second
	// maxLanes bounds the lanes that a process holds.
	maxLanes = 1024
	// grace is how long attempts may go on when the queue was stopped.
	grace = 5 * time.Second
)

// lanes are the lanes that this process holds. It is safe for concurrent use.
type lanes struct {
	queue   *Queue
	wake    jobs.Signal
	working sync.WaitGroup

	mu      sync.Mutex
	held    map[laneKey]*lane
	work    context.Context // of attempts; nil: the queue does not run
	renewed time.Time
}

func newLanes(q *Queue) *lanes {
	return &lanes{queue: q, wake: jobs.NewSignal(), held: map[laneKey]*lane{}}
}

// freeAbandoned frees the lanes of processes that died, on SQLite: one process at a time can open
// the database, so no other one can hold a lane. Elsewhere they are free when their leases end.
func (ls *lanes) freeAbandoned(ctx context.Context) {
	q := ls.queue
	if q.db.Dialect() != sqldb.SQLite {
		return
	}
	if _, err := q.db.Exec(ctx, freeLanes, process); err != nil && ctx.Err() == nil {
		q.log.ErrorContext(ctx, "free webhook lanes of an earlier process", "error", err)
	}
}

// run takes lanes that are due and renews the leases of those that are held, until ctx ends.
func (ls *lanes) run(ctx context.Context) {
	q := ls.queue
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ls.mu.Lock()
	ls.work, ls.renewed = work, q.clock()
	ls.mu.Unlock()
	jobs.Loop{Name: "find due webhook deliveries", Every: q.poll, Wake: ls.wake, Logger: q.log}.Run(ctx, jobs.Once(ls.step))
	ls.mu.Lock()
	ls.work = nil
	for _, l := range ls.held {
		l.stop()
	}
	ls.mu.Unlock()
	late := time.AfterFunc(grace, stop)
	ls.working.Wait()
	late.Stop()
}

// step does what is due: it stops and starts the clocks of tenants, renews leases, and takes
// lanes.
func (ls *lanes) step(ctx context.Context) error {
	if err := ls.pause(ctx); err != nil {
		return err
	}
	if err := ls.renew(ctx); err != nil {
		return err
	}
	return ls.takeDue(ctx)
}

// pause stops the clocks of the lanes of tenants that are not active, and starts those of
// tenants that are active again.
func (ls *lanes) pause(ctx context.Context) error {
	q := ls.queue
	inactive, err := q.tenants.InactiveTenants(ctx)
	if err != nil {
		return err
	}
	paused, err := sqldb.Texts(q.db.Query(ctx, selectPaused))
	if err != nil {
		return err
	}
	now := q.clock().UnixMicro()
	for _, tenantID := range inactive {
		if slices.Contains(paused, tenantID) {
			continue
		}
		if _, err := q.db.Exec(ctx, pauseLanes, tenantID, now); err != nil {
			return err
		}
		ls.stopTenant(tenantID)
	}
	for _, tenantID := range paused {
		if slices.Contains(inactive, tenantID) {
			ls.stopTenant(tenantID) // another process has paused it
			continue
		}
		if _, err := q.db.Exec(ctx, resumeLanes, tenantID, now, never); err != nil {
			return err
		}
	}
	return nil
}

func (ls *lanes) stopTenant(tenantID string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for key, l := range ls.held {
		if key.tenantID == tenantID {
			l.stop()
		}
	}
}

// renew renews the leases from time to time. A lane whose lease has ended is given up.
func (ls *lanes) renew(ctx context.Context) error {
	q := ls.queue
	now := q.clock()
	ls.mu.Lock()
	due := now.Sub(ls.renewed) >= renewEvery
	var all []*lane
	for _, l := range ls.held {
		all = append(all, l)
	}
	ls.mu.Unlock()
	if !due {
		return nil
	}
	held := make(map[laneKey]bool)
	until := now.Add(lease)
	err := q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		clear(held)
		var b sqldb.Batch
		for _, l := range all {
			b.Queue(renewLane, []any{l.key.tenantID, l.key.subscriptionID, q.holder, until.UnixMicro(), now.UnixMicro()}, func(rows *sqldb.Rows) error {
				held[l.key] = rows.Next()
				return rows.Err()
			})
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return err
	}
	ls.mu.Lock()
	ls.renewed = now
	ls.mu.Unlock()
	for _, l := range all {
		if held[l.key] {
			l.extend(until)
		} else {
			l.stop()
		}
	}
	return nil
}

// takeDue takes lanes that are due and that no process holds.
func (ls *lanes) takeDue(ctx context.Context) error {
	q := ls.queue
	ls.mu.Lock()
	free := maxLanes - len(ls.held)
	ls.mu.Unlock()
	if free <= 0 {
		return nil
	}
	now := q.clock()
	rows, err := q.db.Query(ctx, SelectDueLanes, now.UnixMicro(), int64(free))
	if err != nil {
		return err
	}
	var due []laneKey
	for rows.Next() {
		var key laneKey
		if err := rows.Scan(&key.tenantID, &key.subscriptionID); err != nil {
			rows.Close()
			return err
		}
		due = append(due, key)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if due = ls.notHeld(due); len(due) == 0 {
		return nil
	}
	until := now.Add(lease)
	taken := make(map[laneKey]int64) // offsets
	err = q.db.Tx(ctx, func(tx *sqldb.Tx) error {
		clear(taken)
		var b sqldb.Batch
		for _, key := range due {
			b.Queue(take, []any{key.tenantID, key.subscriptionID, q.holder, until.UnixMicro(), now.UnixMicro()}, func(rows *sqldb.Rows) error {
				if !rows.Next() {
					return rows.Err()
				}
				var offset int64
				err := rows.Scan(&offset)
				taken[key] = offset
				return err
			})
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return err
	}
	for key, offset := range taken {
		ls.begin(newLane(q, key, offset, until))
	}
	return nil
}

// notHeld returns those of some lanes that this process does not hold. A held one is free if its
// lease has ended, as after an outage of the database. It is taken after it was given up.
func (ls *lanes) notHeld(keys []laneKey) (free []laneKey) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, key := range keys {
		if l := ls.held[key]; l != nil {
			l.wake.Send()
			continue
		}
		free = append(free, key)
	}
	return free
}

// begin runs a lane that this process has taken.
func (ls *lanes) begin(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.work == nil || ls.held[l.key] != nil { // stopped; or the lane was taken again after its lease had ended
		return
	}
	ls.held[l.key] = l
	work := ls.work
	ls.working.Go(func() { l.run(work) })
}

// mayTake reports whether a lane may be taken: this process does not hold it, and has room.
func (ls *lanes) mayTake(key laneKey) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.work != nil && ls.held[key] == nil && len(ls.held) < maxLanes
}

// reserve notes deliveries that are about to be committed. If this process holds their lane, the
// lane does not read them from the database then, so that they are not sent twice.
func (ls *lanes) reserve(of *batch) {
	ls.mu.Lock()
	of.reserved = ls.held[of.lane()]
	ls.mu.Unlock()
	if of.reserved != nil {
		of.reserved.reserve(of.deliveries)
	}
}

// start starts deliveries that were committed, or ends their reservation. Those that it cannot
// start are read from the database, by the lane or when it is taken again.
func (ls *lanes) start(of *batch, committed bool) {
	if of.reserved != nil {
		of.reserved.push(of.deliveries, committed && of.added)
	}
	ls.mu.Lock()
	l := ls.held[of.lane()]
	ls.mu.Unlock()
	switch {
	case l == nil && committed && of.taken:
		l = newLane(ls.queue, of.lane(), of.offset, ls.queue.clock().Add(lease-time.Second))
		l.subscription, l.readAt = of.subscription, ls.queue.clock()
		l.unread = false // pending deliveries of before are read when the lane is released
		l.setFailing(of.subscription)
		if of.added {
			l.reserve(of.deliveries)
			l.push(of.deliveries, true)
		}
		ls.begin(l)
	case l != nil && l != of.reserved: // it was taken meanwhile, and may have read them
		l.readAgain()
	}
}

// changed lets the lane of a changed subscription read it again.
func (ls *lanes) changed(notice string) {
	tenantID, subscriptionID, _ := strings.Cut(notice, " ")
	ls.mu.Lock()
	l := ls.held[laneKey{tenantID, subscriptionID}]
	ls.mu.Unlock()
	if l != nil {
		l.expire()
	}
}

// resume continues to hold a lane that was not released.
func (ls *lanes) resume(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.held[l.key] == nil {
		ls.held[l.key] = l
	}
}

// ended forgets a lane that is no longer held.
func (ls *lanes) ended(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.held[l.key] == l {
		delete(ls.held, l.key)
	}
}
