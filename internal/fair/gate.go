package fair

import (
	"container/list"
	"context"
	"errors"
	"time"
)

// Queue bounds the queue of a gate. The zero value queues all requests until their contexts
// end.
type Queue struct {
	// Waiting is the number of queued requests, WaitingOfTenant of one tenant and
	// WaitingOfCaller of one caller. 0: no limit.
	Waiting, WaitingOfTenant, WaitingOfCaller int
	// Patience is the longest wait. A request that would probably wait longer is refused at
	// once. 0: no limit.
	Patience time.Duration
}

// Gate admits a bounded number of callers at the same time. It is safe for concurrent
// use.
type Gate struct {
	Shares // counts those admitted
	queue  Queue

	// Guarded by Shares.mu. A request is queued only if it cannot be admitted.
	waiting int
	order   list.List // of *tenantQueue: the tenants that wait, the next one first
	queues  map[string]*tenantQueue
	mean    time.Duration // of the times that places were held lately
}

// tenantQueue is the queue of the callers of one tenant.
type tenantQueue struct {
	position *list.Element
	waiting  int
	order    list.List // of *callerQueue, the next one first
	queues   map[string]*callerQueue
}

// callerQueue is the queue of one caller, in the order of arrival.
type callerQueue struct {
	position *list.Element
	waiters  list.List // of *waiter
}

type waiter struct {
	caller   Caller
	admitted chan struct{}
	element  *list.Element // nil once admitted
}

// NewGate returns an empty gate for a resource that is named in the plural.
func NewGate(of string, l Limits, q Queue) *Gate {
	return &Gate{Shares: *NewShares(of, l), queue: q, queues: map[string]*tenantQueue{}}
}

// Place is the admission of a caller by a gate.
type Place struct {
	gate   *Gate
	caller Caller
	since  time.Time // if the gate has patience
}

// Enter waits for a place until ctx ends. It fails with [context.Canceled], or with
// [*ExhaustedError], at once if the queue is full or the wait would be too long.
func (g *Gate) Enter(ctx context.Context, c Caller) (Place, error) {
	return g.enter(ctx, c, true)
}

func (g *Gate) enter(ctx context.Context, c Caller, bounded bool) (Place, error) {
	g.mu.Lock()
	lacking := g.lacking(c, 1)
	if lacking == "" {
		g.take(c, 1)
		g.mu.Unlock()
		return g.place(c), nil
	}
	if bounded {
		if err := g.refuses(c); err != nil {
			g.mu.Unlock()
			return Place{}, err
		}
	}
	w := g.enqueue(c)
	g.mu.Unlock()

	var late <-chan time.Time
	if bounded && g.queue.Patience > 0 {
		timer := time.NewTimer(g.queue.Patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-w.admitted:
		return g.place(c), nil
	case <-ctx.Done():
	case <-late:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.element == nil { // admitted in the same moment
		return g.place(c), nil
	}
	g.remove(w)
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return Place{}, err
	}
	err := g.exhausted(g.lacking(c, 1))
	err.RetryAfter = g.queue.Patience
	return Place{}, err
}

func (g *Gate) place(c Caller) Place {
	p := Place{gate: g, caller: c}
	if g.queue.Patience > 0 {
		p.since = time.Now()
	}
	return p
}

// Leave releases the place, which goes to the next caller.
func (p Place) Leave() {
	g := p.gate
	var took time.Duration
	if g.queue.Patience > 0 {
		took = time.Since(p.since)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mean += (took - g.mean) / 8
	g.take(p.caller, -1)
	if g.waiting > 0 {
		g.admitNext()
	}
}

// refuses returns why a caller may not wait; nil if it may.
func (g *Gate) refuses(c Caller) error {
	q := &g.queue
	tenant := g.queues[c.Tenant]
	ofTenant, ofCaller, ahead := 0, 0, g.waiting
	if tenant != nil {
		ofTenant = tenant.waiting
		if caller := tenant.queues[c.ID]; caller != nil {
			ofCaller = caller.waiters.Len()
			ahead = min(ahead, (ofCaller+1)*tenant.order.Len()*g.order.Len())
		} else {
			ahead = min(ahead, (tenant.order.Len()+1)*g.order.Len())
		}
	} else {
		ahead = min(ahead, g.order.Len())
	}
	wait := g.mean * time.Duration(ahead+1) / time.Duration(max(1, g.limits.Service))
	switch {
	case q.WaitingOfCaller > 0 && ofCaller >= q.WaitingOfCaller:
		return &ExhaustedError{Of: g.of, Share: OfCaller, Limit: int64(q.WaitingOfCaller), RetryAfter: wait}
	case q.WaitingOfTenant > 0 && ofTenant >= q.WaitingOfTenant:
		return &ExhaustedError{Of: g.of, Share: OfTenant, Limit: int64(q.WaitingOfTenant), RetryAfter: wait}
	case q.Waiting > 0 && g.waiting >= q.Waiting:
		return &ExhaustedError{Of: g.of, Share: OfService, Limit: int64(q.Waiting), RetryAfter: wait}
	case q.Patience > 0 && wait > q.Patience:
		err := g.exhausted(OfService)
		err.RetryAfter = wait
		return err
	}
	return nil
}

// enqueue adds a waiter to the queue of its caller.
func (g *Gate) enqueue(c Caller) *waiter {
	tenant := g.queues[c.Tenant]
	if tenant == nil {
		tenant = &tenantQueue{queues: map[string]*callerQueue{}}
		tenant.position = g.order.PushBack(tenant)
		g.queues[c.Tenant] = tenant
	}
	caller := tenant.queues[c.ID]
	if caller == nil {
		caller = &callerQueue{}
		caller.position = tenant.order.PushBack(caller)
		tenant.queues[c.ID] = caller
	}
	w := &waiter{caller: c, admitted: make(chan struct{})}
	w.element = caller.waiters.PushBack(w)
	tenant.waiting++
	g.waiting++
	return w
}

// remove removes a waiter from its queue, and queues that become empty.
func (g *Gate) remove(w *waiter) {
	tenant := g.queues[w.caller.Tenant]
	caller := tenant.queues[w.caller.ID]
	caller.waiters.Remove(w.element)
	w.element = nil
	tenant.waiting--
	g.waiting--
	if caller.waiters.Len() == 0 {
		tenant.order.Remove(caller.position)
		delete(tenant.queues, w.caller.ID)
	}
	if tenant.waiting == 0 {
		g.order.Remove(tenant.position)
		delete(g.queues, w.caller.Tenant)
	}
}

// admitNext admits the first waiter whose shares allow it, if there is one. Its caller
// is then the last of its tenant, and its tenant the last of all.
func (g *Gate) admitNext() {
	for t := g.order.Front(); t != nil; t = t.Next() {
		tenant := t.Value.(*tenantQueue)
		for c := tenant.order.Front(); c != nil; c = c.Next() {
			w := c.Value.(*callerQueue).waiters.Front().Value.(*waiter)
			switch g.lacking(w.caller, 1) {
			case OfCaller:
				continue
			case OfService:
				return
			case "":
				tenant.order.MoveToBack(c)
				g.order.MoveToBack(t)
				g.remove(w)
				g.take(w.caller, 1)
				close(w.admitted)
				return
			}
			break // the tenant's share is used up
		}
	}
}
