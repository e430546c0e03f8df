package program

import (
	"slices"

	"stonetown/engine/internal/graph"
)

// Named is the subjects that tuples of a relation may name. The schema of a revision allows
// every tuple stored at it, so no others need to be looked for.
type Named struct {
	plain, wildcards []graph.TypeID
	Usersets         bool
}

// Plain reports whether tuples may name objects of a type.
func (n *Named) Plain(typ graph.TypeID) bool { return slices.Contains(n.plain, typ) }

// Wildcard reports whether tuples may name the wildcard of a type.
func (n *Named) Wildcard(typ graph.TypeID) bool { return slices.Contains(n.wildcards, typ) }

// nothing is of relations that are not defined.
var nothing Named

// Named returns the subjects that tuples of a type's relation may name.
func (p *Program) Named(typ graph.TypeID, relation graph.RelationID) *Named {
	p.namedOnce.Do(p.makeNamed)
	if at := p.At(typ, relation); at >= 0 {
		return &p.named[at]
	}
	return &nothing
}

func (p *Program) makeNamed() {
	p.named = make([]Named, len(p.table))
	types, relations := &p.types, &p.relations
	for at := range p.table {
		n := &p.named[at]
		for _, s := range p.Compiled.Subjects(types.Name(graph.TypeID(at/p.columns)), relations.Name(graph.RelationID(at%p.columns))) {
			switch {
			case s.Relation != "":
				n.Usersets = true
			case s.Wildcard:
				n.wildcards = append(n.wildcards, types.Known(s.Type))
			default:
				n.plain = append(n.plain, types.Known(s.Type))
			}
		}
	}
}
