package engine

// linked are the objects that an intersection arrow asks.
type linked struct {
	sure      []objectID // of links that hold
	undecided []objectID // of links whose terms cannot be decided
}

// expandAll asks the computed relation of every object that an intersection arrow
// links to. Of these there must be one at least, and one whose type has no such
// relation fails them all.
//
// A link whose terms cannot be decided may be there or not. The goal is certain if
// the relation holds at its object too and another link is sure. It is possible if
// the relation holds at the objects of the sure links or, where there are none, at
// one of the others.
func (e *evaluation) expandAll(g int32, at goal, a arrow) {
	l := &e.linked
	l.sure, l.undecided = l.sure[:0], l.undecided[:0]
	below, above := e.edges(at.object, a.tupleset)
	if !e.addLinks(at.object, &below) || !e.addLinks(at.object, &above) {
		return
	}
	m := at.what.mode()
	switch {
	case len(l.sure) == 0 && m == possible:
		e.goals[g].missing = 1
		for _, to := range l.undecided {
			e.dependLinked(g, to, a.computed, m)
		}
	case len(l.sure) == 0:
		return
	default:
		asked := l.sure
		if m == certain && e.modes {
			asked = append(asked, l.undecided...)
			l.sure = asked
		}
		e.goals[g].missing = int32(len(asked))
		for _, to := range asked {
			if !e.dependLinked(g, to, a.computed, m) {
				return // missing does not come down to 0
			}
		}
	}
	e.drain()
}

// addLinks notes the objects that a tupleset links to. It reports whether these are
// all: if not, the work has to end.
func (e *evaluation) addLinks(of objectID, tupleset *edges) bool {
	l := &e.linked
	for to, on := range tupleset.subjects() {
		if e.budget--; e.spent() != nil {
			return false
		}
		switch e.verdict(of, on) {
		case met:
			l.sure = append(l.sure, to.object)
		case undecided:
			l.undecided = append(l.undecided, to.object)
		}
	}
	return true
}

// dependLinked makes an intersection arrow ask for a relation of a linked object.
// It reports whether the object's type has it.
func (e *evaluation) dependLinked(g int32, to objectID, computed relationID, m mode) bool {
	child := e.program.rule(e.key(to).typ, computed)
	if child == noRule {
		return false
	}
	e.depend(to, ruleGoal(child, m), link{parent: g})
	return true
}
