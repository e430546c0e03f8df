package graph

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// pins are the copies of a graph that are in use.
type pins struct {
	mu         sync.Mutex
	generation uint64      // begins with each pin
	used       []uint64    // the generations of the copies
	some       atomic.Bool // there are copies
}

// state returns the present generation, and the first one of which a copy is in use, which is
// beyond all generations if there is none.
func (p *pins) state() (generation, oldest uint64) {
	oldest = math.MaxUint64
	if !p.some.Load() { // the most frequent case; no copy can be made during a change
		return p.generation, oldest
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.used {
		oldest = min(oldest, g)
	}
	return p.generation, oldest
}

// Pin returns the graph as it is, which later changes of the graph leave alone, until Unpin
// of the result. It copies nothing: a change copies the pages that it needs, once for each pin.
// Pin may be called concurrently with reads of the graph, but not with changes. The result must
// not be changed.
func (g *Graph) Pin() *Graph {
	p, pinned := g.pins, *g
	p.mu.Lock()
	defer p.mu.Unlock()
	p.generation++
	p.used = append(p.used, p.generation)
	p.some.Store(true)
	pinned.pinned = p.generation
	return &pinned
}

// Unpin ends the use of a pinned graph. It may be called concurrently with everything.
func (g *Graph) Unpin() {
	p := g.pins
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.used, g.pinned)
	p.used = slices.Delete(p.used, i, i+1)
	p.some.Store(len(p.used) > 0)
}

// begin begins a change.
func (g *Graph) begin() {
	generation, oldest := g.pins.state()
	g.w = writing{oldest <= generation, generation, g.w.memory}
	g.w.memory.Begin(generation, oldest)
	if g.w.pinned && g.named != g.w.generation {
		g.named = g.w.generation
		g.Types.shared, g.Relations.shared = true, true
	}
}
