package readlease

import (
	"slices"

	"stonetown/tuplestore"
)

// Term is the time in which a node may use its leases. The zero Term is that of a process which is
// not registered.
type Term struct {
	Node NodeID
	End  Instant
}

// Renewed returns the term after the registration of a node, or after a renewal that found its
// row. sent is an instant before the statement was sent, because it can have taken effect any time
// after that.
func (d Durations) Renewed(node NodeID, sent Instant) Term {
	return Term{Node: node, End: sent.Add(d.Usable())}
}

// Holding is what a node holds of one tenant. The zero Holding is nothing. It is a value: its
// methods return what follows.
type Holding struct {
	node    NodeID // of the registration that holds or acquires it; empty: neither
	attempt uint64 // the acquisition in progress; 0: it is held
	epoch   string
	floor   tuplestore.Revision // the newest revision known to be visible
	open    []openRevocation    // is never changed, only replaced
}

type openRevocation struct {
	id RevocationID
	at Instant // at which it arrived
}

// Acquire returns the holding for an acquisition that is about to be sent. What was held is given
// up. The number of the attempt is positive and not used again by this process.
func (h Holding) Acquire(node NodeID, attempt uint64) Holding {
	return Holding{node: node, attempt: attempt}
}

// Acquired returns the holding after an acquisition was committed, with the head that it has read.
// One that was given up meanwhile has no effect.
func (h Holding) Acquired(attempt uint64, epoch string, floor tuplestore.Revision) Holding {
	if h.attempt != attempt {
		return h
	}
	h.attempt, h.epoch = 0, epoch
	h.floor = max(h.floor, floor)
	return h
}

// Failed returns the holding after an acquisition failed, or has an unknown outcome.
func (h Holding) Failed(attempt uint64) Holding {
	if h.attempt != attempt {
		return h
	}
	return Holding{}
}

// IsNothing reports whether the tenant is neither held nor being acquired.
func (h Holding) IsNothing() bool { return h.node == "" }

// Revoke returns the holding after a revocation arrived, and the answer to its writer. Unless held,
// the writer deletes the row of the holding, so an acquisition in progress must not succeed: it is
// kept if keep is set, and otherwise given up.
func (h Holding) Revoke(id RevocationID, now Instant, keep bool) (after Holding, held bool) {
	if h.IsNothing() || !keep {
		return Holding{}, false
	}
	if h.opened(id) < 0 { // it can arrive twice
		h.open = append(slices.Clip(h.open), openRevocation{id, now})
	}
	return h, true
}

// Release returns the holding after the writer of a revocation has committed, or has found that it
// has not. newest is a revision that is visible.
func (h Holding) Release(id RevocationID, newest tuplestore.Revision) Holding {
	i := h.opened(id)
	if i < 0 {
		return h
	}
	h.open = slices.Concat(h.open[:i], h.open[i+1:])
	h.floor = max(h.floor, newest)
	return h
}

// opened returns the index of an open revocation, or -1.
func (h Holding) opened(id RevocationID) int {
	return slices.IndexFunc(h.open, func(r openRevocation) bool { return r.id == id })
}

// Overdue reports whether a revocation has been open for so long that its writer may be gone. The
// holding should be given up.
func (h Holding) Overdue(d Durations, now Instant) bool {
	return slices.ContainsFunc(h.open, func(r openRevocation) bool { return now-r.at > Instant(d.Lease) })
}

// MayAnswer reports whether a position is the newest one of its tenant. The caller has read, in
// this order, the position, the holding, the term and the clock. The position was the newest at
// the instant at which the holding was read, if not later.
func MayAnswer(epoch string, at tuplestore.Revision, h Holding, t Term, now Instant) bool {
	return h.node != "" && h.attempt == 0 && len(h.open) == 0 && h.epoch == epoch && at >= h.floor &&
		t.Node == h.node && now < t.End
}
