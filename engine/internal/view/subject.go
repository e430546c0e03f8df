package view

import (
	"stonetown/engine/internal/graph"
	"stonetown/tuplestore"
)

// Subject is the subject of questions. Numbers are [graph.NoObject] for objects that no
// tuple names.
type Subject struct {
	Plain    graph.ObjectID // a plain subject
	Everyone graph.ObjectID // the wildcard type:* of a plain subject's type
	Set      graph.Node     // a userset
	IsSet    bool
}

// Subject returns a subject in numbers.
func (v *View) Subject(s tuplestore.Subject) Subject {
	to := Subject{Plain: graph.NoObject, Everyone: graph.NoObject}
	if !s.IsUserset() {
		to.Everyone = v.Find(tuplestore.Object{Type: s.Type, ID: tuplestore.Wildcard})
		if s.ID != tuplestore.Wildcard {
			to.Plain = v.Find(s.Object())
		}
		return to
	}
	to.IsSet = true
	to.Set.Object = graph.NoObject
	if relation, ok := v.Graph.Relations.Number(s.Relation); ok {
		to.Set = graph.Node{Object: v.Find(s.Object()), Relation: relation}
	}
	return to
}

// IsUnknown reports whether no tuple can lead to the subject: it is plain, and no tuple
// names it or its wildcard.
func (s *Subject) IsUnknown() bool {
	return !s.IsSet && s.Plain == graph.NoObject && s.Everyone == graph.NoObject
}

// Named returns the subject or its wildcard, if unqualified tuples of the edges name it,
// or [graph.NoObject].
func (s *Subject) Named(at *graph.Edges) graph.ObjectID {
	if s.Plain != graph.NoObject && at.Has(s.Plain) {
		return s.Plain
	}
	if s.Everyone != graph.NoObject && at.Has(s.Everyone) {
		return s.Everyone
	}
	return graph.NoObject
}
