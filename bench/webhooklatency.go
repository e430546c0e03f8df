package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"

	"stonetown/engine"
	"stonetown/engine/audit"
	"stonetown/internal/eventlog"
	"stonetown/schema"
	"stonetown/tuplestore"
)

const (
	// idlePause is the pause between the events of the measure idle.
	idlePause = 20 * time.Millisecond
	// eventRate is the number of events per second of the measure rate.
	eventRate = 500
	// subscribers is the number of subscriptions that match them.
	subscribers = 10
	// perSubscription is how many deliveries of a subscription are sent at the same time; see
	// [delivery.Concurrency].
	perSubscription = 8
	// patience is how long deliveries may take.
	patience = time.Minute
)

// docType is the resource type of relation writes.
var docType = schema.Type{Name: "doc", Relations: []schema.Relation{{Name: "viewer"}}}

// docViewer returns the write of a new relation.
func docViewer(name string, n int64) engine.WriteOp {
	return engine.WriteOp{
		Resource: tuplestore.Object{Type: docType.Name, ID: fmt.Sprint(name, n)}, Relation: "viewer",
		Subject: tuplestore.Subject{Type: schema.UserType, ID: "ann"},
	}
}

// idle measures the time from the commit of a relation with its event to the arrival at a
// receiver, one at a time.
func (w Webhooks) idle(ctx context.Context, db database) (rows []WebhooksRow, err error) {
	h, err := openHooks(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	defer background(h.Run)()
	arrived := make(chan time.Time, 1)
	v, err := receive(func(at time.Time, _ *http.Request) { arrived <- at })
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if err := h.subscribe(ctx, v.URL, eventlog.RelationCreated); err != nil {
		return nil, err
	}
	e := audit.Engine{Engine: h.Engine}
	if _, _, _, err := e.PutType(ctx, h.Tenant, docType, engine.Origin{Actor: "bench"}); err != nil {
		return nil, err
	}
	found := newLatencies()
	began := time.Now()
	for n := int64(0); time.Since(began) < 2*w.Duration; n++ {
		time.Sleep(idlePause)
		if _, err := e.WriteRelation(ctx, h.Tenant, docViewer("d", n), engine.Origin{Actor: "bench"}); err != nil {
			return nil, err
		}
		committed := time.Now()
		select {
		case at := <-arrived:
			if n >= 20 { // the first ones open connections
				found.add(at.Sub(committed))
			}
		case <-time.After(patience):
			return nil, errors.New("a delivery did not arrive")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	_, least, err := floor(ctx, v, 1, idlePause, w.Duration)
	if err != nil {
		return nil, err
	}
	bar := 100 * time.Millisecond
	if db.isSQLite {
		bar = 50 * time.Millisecond
	}
	return []WebhooksRow{{
		Measure: "commit to arrival, idle", Figure: found.String(), Floor: least.String(),
		Bar: "p99 " + ms(bar), Met: found.at(99) < bar,
	}}, nil
}

// rate measures the time from the commit of events to their arrival while events are committed
// at a rate: with all subscriptions matching each of them, and with a tenth of the rate.
func (w Webhooks) rate(ctx context.Context, db database) (rows []WebhooksRow, err error) {
	h, err := openHooks(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	defer background(h.Run)()
	all := newArrivals()
	_, stop, err := h.receiveAll(ctx, all, subscribers)
	if err != nil {
		return nil, err
	}
	defer stop()
	for _, perSecond := range []int{eventRate / subscribers, eventRate} {
		found, rate, err := h.latencies(ctx, all, subscribers, perSecond, 2*w.Duration)
		if err != nil {
			return nil, err
		}
		bar := 250 * time.Millisecond
		rows = append(rows, WebhooksRow{
			Measure: fmt.Sprintf("commit to arrival, %d events/s to %d subscriptions each", perSecond, subscribers),
			Figure:  fmt.Sprintf("%s (%.0f events/s, %.0f deliveries/s)", found, rate, rate*subscribers),
			Bar:     "p99 " + ms(bar), Met: found.at(99) < bar,
		})
	}
	return rows, nil
}

// latencies emits events at a rate for a duration, each to a number of subscriptions, and returns
// the times from the commit of an event to its arrivals, and the rate; see [hooks.emit].
func (h *hooks) latencies(ctx context.Context, all *arrivals, subscriptions, perSecond int, duration time.Duration) (latencies, float64, error) {
	before := all.count()
	committed, rate, err := h.emit(ctx, perSecond, duration)
	if err == nil {
		err = all.await(ctx, before+len(committed)*subscriptions, patience)
	}
	if err != nil {
		return latencies{}, 0, err
	}
	found := newLatencies()
	all.mu.Lock()
	defer all.mu.Unlock()
	for of, at := range all.at {
		if since, ok := committed[of.event]; ok {
			found.add(at.Sub(since))
		}
	}
	return found, rate, nil
}

// emit commits events at a rate for a duration, and returns when each commit returned, by the id
// of the event. The rate that it returns is lower if the commits took too long.
func (h *hooks) emit(ctx context.Context, perSecond int, duration time.Duration) (committed map[string]time.Time, rate float64, err error) {
	committed = map[string]time.Time{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	interval := time.Second / time.Duration(perSecond)
	for due := began; due.Sub(began) < duration && ctx.Err() == nil; due = due.Add(interval) {
		time.Sleep(time.Until(due))
		e := newEvent()
		wg.Go(func() {
			recordErr := h.recorder.Record(ctx, h.Tenant, e)
			at := time.Now()
			mu.Lock()
			defer mu.Unlock()
			committed[e.ID] = at
			err = errors.Join(err, recordErr)
		})
	}
	wg.Wait()
	return committed, float64(len(committed)) / time.Since(began).Seconds(), errors.Join(err, ctx.Err())
}

// throughput measures how many deliveries of a backlog are made per second, stored results
// included.
func (w Webhooks) throughput(ctx context.Context, db database) (rows []WebhooksRow, err error) {
	h, err := openHooks(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	defer background(h.Run)()
	all := newArrivals()
	v, stop, err := h.receiveAll(ctx, all, subscribers)
	if err != nil {
		return nil, err
	}
	defer stop()
	const callers = 256
	events := int(w.Duration.Seconds() * 700)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for worker := range callers {
		wg.Go(func() {
			for n := worker; n < events; n += callers {
				if recordErr := h.recorder.Record(ctx, h.Tenant, newEvent()); recordErr != nil {
					mu.Lock()
					err = errors.Join(err, recordErr)
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	if err != nil {
		return nil, err
	}
	before, statements, used := all.count(), h.DB.Stats().Statements, processorTime()
	began := time.Now()
	if err := all.await(ctx, events*subscribers, 5*patience); err != nil {
		return nil, err
	}
	if err := h.awaitStored(ctx); err != nil {
		return nil, err
	}
	sent := events*subscribers - before
	perSecond := float64(sent) / time.Since(began).Seconds()
	perDelivery := float64(h.DB.Stats().Statements-statements) / float64(sent)
	each := (processorTime() - used) / time.Duration(sent)
	used = processorTime()
	most, _, err := floor(ctx, v, subscribers*perSubscription, 0, w.Duration)
	if err != nil {
		return nil, err
	}
	least := processorTime() - used
	bar := 3000.0
	if db.isSQLite {
		bar = 2000
	}
	return []WebhooksRow{{
		Measure: fmt.Sprintf("a backlog of %d deliveries to %d subscriptions", sent, subscribers),
		Figure:  fmt.Sprintf("%.0f/s, each with %.1f statements and %d µs of a processor", perSecond, perDelivery, each.Microseconds()),
		Floor:   fmt.Sprintf("%.0f/s, %.0f µs", most, float64(least.Microseconds())/(most*w.Duration.Seconds())),
		Bar:     fmt.Sprintf("%.0f/s", bar), Met: perSecond >= bar,
	}}, nil
}

// processorTime is the time that processors worked for this process: the product, the receivers
// and the clients, but not a PostgreSQL server.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// awaitStored waits until no delivery is pending.
func (h *hooks) awaitStored(ctx context.Context) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var pending int64
		if err := h.DB.QueryRow(ctx, `SELECT COUNT(*) FROM webhook_deliveries WHERE tenant_id = $1 AND due_at > 0`, h.Tenant).Scan(&pending); err != nil {
			return err
		}
		if pending == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d deliveries are still pending", pending)
		}
	}
}
