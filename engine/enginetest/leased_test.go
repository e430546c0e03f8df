package enginetest

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/pgtest"
	"stonetown/tuplestore"
	"stonetown/tuplestore/leasenode"
	"stonetown/tuplestore/readlease"
	"stonetown/tuplestore/sqlstore"
)

// leased returns an engine that holds read leases. Of two writes one is sent to
// another store of the same database, as by another process. Leases are acquired and kept although
// the tests ask few questions between two writes, and end where the tenant becomes idle. Messages
// take their time, so that questions come while a lease is being revoked, is revoked, and is
// released; some releases are lost.
func leased(t *testing.T, c engine.Config) *engine.Engine {
	t.Helper()
	url := pgtest.URL(t)
	h := openLeaseholder(t, url, 1)
	messages := &slowMessages{node: h.node}
	own, other := openWriter(t, url, messages), openWriter(t, url, messages)
	c.Lease = func(tenant string) engine.Lease { return eagerLease{h.node.Tenant(tenant)} }
	e := newEngine(t, c, &twoWriters{Store: own, other: other})
	h.run(t)
	t.Cleanup(func() {
		if s := h.node.Stats(); !t.Failed() && (s.Answered == 0 || s.Acquired == 0 || s.Revoked == 0) {
			t.Errorf("this shows too little: %+v", s)
		}
	})
	return e
}

// twoWriters is a store that passes half of its writes to another one.
type twoWriters struct {
	*sqlstore.Store
	other *sqlstore.Store
	n     atomic.Int64
}

func (w *twoWriters) Write(ctx context.Context, tenant string, write tuplestore.Write) (tuplestore.Result, error) {
	if w.n.Add(1)%2 == 0 {
		return w.other.Write(ctx, tenant, write)
	}
	return w.Store.Write(ctx, tenant, write)
}

// eagerLease counts each question as many.
type eagerLease struct{ *leasenode.Lease }

const asMany = 16

func (l eagerLease) IsNewest(epoch string, at tuplestore.Revision) (is bool) {
	for range asMany {
		is = l.Lease.IsNewest(epoch, at)
	}
	return is
}

func (l eagerLease) Read(bool) {
	for range asMany {
		l.Lease.Read(false)
	}
}

// slowMessages delays the messages of a node to itself, and loses some.
type slowMessages struct{ node *leasenode.Node }

const slowMessage = 2 * time.Millisecond

func (m *slowMessages) Revoke(ctx context.Context, to sqlstore.Holder, tenant string, id readlease.RevocationID) (bool, error) {
	time.Sleep(rand.N(slowMessage))
	held, err := m.node.Revoke(ctx, to, tenant, id)
	time.Sleep(rand.N(slowMessage))
	return held, err
}

func (m *slowMessages) Release(to sqlstore.Holder, tenant string, id readlease.RevocationID, newest tuplestore.Revision) {
	if rand.IntN(10) > 0 {
		time.AfterFunc(rand.N(slowMessage), func() { m.node.Release(to, tenant, id, newest) })
	}
}
