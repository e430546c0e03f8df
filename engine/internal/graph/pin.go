package graph

import "sync/atomic"

// pins counts the copies of a graph that are in use.
type pins struct {
	used       atomic.Int64
	generation atomic.Uint64 // begins with each pin
}

// Pin returns the graph as it is, which later changes of the graph leave alone, until Unpin
// of the result. It copies nothing: a change copies the pages that it needs, once for each pin.
// Pin may be called concurrently with reads of the graph, but not with changes. The result must
// not be changed.
func (g *Graph) Pin() *Graph {
	g.pins.generation.Add(1)
	g.pins.used.Add(1)
	pinned := *g
	return &pinned
}

// Unpin ends the use of a pinned graph. It may be called concurrently with everything.
func (g *Graph) Unpin() { g.pins.used.Add(-1) }

// begin begins a change.
func (g *Graph) begin() {
	g.w = writing{g.pins.used.Load() > 0, g.pins.generation.Load()}
	if g.w.pinned && g.named != g.w.generation {
		g.named = g.w.generation
		g.Types.shared, g.Relations.shared = true, true
	}
}
