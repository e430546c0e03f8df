package readlease

import (
	"fmt"
	"time"

	"stonetown/tuplestore"
)

// writer is the part of a process that writes.
type writer struct {
	*process
}

func newWriter(p *process) {
	w := &writer{process: p}
	p.writers = append(p.writers, w)
	p.start = append(p.start, func() {
		for t := range tenants {
			w.writeSoon(t)
		}
	})
}

func (w *writer) writeSoon(tenant int) {
	w.later(w.around(w.pause), func() {
		w.counts.groups++
		g := &group{writer: w, tenant: tenant, number: w.counts.groups}
		g.attempt()
	})
}

// group is a group of writes that commit together. It is attempted until its outcome is known.
type group struct {
	*writer
	tenant int
	number int
	told   []telling // the revocations of all attempts, which have to be released
	try    *try
}

// telling is a revocation and a node that has answered it.
type telling struct {
	id RevocationID
	to *process
}

// try is one attempt, a transaction.
type try struct {
	*transaction
	id         RevocationID
	addresses  map[NodeID]*process
	revocation *Revocation
	busy       bool // a statement is on its way
}

func (g *group) attempt() {
	t := &try{transaction: g.database.begin(g.process), id: RevocationID(fmt.Sprint("revocation ", g.Uint64())), addresses: map[NodeID]*process{}}
	g.try = t
	row := &g.database.heads[g.tenant]
	t.send(func(done func(func())) {
		before := g.database.holdersOf(g.tenant)
		t.take(&row.lock, func() {
			nodes, newest, applied := g.database.holdersOf(g.tenant), row.revision, g.database.committed[g.number]
			if g.flaw == holdersBeforeHead {
				nodes = before
			}
			for _, node := range nodes {
				t.addresses[node] = g.database.nodes[node].address
			}
			done(func() {
				if applied {
					t.rollBack()
					g.finish(newest)
					return
				}
				g.revoke(t, nodes)
			})
		})
	}, g.again)
}

// again attempts the group again, since the outcome of the last attempt is not known.
func (g *group) again() {
	g.counts.unknown++
	g.try = nil
	if g.flaw == unknownIsReleased {
		g.release(g.database.heads[g.tenant].revision)
	}
	g.later(g.somewhere(0, 50*time.Millisecond), g.attempt)
}

func (g *group) revoke(t *try, nodes []NodeID) {
	t.revocation = NewRevocation(g.durations, g.clock(), nodes)
	for _, node := range nodes {
		g.counts.revoked++
		address := t.addresses[node]
		g.call(address, func(at *process) func() {
			here, held := g.holders[at.number].revoke(g.tenant, node, t.id)
			return func() {
				if !here {
					t.revocation.Failed(node)
				} else {
					if g.flaw == lateAnswerCounts && t.revocation.nodes[node] == struck && held {
						t.revocation.over = 0
					}
					t.revocation.Answered(node, held)
				}
				if held {
					g.told = append(g.told, telling{t.id, address})
				}
				g.step(t)
			}
		}, func() {
			t.revocation.Failed(node)
			g.step(t)
		})
	}
	g.step(t)
}

func (g *group) step(t *try) {
	if g.try != t || t.busy {
		return
	}
	next := t.revocation.Next(g.clock())
	if g.flaw == commitBeforeAnswers {
		next = Step{Commit: true}
	}
	switch {
	case next.Commit:
		t.busy = true
		g.commit(t)
	case next.StrikeOut != nil:
		t.busy = true
		g.strikeOut(t, next.StrikeOut)
	default:
		g.at(next.Until, func() { g.step(t) })
	}
}

// strikeOut deletes the rows of nodes, one after the other.
func (g *group) strikeOut(t *try, nodes []NodeID) {
	if len(nodes) == 0 {
		t.busy = false
		g.step(t)
		return
	}
	node := nodes[0]
	struck := func(found bool) {
		g.counts.struck++
		t.revocation.Struck(node, found && g.flaw != struckWithoutWaiting, g.clock())
		g.strikeOut(t, nodes[1:])
	}
	if g.flaw == waitWithoutStriking {
		struck(true)
		return
	}
	t.send(func(done func(func())) {
		t.lockNode(node, func(row *nodeRow) {
			if row != nil {
				row.gone = g.flaw == struckAtOnce
				t.onCommit = append(t.onCommit, func() { row.gone = true })
			}
			done(func() { struck(row != nil) })
		})
	}, g.again)
}

func (g *group) commit(t *try) {
	if g.flaw == releaseBeforeCommit {
		g.release(g.database.heads[g.tenant].revision)
	}
	notHeld := t.revocation.NotHeld()
	row := &g.database.heads[g.tenant]
	to := row.revision + 1 + tuplestore.Revision(g.IntN(3))
	t.onCommit = append(t.onCommit, func() {
		for _, node := range notHeld {
			delete(row.holders, node)
		}
		g.database.committed[g.number] = true
		row.revision = to
		g.counts.commits++
	})
	t.send(func(done func(func())) {
		t.commit()
		done(func() { g.finish(to) })
	}, g.again)
}

// finish releases what the group has revoked. The outcome is known.
func (g *group) finish(newest tuplestore.Revision) {
	g.try = nil
	g.release(newest)
	g.writeSoon(g.tenant)
}

func (g *group) release(newest tuplestore.Revision) {
	for _, told := range g.told {
		g.call(told.to, func(at *process) func() {
			g.holders[at.number].release(g.tenant, told.id, newest)
			return nil
		}, func() {})
	}
	g.told = nil
}
