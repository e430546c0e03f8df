package eval

import (
	"fmt"
	"slices"
	"strings"

	"stonetown/tuplestore"
)

// Exclusions through which a relation reaches itself cannot be answered stratum by stratum:
// the viewers of a folder may be its readers without the viewers of its parent, and so on
// upward. They are answered in the order that the tuples give. A goal is refuted when too
// few open goals are left that could prove it, which begins at objects without links. An
// exclusion is answered when its subtracted side is proven or refuted. Goals that only
// prove each other are unfounded, and are refuted together.
//
// A goal that is neither proven nor refuted in the end depends on its own absence: the
// folder is its own parent. It is cyclic and has no answer. This is the well-founded
// semantics (Van Gelder, Ross and Schlipf 1991). Without cyclic goals, and therefore
// wherever there are strata, it gives the same answers as the strata.

// NegativeCycleError is the error of a question whose answer depends on its own negation. An
// exclusion subtracts what leads back to it along the tuples: the viewers of a folder are
// its readers without the viewers of its parent, and a folder is its own parent.
type NegativeCycleError struct {
	// Node is in the cycle. The node of the question may depend on it from outside.
	Node tuplestore.Node
}

func (e *NegativeCycleError) Error() string {
	return fmt.Sprintf("the answer depends on its own negation: relations lead from %s through an exclusion back to it", e.Node)
}

// recursion is the state of settling recursive exclusions. The slices waits, support and
// needs are indexed by goal; the others are lists of goals.
type recursion struct {
	open    []int32 // neither proven nor refuted
	refuted []int32 // refuted goals whose parents have not been notified
	waits   []int32 // the number of links from open goals
	// support is the goal that proves this one if nothing open that is subtracted holds:
	// noSupport if there is none, isBased for an exclusion with a proven base.
	support   []int32
	needs     []int32 // the number of operands that an intersection lacks for its support
	supported []int32 // supported goals whose parents have not been notified
	// cycles are nodes of the cycles that exclusions lead to, as far as cycle has found
	// them.
	cycles map[int32]tuplestore.Node
}

const (
	isBased   int32 = -1
	noSupport int32 = -2
)

// isLocal reports whether an exclusion is recursive.
func (e *Evaluation) isLocal(g int32) bool {
	return e.program.Logic[e.goals[g].part.index()].Local
}

// settleRecursive answers all exclusions, also those that are not recursive, because they may
// depend on the others. All goals are expanded.
func (e *Evaluation) settleRecursive() error {
	if err := e.countWaits(); err != nil {
		return err
	}
	for {
		if err := e.propagateBoth(); err != nil || e.open == 0 {
			return err
		}
		if found, err := e.refuteUnfounded(); err != nil {
			return err
		} else if !found {
			break
		}
	}
	for _, g := range e.recursion.open {
		e.goals[g].state = cyclic
	}
	e.recursion.cycles = map[int32]tuplestore.Node{}
	return nil
}

// countWaits counts for each goal the links that could prove it, and refutes the goals that
// have too few.
func (e *Evaluation) countWaits() error {
	r, n := &e.recursion, len(e.goals)
	r.open, r.refuted = r.open[:0], r.refuted[:0]
	for _, s := range []*[]int32{&r.waits, &r.support, &r.needs} {
		*s = slices.Grow((*s)[:0], n)[:n]
	}
	clear(r.waits)
	for g := range e.goals {
		if e.goals[g].proven {
			continue
		}
		r.open = append(r.open, int32(g))
		for l := e.goals[g].parents; l >= 0; l = e.links[l].next {
			e.budget.Step()
			r.waits[e.links[l].parent]++
		}
		if err := e.budget.Err(); err != nil {
			return err
		}
	}
	for _, g := range r.open {
		if e.cannotHold(g) {
			e.refute(g)
		}
	}
	return nil
}

// isExclusion reports whether a goal is an exclusion.
func (e *Evaluation) isExclusion(at *goal) bool {
	return at.part.isLogic() && e.program.Logic[at.part.index()].IsExclusion()
}

// cannotHold reports whether too few open goals are left to prove a goal.
func (e *Evaluation) cannotHold(g int32) bool {
	at := &e.goals[g]
	if e.isExclusion(at) {
		return at.missing < 0
	}
	waits := e.recursion.waits[g]
	return waits == 0 || waits < at.missing
}

func (e *Evaluation) refute(g int32) {
	at := &e.goals[g]
	if at.proven || at.state == refuted {
		return
	}
	at.state = refuted
	if at.root {
		e.open--
	}
	e.recursion.refuted = append(e.recursion.refuted, g)
}

// propagateBoth notifies parents of proven and of refuted goals, until no goal is newly
// proven or refuted.
func (e *Evaluation) propagateBoth() error {
	r := &e.recursion
	for e.open > 0 {
		if n := len(e.proven); n > 0 {
			child := e.proven[n-1]
			e.proven = e.proven[:n-1]
			for l := e.goals[child].parents; l >= 0; l = e.links[l].next {
				e.budget.Step()
				e.notify(child, e.links[l])
				parent := e.links[l].parent
				if r.waits[parent]--; e.cannotHold(parent) {
					e.refute(parent)
				}
			}
		} else if n := len(r.refuted); n > 0 {
			child := r.refuted[n-1]
			r.refuted = r.refuted[:n-1]
			for l := e.goals[child].parents; l >= 0; l = e.links[l].next {
				e.budget.Step()
				e.notifyRefuted(e.links[l])
			}
		} else {
			return nil
		}
		if err := e.budget.Err(); err != nil {
			return err
		}
	}
	return nil
}

// notifyRefuted updates a parent of a refuted goal.
func (e *Evaluation) notifyRefuted(l link) {
	parent := &e.goals[l.parent]
	e.recursion.waits[l.parent]--
	switch {
	case parent.state == refuted:
	case !e.isExclusion(parent):
		if e.cannotHold(l.parent) {
			e.refute(l.parent)
		}
	case l.operand == 0:
		e.refute(l.parent)
	default:
		parent.state = cleared
		e.answerExclusion(l.parent)
	}
}

// refuteUnfounded refutes the open goals that would not be proven even if nothing open held
// that is subtracted. It reports whether there are any.
func (e *Evaluation) refuteUnfounded() (bool, error) {
	r := &e.recursion
	r.open = slices.DeleteFunc(r.open, func(g int32) bool { return e.goals[g].proven || e.goals[g].state == refuted })
	e.budget.Spend(len(r.open))
	for _, g := range r.open {
		at := &e.goals[g]
		r.support[g], r.needs[g] = noSupport, max(at.missing, 1)
		if at.based {
			r.support[g] = isBased
			r.supported = append(r.supported, g)
		}
	}
	for len(r.supported) > 0 {
		child := r.supported[len(r.supported)-1]
		r.supported = r.supported[:len(r.supported)-1]
		for l := e.goals[child].parents; l >= 0; l = e.links[l].next {
			e.budget.Step()
			e.supportParent(child, e.links[l])
		}
		if err := e.budget.Err(); err != nil {
			r.supported = r.supported[:0]
			return false, err
		}
	}
	found := false
	for _, g := range r.open {
		if r.support[g] == noSupport {
			e.refute(g)
			found = true
		}
	}
	return found, nil
}

// supportParent updates a parent of a goal that has support.
func (e *Evaluation) supportParent(child int32, l link) {
	r, parent := &e.recursion, &e.goals[l.parent]
	switch {
	case parent.proven, parent.state == refuted, r.support[l.parent] != noSupport:
		return
	case l.operand == 1 && e.isExclusion(parent):
		return // the subtracted side is assumed not to hold
	}
	if r.needs[l.parent]--; r.needs[l.parent] == 0 {
		r.support[l.parent] = child
		r.supported = append(r.supported, l.parent)
	}
}

// cycle returns a node that a cyclic goal depends on and that depends on its own negation.
// It follows the support of the goal down to an exclusion, and then the support of the
// subtracted side, until it reaches an exclusion again.
func (e *Evaluation) cycle(g int32) tuplestore.Node {
	r := &e.recursion
	var path []int32
	position := map[int32]int{}
	for {
		for r.support[g] != isBased {
			g = r.support[g]
		}
		node, known := r.cycles[g]
		if i, again := position[g]; again {
			// The first node in order, so that it does not depend on the entry to the cycle.
			node, known = e.nodeOf(g), true
			for _, x := range path[i:] {
				if n := e.nodeOf(x); strings.Compare(n.String(), node.String()) < 0 {
					node = n
				}
			}
		}
		if known {
			for _, x := range path {
				r.cycles[x] = node
			}
			return node
		}
		position[g] = len(path)
		path = append(path, g)
		at := &e.goals[g]
		subtracted := e.program.Logic[at.part.index()].Operands[1]
		subtractedGoal, _ := e.table.Find(goalKey(at.object, rulePart(subtracted, e.subtractedMode(at.part.mode()))))
		g = subtractedGoal
	}
}

// nodeOf returns the node whose rewrite an exclusion is part of.
func (e *Evaluation) nodeOf(exclusion int32) tuplestore.Node {
	at := &e.goals[exclusion]
	relation := e.program.Logic[at.part.index()].Relation
	return tuplestore.Node{Object: e.view.Object(at.object), Relation: e.graph.Relations.Name(relation)}
}
