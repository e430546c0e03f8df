package leasenode

import (
	"context"
	"sync"
	"sync/atomic"

	"stonetown/tuplestore"
	"stonetown/tuplestore/readlease"
)

// Lease is the read lease of one tenant in this process, held or not.
type Lease struct {
	node   *Node
	tenant string

	mu      sync.Mutex // for changes of holding
	holding atomic.Pointer[readlease.Holding]

	answered  atomic.Int64 // since the last revocation
	unchanged atomic.Int64 // consecutive reads that have found nothing new
}

// Tenant returns the lease of a tenant.
func (n *Node) Tenant(tenant string) *Lease {
	if l, ok := n.tenants.Load(tenant); ok {
		return l.(*Lease)
	}
	l := &Lease{node: n, tenant: tenant}
	l.holding.Store(new(readlease.Holding))
	kept, _ := n.tenants.LoadOrStore(tenant, l)
	return kept.(*Lease)
}

// IsNewest reports whether a position is the newest of the tenant. The caller has read the position
// before, and it does not change meanwhile.
func (l *Lease) IsNewest(epoch string, at tuplestore.Revision) bool {
	holding := l.holding.Load()
	if holding.IsNothing() {
		return false
	}
	term := l.node.term.Load()
	if !readlease.MayAnswer(epoch, at, *holding, *term, l.node.Clock.Now()) {
		return false
	}
	l.answered.Add(1)
	l.node.stats.answered.Add(1)
	return true
}

// Read notes that the newest position was read from the database, and whether it was new. It
// acquires the lease if there have been many reads for nothing.
func (l *Lease) Read(changed bool) {
	if changed {
		l.unchanged.Store(0)
		return
	}
	term := l.node.term.Load()
	if l.unchanged.Add(1) < worthwhile || term.Node == "" {
		return
	}
	l.change(func(h readlease.Holding) readlease.Holding {
		if h.Overdue(l.node.durations, l.node.Clock.Now()) {
			return readlease.Holding{}
		}
		return h
	})
	select {
	case l.node.slots <- struct{}{}:
	default:
		return
	}
	attempt, begun := l.node.attempts.Add(1), false
	l.change(func(h readlease.Holding) readlease.Holding {
		if !h.IsNothing() || l.node.term.Load().Node != term.Node {
			return h
		}
		begun = true
		l.node.work.Go(func() { // before anything can give it up
			defer func() { <-l.node.slots }()
			l.acquire(term.Node, attempt)
		})
		return h.Acquire(term.Node, attempt)
	})
	if !begun {
		<-l.node.slots
	}
	l.unchanged.Store(0)
}

func (l *Lease) acquire(node readlease.NodeID, attempt uint64) {
	ctx, cancel := context.WithTimeout(l.node.background, 2*l.node.Lease)
	defer cancel()
	head, ok, err := l.node.Rows.Acquire(ctx, l.tenant, node)
	if err != nil || !ok {
		if err != nil && l.node.background.Err() == nil {
			l.node.Logger.Warn("read lease not acquired", "tenant", l.tenant, "error", err)
		}
		l.change(func(h readlease.Holding) readlease.Holding { return h.Failed(attempt) })
		return
	}
	l.node.stats.acquired.Add(1)
	l.answered.Store(worthwhile) // the first write must not end it
	l.change(func(h readlease.Holding) readlease.Holding { return h.Acquired(attempt, head.Epoch, head.Revision) })
}

// Forget gives the lease up. A writer that revokes it deletes the row.
func (l *Lease) Forget() {
	l.change(func(readlease.Holding) readlease.Holding { return readlease.Holding{} })
}

// revoke answers a revocation.
func (l *Lease) revoke(id readlease.RevocationID) (held bool) {
	keep := l.answered.Swap(0) >= worthwhile
	l.unchanged.Store(0)
	l.change(func(h readlease.Holding) (after readlease.Holding) {
		after, held = h.Revoke(id, l.node.Clock.Now(), keep)
		return after
	})
	l.node.stats.revoked.Add(1)
	return held
}

func (l *Lease) release(id readlease.RevocationID, newest tuplestore.Revision) {
	l.change(func(h readlease.Holding) readlease.Holding { return h.Release(id, newest) })
}

func (l *Lease) change(f func(readlease.Holding) readlease.Holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	after := f(*l.holding.Load())
	l.holding.Store(&after)
}
