// Package program translates a compiled schema into the numbers of a graph.
//
// A [Program] has the derivation of each relation, for traversals from resources to
// subjects: a [Rule] is a union, and [Logic] combines rules where a union does not suffice.
// Its [Inverse] has the relations that the subject of a tuple is thereby in, for traversals
// from subjects to resources, or that depend on the tuple.
package program

import (
	"slices"
	"sync"
	"sync/atomic"

	"stonetown/engine/internal/graph"
	"stonetown/schema"
)

// Program is a compiled schema with its names replaced by a graph's numbers.
type Program struct {
	Compiled *schema.Compiled
	Rules    []Rule
	Logic    []Logic
	// Local: there are local exclusions, which are recursive along tuples.
	Local bool

	types     graph.Dictionary[graph.TypeID]
	relations graph.Dictionary[graph.RelationID]
	// table finds the rule of a type's relation: one row per type, one column per
	// relation, NoRule where the type has no such relation.
	table   []int32
	columns int

	inverseOnce, dependentsOnce sync.Once
	inverse, dependents         *Inverse
	namedOnce                   sync.Once
	named                       []Named
}

// NoRule is the rule of a relation that a type does not have.
const NoRule = int32(-1)

// Rule is a [schema.Rule] in numbers: the union of the relations whose tuples count, of
// arrows and of logic.
type Rule struct {
	Relation graph.RelationID
	Includes []graph.RelationID
	Direct   []graph.RelationID
	Arrows   []Arrow
	Logic    []int32
	// Self: the object itself is in its set.
	Self bool
	// Leaf: the set consists of the tuples of one relation. It is read where it is met,
	// without a goal or a place of its own.
	Leaf bool
	// Mixed: a traversal from here has met logic, so that reachability does not decide.
	Mixed atomic.Bool

	// The relations of Direct and the tuplesets of Arrows again, one bit each. Relations
	// whose number is too high for that are looked up in the slices.
	directBits, tuplesetBits uint64
}

// bit returns the bit of a relation; 0 if its number is too high.
func bit(r graph.RelationID) uint64 { return 1 << r }

// IsDirect reports whether the tuples of a relation count.
func (r *Rule) IsDirect(relation graph.RelationID) bool {
	if relation < 64 {
		return r.directBits&bit(relation) != 0
	}
	return slices.Contains(r.Direct, relation)
}

// IsTupleset reports whether an arrow follows a relation.
func (r *Rule) IsTupleset(relation graph.RelationID) bool {
	if relation < 64 {
		return r.tuplesetBits&bit(relation) != 0
	}
	return slices.ContainsFunc(r.Arrows, func(a Arrow) bool { return a.Tupleset == relation })
}

// Arrow is a tuple_to_userset: a relation of all objects that a tupleset links to.
type Arrow struct{ Tupleset, Computed graph.RelationID }

// Logic is a [schema.Logic] in numbers: an intersection, an exclusion or an intersection
// arrow.
type Logic struct {
	Kind     schema.Kind
	Relation graph.RelationID
	Operands []int32
	Arrow    Arrow // of an intersection arrow
	Stratum  int
	Local    bool
}

// IsExclusion reports whether the logic is an exclusion.
func (l *Logic) IsExclusion() bool { return l.Kind == schema.Exclusion }

// IsArrow reports whether the logic is an intersection arrow.
func (l *Logic) IsArrow() bool { return l.Kind == schema.TupleToUserset }

// New translates a compiled schema into the numbers of a graph, and adds its names to the
// graph.
func New(c *schema.Compiled, g *graph.Graph) *Program {
	relation := g.Relations.Intern
	p := &Program{Compiled: c, Rules: make([]Rule, len(c.Rules)), Logic: make([]Logic, len(c.Logic))}
	for name := range c.TypeNames() { // types without relations too
		g.Types.Intern(name)
	}
	for i, from := range c.Rules {
		to := &p.Rules[i]
		to.Relation = relation(from.Relation)
		for _, name := range from.Includes {
			to.Includes = append(to.Includes, relation(name))
		}
		for _, name := range from.Direct {
			to.Direct = append(to.Direct, relation(name))
		}
		for _, a := range from.Arrows {
			to.Arrows = append(to.Arrows, Arrow{relation(a.Tupleset), relation(a.Computed)})
		}
		for _, id := range from.Logic {
			to.Logic = append(to.Logic, int32(id))
		}
		for _, r := range to.Direct {
			to.directBits |= bit(r)
		}
		for _, a := range to.Arrows {
			to.tuplesetBits |= bit(a.Tupleset)
		}
		to.Self = from.Self
		to.Leaf = len(to.Direct) == 1 && len(to.Arrows) == 0 && len(to.Logic) == 0 && !to.Self
	}
	for i, from := range c.Logic {
		to := &p.Logic[i]
		to.Kind = from.Kind
		if to.IsArrow() {
			to.Arrow = Arrow{relation(from.Arrow.Tupleset), relation(from.Arrow.Computed)}
		}
		to.Stratum, to.Local = from.Stratum, from.Local
		p.Local = p.Local || to.Local
		for _, id := range from.Operands {
			to.Operands = append(to.Operands, int32(id))
		}
		to.Relation = p.Rules[to.Operands[0]].Relation
	}
	p.types, p.relations = g.Types.Copy(), g.Relations.Copy()
	types, relations := p.types.Names(), p.relations.Names()
	p.columns = len(relations)
	p.table = make([]int32, len(types)*p.columns)
	for typ, typeName := range types {
		for rel, relationName := range relations {
			at := typ*p.columns + rel
			p.table[at] = NoRule
			if id, ok := c.Rule(typeName, relationName); ok {
				p.table[at] = int32(id)
			}
		}
	}
	return p
}

// NewGraph returns an empty graph that the program is for.
func (p *Program) NewGraph() *graph.Graph { return graph.NewWith(&p.types, &p.relations) }

// At returns the place of a type's relation in tables of all relations of all types, or
// -1 if it has none.
func (p *Program) At(typ graph.TypeID, relation graph.RelationID) int {
	if int(relation) >= p.columns {
		return -1
	}
	if at := int(typ)*p.columns + int(relation); at < len(p.table) {
		return at
	}
	return -1
}

// Rule returns the rule of a type's relation, or [NoRule].
func (p *Program) Rule(typ graph.TypeID, relation graph.RelationID) int32 {
	if at := p.At(typ, relation); at >= 0 {
		return p.table[at]
	}
	return NoRule
}
