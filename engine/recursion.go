package engine

import (
	"slices"
	"strings"

	"stonetown/tuplestore"
)

// Exclusions through which a relation reaches itself cannot be answered stratum
// by stratum: the viewers of a folder may be its readers without the viewers of its
// parent, and so on upward. They are answered in the order that the tuples give. A
// goal is refuted when too few are left that could prove it, which begins where
// nothing is linked. An exclusion is answered when its subtracted side is proven or
// refuted. Goals that only prove each other are unfounded, and refuted together.
//
// A goal that is neither proven nor refuted in the end depends on its own absence:
// the folder is its own parent. It is cyclic and has no answer. This is the
// well-founded semantics (Van Gelder, Ross and Schlipf 1991). Where no goal is
// cyclic, and so always where there are strata, it gives the same answers as they do.

// recursion is the state of settling recursive exclusions. Slices are indexed by
// goal where nothing else is said.
type recursion struct {
	open    []int32 // goals that are neither proven nor refuted
	refuted []int32 // goals whose parents have not been told
	waits   []int32 // how many links come from open goals
	// support is the goal that proves this one if nothing open that is subtracted
	// holds; noSupport if there is none, isBased for an exclusion with a proven base.
	support   []int32
	needs     []int32 // how many more operands an intersection needs for its support
	supported []int32 // goals whose parents have not been told
	// cycles are nodes of the cycles that exclusions lead to, as far as they were
	// asked for.
	cycles map[int32]tuplestore.Node
}

const (
	isBased   int32 = -1
	noSupport int32 = -2
)

// isLocal reports whether an exclusion is recursive.
func (e *evaluation) isLocal(g int32) bool {
	return e.program.logic[e.goals[g].what.index()].local
}

// settleRecursive answers all exclusions, those that are not recursive too, as they
// may depend on the others. All exploring is done.
func (e *evaluation) settleRecursive() error {
	if err := e.countWaits(); err != nil {
		return err
	}
	for {
		if err := e.carry(); err != nil || e.open == 0 {
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

// countWaits counts for each goal what could prove it, and refutes those that
// nothing can.
func (e *evaluation) countWaits() error {
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
			e.budget--
			r.waits[e.links[l].parent]++
		}
		if err := e.spent(); err != nil {
			return err
		}
	}
	for _, g := range r.open {
		if e.isHopeless(g) {
			e.refute(g)
		}
	}
	return nil
}

// isExclusion reports whether a goal is an exclusion.
func (e *evaluation) isExclusion(at *goal) bool {
	return at.what.isLogic() && e.program.logic[at.what.index()].isExclusion()
}

// isHopeless reports whether too few open goals are left to prove a goal.
func (e *evaluation) isHopeless(g int32) bool {
	at := &e.goals[g]
	if e.isExclusion(at) {
		return at.missing < 0
	}
	waits := e.recursion.waits[g]
	return waits == 0 || waits < at.missing
}

func (e *evaluation) refute(g int32) {
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

// carry tells parents what was proven and what was refuted, until that leads to
// nothing new.
func (e *evaluation) carry() error {
	r := &e.recursion
	for e.open > 0 {
		if n := len(e.proven); n > 0 {
			child := e.proven[n-1]
			e.proven = e.proven[:n-1]
			for l := e.goals[child].parents; l >= 0; l = e.links[l].next {
				e.budget--
				e.tell(child, e.links[l])
				parent := e.links[l].parent
				if r.waits[parent]--; e.isHopeless(parent) {
					e.refute(parent)
				}
			}
		} else if n := len(r.refuted); n > 0 {
			child := r.refuted[n-1]
			r.refuted = r.refuted[:n-1]
			for l := e.goals[child].parents; l >= 0; l = e.links[l].next {
				e.budget--
				e.tellRefuted(e.links[l])
			}
		} else {
			return nil
		}
		if err := e.spent(); err != nil {
			return err
		}
	}
	return nil
}

// tellRefuted lets a parent know that a goal it asked for is refuted.
func (e *evaluation) tellRefuted(l link) {
	parent := &e.goals[l.parent]
	e.recursion.waits[l.parent]--
	switch {
	case parent.state == refuted:
	case !e.isExclusion(parent):
		if e.isHopeless(l.parent) {
			e.refute(l.parent)
		}
	case l.operand == 0:
		e.refute(l.parent)
	default:
		parent.state = cleared
		e.answerExclusion(l.parent)
	}
}

// refuteUnfounded refutes the open goals that are not proven even if nothing open
// holds that is subtracted. It reports whether there are any.
func (e *evaluation) refuteUnfounded() (bool, error) {
	r := &e.recursion
	r.open = slices.DeleteFunc(r.open, func(g int32) bool { return e.goals[g].proven || e.goals[g].state == refuted })
	e.budget -= len(r.open)
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
			e.budget--
			e.supportParent(child, e.links[l])
		}
		if err := e.spent(); err != nil {
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

// supportParent lets a parent know that a goal it asked for has support.
func (e *evaluation) supportParent(child int32, l link) {
	r, parent := &e.recursion, &e.goals[l.parent]
	switch {
	case parent.proven, parent.state == refuted, r.support[l.parent] != noSupport:
		return
	case l.operand == 1 && e.isExclusion(parent):
		return // it is taken not to hold
	}
	if r.needs[l.parent]--; r.needs[l.parent] == 0 {
		r.support[l.parent] = child
		r.supported = append(r.supported, l.parent)
	}
}

// cycle finds a node that a cyclic goal depends on and that depends on its own
// negation. It follows what supports the goal down to an exclusion, and what that
// subtracts in the same way, until it comes back to an exclusion.
func (e *evaluation) cycle(g int32) tuplestore.Node {
	r := &e.recursion
	var path []int32
	position := map[int32]int{}
	for {
		for r.support[g] != isBased {
			g = r.support[g]
		}
		node, known := r.cycles[g]
		if i, again := position[g]; again {
			// The same node, wherever the way led into the cycle.
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
		subtracted := e.program.logic[at.what.index()].operands[1]
		slot, _ := e.table.slot(goalKey(at.object, ruleGoal(subtracted, e.subtractedMode(at.what.mode()))))
		g = slot.goal
	}
}

// nodeOf is the node whose rewrite an exclusion is part of.
func (e *evaluation) nodeOf(exclusion int32) tuplestore.Node {
	at := &e.goals[exclusion]
	relation := e.program.logic[at.what.index()].relation
	return tuplestore.Node{Object: e.object(at.object), Relation: e.graph.relations.names[relation]}
}

// answer is the answer to a question after [evaluation.run] and, where terms are
// undecided, [evaluation.rerun]. It fails with [*NegativeCycleError] or
// [*ConditionError].
//
// With terms undecided, the answer lies between that of the certain goal and that of
// the possible one. If both are cyclic it is cyclic however the terms are decided.
func (e *evaluation) answer(root asked) (bool, error) {
	at := &e.goals[root.goal]
	switch {
	case at.proven:
		return true, nil
	case !e.modes && at.state != cyclic:
		return false, nil
	case e.modes:
		switch possibly := &e.goals[root.possibly]; {
		case !possibly.proven && possibly.state != cyclic:
			return false, nil
		case possibly.proven, at.state != cyclic:
			return false, e.terms.undecided.clone()
		}
	}
	return false, &NegativeCycleError{Node: e.cycle(root.goal)}
}
