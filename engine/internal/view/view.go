// Package view is the read view of a request: the state that answers it.
//
// A [View] is a graph at one revision with the request's contextual tuples over it, the
// program of that revision's schema, the instant at which tuples expire, the values for
// conditions, and the budget of the attempt. On a graph that is filled as the request
// proceeds, a [Reader] reads the next level of a traversal. Traversals and evaluations all
// access tuples through the view.
package view

import (
	"context"
	"time"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

// View is the read view of one attempt at a request.
type View struct {
	Graph   *graph.Graph
	Program *program.Program
	Overlay *graph.Overlay // the contextual tuples, or nil
	Reader  *Reader        // nil: the graph is complete
	Budget  work.Budget
	// Undecided is set when a condition is met that cannot be decided. Its reader resets
	// it.
	Undecided bool

	conditions conditions
}

// Start sets what questions are answered with: a budget, a clock, of which the first
// reading is the instant of the view, and values for the parameters of conditions.
func (v *View) Start(ctx context.Context, l work.Limits, clock func() time.Time, values map[string]any) {
	v.Budget = work.NewBudget(ctx, l)
	v.Undecided = false
	v.conditions = conditions{ctx: ctx, compiled: v.Program.Compiled, clock: clock, values: values, quick: l.HasRetry()}
}

// Find returns the number of an object, or [graph.NoObject].
func (v *View) Find(o tuplestore.Object) graph.ObjectID {
	if v.Overlay != nil {
		return v.Overlay.Find(o)
	}
	return v.Graph.Find(o)
}

// Type returns the type of an object.
func (v *View) Type(id graph.ObjectID) graph.TypeID {
	if v.Overlay != nil {
		return v.Overlay.Key(id).Type
	}
	return v.Graph.At(id).Type()
}

// Key returns the type and ID of an object.
func (v *View) Key(id graph.ObjectID) graph.Key {
	if v.Overlay != nil {
		return v.Overlay.Key(id)
	}
	return v.Graph.Key(id)
}

// Object returns the names of an object.
func (v *View) Object(id graph.ObjectID) tuplestore.Object {
	key := v.Key(id)
	return tuplestore.Object{Type: v.Graph.Types.Name(key.Type), ID: key.ID}
}

// IsRegistered reports whether an object is registered.
func (v *View) IsRegistered(id graph.ObjectID) bool {
	if v.Overlay != nil {
		return v.Overlay.IsRegistered(id)
	}
	return v.Graph.At(id).IsRegistered()
}

// Resource returns the number of a resource. It reports whether the resource may be
// registered, which is unknown before the first read where there is a reader.
func (v *View) Resource(o tuplestore.Object) (graph.ObjectID, bool) {
	if v.Reader != nil {
		return v.Reader.WantObject(o), true
	}
	id := v.Find(o)
	return id, id != graph.NoObject && v.IsRegistered(id)
}

// Edges returns the subjects of a relation of an object: those of the graph and those of
// the overlay.
func (v *View) Edges(id graph.ObjectID, relation graph.RelationID) (below, above graph.Edges) {
	if v.Overlay == nil {
		return v.Graph.Edges(id, relation), graph.None
	}
	return v.Overlay.Edges(id, relation)
}

// Backward returns the tuples that name an object as their subject: those of the graph
// and those of the overlay.
func (v *View) Backward(id graph.ObjectID) (below, above []graph.BackwardEdge) {
	if v.Overlay == nil {
		return v.Graph.Backward(id), nil
	}
	return v.Overlay.Backward(id)
}
