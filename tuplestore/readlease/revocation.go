package readlease

import "slices"

// Revocation is what a writer does between the read of the holders, which follows the lock on the
// head, and the commit. It is not safe for concurrent use.
type Revocation struct {
	durations Durations
	patient   Instant // until when answers are awaited
	nodes     map[NodeID]answer
	over      Instant // the end of the terms of nodes that were struck out
}

type answer int

const (
	awaited answer = iota
	failed
	held
	notHeld
	struck
)

// Step is what a writer does next. If it strikes out no node and must not commit, it waits until
// an answer arrives, or until an instant.
type Step struct {
	StrikeOut []NodeID // in the order in which their rows have to be deleted
	Commit    bool
	Until     Instant
}

// NewRevocation begins the revocation of the leases of some nodes.
func NewRevocation(d Durations, now Instant, holders []NodeID) *Revocation {
	r := &Revocation{durations: d, patient: now.Add(d.Patience()), nodes: make(map[NodeID]answer, len(holders))}
	for _, node := range holders {
		r.nodes[node] = awaited
	}
	return r
}

// Answered notes that a node has answered whether it holds the tenant. If it was struck out before,
// that has no effect: it answers for one tenant only, and the end of its registration, which is
// visible after the commit, is about all.
func (r *Revocation) Answered(node NodeID, holds bool) {
	if r.nodes[node] != awaited {
		return
	}
	if r.nodes[node] = notHeld; holds {
		r.nodes[node] = held
	}
}

// Failed notes that a node will not answer: nothing accepts connections at its address, or another
// node does.
func (r *Revocation) Failed(node NodeID) {
	if r.nodes[node] == awaited {
		r.nodes[node] = failed
	}
}

// Struck notes that the row of a node was deleted, or that there was none: then another transaction
// has struck it out, and waited before its commit, or the node has given up all it held.
func (r *Revocation) Struck(node NodeID, found bool, now Instant) {
	r.nodes[node] = struck
	if found {
		r.over = max(r.over, now.Add(r.durations.Term()))
	}
}

// Next returns the next step.
func (r *Revocation) Next(now Instant) Step {
	if now < r.patient && len(r.all(awaited)) > 0 {
		return Step{Until: r.patient}
	}
	if late := append(r.all(awaited), r.all(failed)...); len(late) > 0 {
		slices.Sort(late)
		return Step{StrikeOut: late}
	}
	return Step{Commit: now >= r.over, Until: r.over}
}

// NotHeld returns the nodes whose rows for the tenant the transaction should delete.
func (r *Revocation) NotHeld() []NodeID { return r.all(notHeld) }

func (r *Revocation) all(a answer) (nodes []NodeID) {
	for node, given := range r.nodes {
		if given == a {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}
