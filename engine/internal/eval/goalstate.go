package eval

import "stonetown/engine/internal/graph"

// Holds reports whether the set that a rule gives for an object was found to contain the
// subject; known is false if the evaluation has not met the set. A set that depends on
// conditions that cannot be decided does not count as one that contains the subject, unless
// possibly is set.
func (e *Evaluation) Holds(object graph.ObjectID, rule int32, possibly bool) (holds, known bool) {
	g, known := e.goalOf(object, rule, possibly)
	return known && e.goals[g].proven, known
}

// ReasonsFor returns why the set of an operand holds, as [Evaluation.Reasons] does for a
// question.
func (e *Evaluation) ReasonsFor(object graph.ObjectID, rule int32, possibly bool) []Reason {
	g, known := e.goalOf(object, rule, possibly)
	if !known || !e.goals[g].proven {
		return nil
	}
	w := reasonWriter{e: e, explained: map[int32]bool{}, operand: g}
	w.explain(g)
	return w.steps
}

func (e *Evaluation) goalOf(object graph.ObjectID, rule int32, possibly bool) (g int32, known bool) {
	m := certain
	if possibly && e.modes {
		m = possible
	}
	return e.table.Find(goalKey(object, rulePart(rule, m)))
}

// isSuspended reports whether an exclusion subtracts nothing, because Suspended has its node.
func (e *Evaluation) isSuspended(exclusion int32) bool {
	return e.Suspended != nil && e.Suspended[e.nodeOf(exclusion)]
}
