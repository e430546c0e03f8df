package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"stonetown/schema"
)

// program is a compiled schema with its names replaced by a graph's numbers.
type program struct {
	compiled *schema.Compiled
	rules    []rule
	logic    []logic
	// table finds the rule of a type's relation: one row per type, one column
	// per relation, noRule where the type has no such relation.
	table   []int32
	columns int
	// local: there are local exclusions.
	local bool
	graph *graph // whose numbers these are

	inverseOnce sync.Once
	inverted    *inverse
}

const noRule = int32(-1)

// rule is a [schema.Rule] in numbers.
type rule struct {
	relation relationID
	includes []relationID
	direct   []relationID
	arrows   []arrow
	logic    []int32
	// The relations of direct and of the arrows' tuplesets again, a bit for each;
	// those whose number is too high for that are looked for in the slices.
	directBits, tuplesetBits uint64
	// self: the object itself is in its set.
	self bool
	// leaf: nothing but tuples of one relation. Such a set is looked into on
	// the way instead of becoming a goal.
	leaf bool
	// mixed: a search from here has met logic.
	mixed atomic.Bool
}

// bit is a relation as a bit; 0 if its number is too high.
func bit(r relationID) uint64 { return 1 << r }

// isDirect reports whether the tuples of a relation count.
func (r *rule) isDirect(relation relationID) bool {
	if relation < 64 {
		return r.directBits&bit(relation) != 0
	}
	return slices.Contains(r.direct, relation)
}

// isTupleset reports whether an arrow follows a relation.
func (r *rule) isTupleset(relation relationID) bool {
	if relation < 64 {
		return r.tuplesetBits&bit(relation) != 0
	}
	return slices.ContainsFunc(r.arrows, func(a arrow) bool { return a.tupleset == relation })
}

type arrow struct{ tupleset, computed relationID }

// logic is a [schema.Logic] in numbers.
type logic struct {
	kind     schema.Kind
	relation relationID
	operands []int32
	arrow    arrow // TupleToUserset
	stratum  int
	local    bool
}

func (l *logic) isExclusion() bool { return l.kind == schema.Exclusion }

// isArrow reports whether the logic is an intersection arrow.
func (l *logic) isArrow() bool { return l.kind == schema.TupleToUserset }

// newProgram resolves the names of a compiled schema in the graph's dictionaries.
func newProgram(c *schema.Compiled, g *graph) *program {
	relation := func(name string) relationID { return relationID(g.relations.intern(name)) }
	p := &program{compiled: c, graph: g, rules: make([]rule, len(c.Rules)), logic: make([]logic, len(c.Logic))}
	for name := range c.TypeNames() { // those without relations too
		g.types.intern(name)
	}
	for i, from := range c.Rules {
		to := &p.rules[i]
		to.relation = relation(from.Relation)
		for _, name := range from.Includes {
			to.includes = append(to.includes, relation(name))
		}
		for _, name := range from.Direct {
			to.direct = append(to.direct, relation(name))
		}
		for _, a := range needed(c, from.Arrows) {
			to.arrows = append(to.arrows, arrow{relation(a.Tupleset), relation(a.Computed)})
		}
		for _, id := range from.Logic {
			to.logic = append(to.logic, int32(id))
		}
		for _, r := range to.direct {
			to.directBits |= bit(r)
		}
		for _, a := range to.arrows {
			to.tuplesetBits |= bit(a.tupleset)
		}
		to.self = from.Self
		to.leaf = len(to.direct) == 1 && len(to.arrows) == 0 && len(to.logic) == 0 && !to.self
	}
	for i, from := range c.Logic {
		to := &p.logic[i]
		to.kind = from.Kind
		if to.isArrow() {
			to.arrow = arrow{relation(from.Arrow.Tupleset), relation(from.Arrow.Computed)}
		}
		to.stratum, to.local = from.Stratum, from.Local
		p.local = p.local || to.local
		for _, id := range from.Operands {
			to.operands = append(to.operands, int32(id))
		}
		to.relation = p.rules[to.operands[0]].relation
	}
	p.columns = len(g.relations.names)
	p.table = make([]int32, len(g.types.names)*p.columns)
	for typ, typeName := range g.types.names {
		for rel, relationName := range g.relations.names {
			at := typ*p.columns + rel
			p.table[at] = noRule
			if id, ok := c.Rule(typeName, relationName); ok {
				p.table[at] = int32(id)
			}
		}
	}
	return p
}

// needed leaves out arrows that find nothing which another one of the same
// tupleset does not: parent->editor beside parent->viewer, where a viewer is who is
// an editor, whatever type the parent has.
func needed(c *schema.Compiled, arrows []schema.Arrow) []schema.Arrow {
	covers := func(a, b schema.Arrow) bool {
		if a.Tupleset != b.Tupleset || a == b {
			return false
		}
		for typ := range c.TypeNames() {
			narrow, ok := c.Rule(typ, b.Computed)
			if !ok {
				continue
			}
			wide, ok := c.Rule(typ, a.Computed)
			if !ok || wide != narrow && !slices.Contains(c.Rules[wide].Includes, b.Computed) {
				return false
			}
		}
		return true
	}
	kept := slices.Clone(arrows)
	for _, b := range arrows { // one after another, since two may cover each other
		if slices.ContainsFunc(kept, func(a schema.Arrow) bool { return covers(a, b) }) {
			kept = slices.DeleteFunc(kept, func(a schema.Arrow) bool { return a == b })
		}
	}
	return kept
}

// at is where the table has a type's relation, or -1.
func (p *program) at(typ typeID, relation relationID) int {
	if int(relation) >= p.columns {
		return -1
	}
	if at := int(typ)*p.columns + int(relation); at < len(p.table) {
		return at
	}
	return -1
}

// rule finds the rule of a type's relation, or noRule.
func (p *program) rule(typ typeID, relation relationID) int32 {
	if at := p.at(typ, relation); at >= 0 {
		return p.table[at]
	}
	return noRule
}
