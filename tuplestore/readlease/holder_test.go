package readlease

import (
	"fmt"
	"time"

	"stonetown/tuplestore"
)

const epoch = "one"

// holder is the part of a process that answers checks.
type holder struct {
	*process
	node     NodeID
	term     Term
	attempts uint64
	tenants  [tenants]struct {
		Holding
		position tuplestore.Revision
	}
}

func newHolder(p *process) {
	h := &holder{process: p}
	p.holders = append(p.holders, h)
	p.start = append(p.start, func() {
		*h = holder{process: p}
		h.register()
		h.renewSoon()
		for t := range tenants {
			h.live(t)
		}
	})
}

// register begins a registration. Everything is given up first.
func (h *holder) register() {
	for t := range h.tenants {
		if h.flaw != registrationKeeps {
			h.tenants[t].Holding = Holding{}
		}
	}
	before := h.node
	h.node, h.term = "", Term{}
	node := NodeID(fmt.Sprintf("%d/%d", h.number, h.Uint32()))
	t, sent := h.database.begin(h.process), h.clock()
	t.send(func(done func(func())) {
		t.register(before, node, func() {
			done(func() {
				h.node, h.term = node, h.durations.Renewed(node, sent)
				for t := range h.tenants {
					if h.flaw == registrationKeeps && h.tenants[t].node != "" {
						h.tenants[t].node = node
					}
				}
			})
		})
	}, func() { h.later(h.somewhere(0, 100*time.Millisecond), h.register) })
}

func (h *holder) renewSoon() {
	h.at(h.clock().Add(h.durations.RenewEvery()), h.renew)
}

func (h *holder) renew() {
	if h.node == "" {
		h.renewSoon()
		return
	}
	node := h.node
	t, sent := h.database.begin(h.process), h.clock()
	t.send(func(done func(func())) {
		t.lockNode(node, func(row *nodeRow) {
			t.commit()
			done(func() {
				switch {
				case h.node != node:
				case row == nil && h.flaw != renewalWithoutRow:
					h.later(h.somewhere(0.1, 200*time.Millisecond), h.register)
				case h.flaw == renewalFromReply:
					h.term = h.durations.Renewed(node, h.clock())
				case h.flaw == noMargin:
					h.term = Term{Node: node, End: sent.Add(h.durations.Term())}
				default:
					h.term = h.durations.Renewed(node, sent)
				}
				h.renewSoon()
			})
		})
	}, h.renewSoon)
}

// live repeats what a process does with a tenant: mostly it checks.
func (h *holder) live(t int) {
	h.later(h.around(20*time.Millisecond), func() {
		s := &h.tenants[t]
		switch {
		case s.Overdue(h.durations, h.clock()) && h.flaw == overdueCloses:
			s.open = nil
		case s.Overdue(h.durations, h.clock()) || h.IntN(200) == 0:
			s.Holding = Holding{}
		case s.IsNothing() && h.node != "" && h.IntN(4) == 0:
			h.acquire(t)
		}
		h.check(t)
		h.live(t)
	})
}

func (h *holder) acquire(tenant int) {
	s, node := &h.tenants[tenant], h.node
	h.attempts++
	attempt := h.attempts
	s.Holding = s.Acquire(node, attempt)
	acquired := func(floor tuplestore.Revision) {
		h.counts.acquired++
		s.Holding = s.Acquired(attempt, epoch, floor)
	}
	row := &h.database.heads[tenant]
	t := h.database.begin(h.process)
	t.onCommit = append(t.onCommit, func() { row.holders[node] = true })
	commit := func(done func(func())) {
		floor := row.revision
		h.after(h.somewhere(h.faults.slowSQL, time.Millisecond), func() {
			if !t.ended {
				t.commit()
				done(func() { acquired(floor) })
			}
		})
	}
	t.send(func(done func(func())) {
		if h.flaw == acquisitionWithoutHead {
			commit(done)
			return
		}
		t.take(&row.lock, func() { commit(done) })
	}, func() {
		if h.flaw == unknownAcquisitionHolds {
			acquired(s.position)
			return
		}
		s.Holding = s.Failed(attempt)
	})
}

// revoke answers a revocation.
func (h *holder) revoke(tenant int, node NodeID, id RevocationID) (here, held bool) {
	if h.node != node && h.flaw != answerOfAnotherNode {
		return false, false
	}
	s := &h.tenants[tenant]
	keep := h.IntN(20) > 0
	switch {
	case h.flaw == acquiringForgets && s.attempt != 0:
		return true, true
	case h.flaw == givenUpButAcquiring && s.attempt != 0 && !keep:
		return true, false
	}
	s.Holding, held = s.Revoke(id, h.clock(), keep)
	return true, held
}

func (h *holder) release(tenant int, id RevocationID, newest tuplestore.Revision) {
	s := &h.tenants[tenant]
	switch h.flaw {
	case releaseWithoutRevision:
		newest = 0
	case releaseOfAll:
		s.open = nil
		s.floor = max(s.floor, newest)
		return
	}
	s.Holding = s.Release(id, newest)
}

// check answers a check. Anything can happen between its steps.
func (h *holder) check(tenant int) {
	s := &h.tenants[tenant]
	newest := h.database.heads[tenant].revision // at the arrival of the request
	answer := func(at tuplestore.Revision, from string) {
		if at < newest {
			h.violated("process %d answered from revision %d of tenant %d %s, but %d was visible when the check arrived", h.number, at, tenant, from, newest)
		}
	}
	think := func() time.Duration { return h.somewhere(0, h.faults.think) }
	position := s.position
	h.later(think(), func() {
		holding := s.Holding
		h.later(think(), func() {
			term := h.term
			h.later(think(), func() {
				if MayAnswer(epoch, position, holding, term, h.clock()) {
					h.counts.fromMemory++
					h.later(think(), func() { answer(position, "in memory") })
					return
				}
				t := h.database.begin(h.process)
				t.send(func(done func(func())) {
					read := h.database.heads[tenant].revision
					t.end()
					done(func() {
						h.counts.fromDatabase++
						s.position = max(s.position, read)
						answer(read, "in the database")
					})
				}, func() {})
			})
		})
	})
}

// verify compares what the process would answer now with what is visible.
func (h *holder) verify(tenant int) {
	s, newest := &h.tenants[tenant], h.database.heads[tenant].revision
	if h.up && s.position < newest && MayAnswer(epoch, s.position, s.Holding, h.term, h.clock()) {
		h.violated("revision %d of tenant %d is visible, and process %d may answer from %d", newest, tenant, h.number, s.position)
	}
}
