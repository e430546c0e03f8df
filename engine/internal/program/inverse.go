package program

import (
	"sync"

	"stonetown/engine/internal/graph"
	"stonetown/schema"
)

// Inverse is a program for traversals from subjects: the relations that contain the subject
// because of a tuple, or because of a set that contains it.
//
// It overestimates. Of an intersection it has only the first operand, of an exclusion only
// the base, and an intersection arrow counts as an ordinary one. A relation that is reached
// through one of these has to be checked; one that is reached without them is sure.
//
// The inverse of [Program.Dependents] has all operands, because it is not about what a relation
// can contain but about what can change it: who is banned, too.
type Inverse struct {
	program *Program
	whole   bool // has all operands of logic
	// The first four are indexed by [Program.At].
	//
	// ByTuple: the subject of a tuple of the relation is in these relations of the same
	// object.
	ByTuple [][]Into
	// BySet: the whole set of the relation is part of these relations of the same object.
	BySet [][]Into
	// ByLink: the relation Computed of an object that a tuple of the relation links to is
	// part of these relations of the object with the tuple.
	ByLink [][]IntoComputed
	// ByEveryLink: the intersection arrows that follow tuples of the relation.
	ByEveryLink [][]IntoEvery
	// BySelf, by type: an object is in these relations of itself.
	BySelf [][]Into

	mu       sync.Mutex
	relevant map[TypeRelation][]bool
}

// TypeRelation is a relation of a type.
type TypeRelation struct {
	Type     graph.TypeID
	Relation graph.RelationID
}

// Into is a relation that contains a subject, surely or possibly.
type Into struct {
	Relation graph.RelationID
	Sure     bool
}

// IntoComputed is a relation that contains the relation Computed of a linked object.
type IntoComputed struct {
	Computed graph.RelationID
	Into
}

// IntoEvery is a relation that contains what all linked objects have in common. Union is the rule of
// what at least one of them has.
type IntoEvery struct {
	Union int32
	Into
}

// Inverse returns the program's inverse, which the first call makes.
func (p *Program) Inverse() *Inverse {
	p.inverseOnce.Do(func() { p.inverse = newInverse(p, false) })
	return p.inverse
}

// Dependents returns the inverse of all that relations depend on, which the first call makes.
func (p *Program) Dependents() *Inverse {
	p.dependentsOnce.Do(func() { p.dependents = newInverse(p, true) })
	return p.dependents
}

func newInverse(p *Program, whole bool) *Inverse {
	r := &Inverse{
		program: p, whole: whole, ByTuple: make([][]Into, len(p.table)), BySet: make([][]Into, len(p.table)),
		ByLink: make([][]IntoComputed, len(p.table)), ByEveryLink: make([][]IntoEvery, len(p.table)), BySelf: make([][]Into, len(p.types.Names())), relevant: map[TypeRelation][]bool{},
	}
	for at, id := range p.table {
		if id == NoRule {
			continue
		}
		typ, relation := graph.TypeID(at/p.columns), graph.RelationID(at%p.columns)
		r.sources(id, true, map[int32]bool{}, func(from *Rule, sure bool) {
			to := Into{relation, sure}
			if from.Self {
				r.BySelf[typ] = append(r.BySelf[typ], to)
			}
			for _, d := range from.Direct {
				key := p.At(typ, d)
				r.ByTuple[key] = append(r.ByTuple[key], to)
			}
			for _, whole := range from.Includes {
				key := p.At(typ, whole)
				r.BySet[key] = append(r.BySet[key], to)
			}
			for _, a := range from.Arrows {
				key := p.At(typ, a.Tupleset)
				r.ByLink[key] = append(r.ByLink[key], IntoComputed{a.Computed, to})
			}
			for _, id := range from.Logic {
				if l := &p.Logic[id]; l.IsArrow() {
					key := p.At(typ, l.Arrow.Tupleset)
					r.ByEveryLink[key] = append(r.ByEveryLink[key], IntoEvery{l.Operands[0], to})
				}
			}
		})
	}
	return r
}

// sources visits the rules whose sets a rule's set can come from, or depends on: itself and, no
// longer sure, the first operands of its logic, or all.
func (r *Inverse) sources(id int32, sure bool, seen map[int32]bool, visit func(from *Rule, sure bool)) {
	if seen[id] {
		return
	}
	seen[id] = true
	from := &r.program.Rules[id]
	visit(from, sure)
	for _, l := range from.Logic {
		operands := r.program.Logic[l].Operands
		if !r.whole {
			operands = operands[:1]
		}
		for _, operand := range operands {
			r.sources(operand, false, seen, visit)
		}
	}
}

// Relevant returns, by [Program.At], the relations through which a subject can be in the
// target.
func (r *Inverse) Relevant(target TypeRelation) []bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.relevant[target]; ok {
		return known
	}
	p := r.program
	types, relations := &p.types, &p.relations
	relevant := make([]bool, len(p.table))
	relevant[p.At(target.Type, target.Relation)] = true
	for queue := []TypeRelation{target}; len(queue) > 0; {
		at := queue[0]
		queue = queue[1:]
		add := func(name string, relation graph.RelationID) {
			typ, ok := types.Number(name)
			if !ok || p.Rule(typ, relation) == NoRule || relevant[p.At(typ, relation)] {
				return
			}
			relevant[p.At(typ, relation)] = true
			queue = append(queue, TypeRelation{typ, relation})
		}
		subjects := func(relation graph.RelationID) []schema.SubjectType {
			return p.Compiled.Subjects(types.Name(at.Type), relations.Name(relation))
		}
		r.sources(p.Rule(at.Type, at.Relation), true, map[int32]bool{}, func(from *Rule, _ bool) {
			for _, d := range from.Direct {
				for _, s := range subjects(d) {
					if s.Relation != "" {
						add(s.Type, relations.Known(s.Relation))
					}
				}
			}
			for _, a := range from.Arrows {
				for _, s := range subjects(a.Tupleset) {
					add(s.Type, a.Computed)
				}
			}
		})
	}
	r.relevant[target] = relevant
	return relevant
}
