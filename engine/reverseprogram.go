package engine

import (
	"sync"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// inverse is a program read from the subjects' end: what a tuple, or a set that
// is known to hold the subject, lets it into.
//
// It is an overestimate. Of an intersection only the first operand is looked at,
// of an exclusion only the base, and of an intersection arrow any link; a subject
// that gets in that way is asked about again. What gets in without passing any of them is sure.
type inverse struct {
	program *program
	// All are by the place of a type's relation in the program's table.
	//
	// byTuple: a tuple of relation d of an object lets its subject into these
	// relations of the same object.
	byTuple [][]into
	// bySet: a set that is the whole of relation r is part of these relations of
	// the same object.
	bySet [][]into
	// byLink: an object that a tuple of relation t links to lets its relation
	// computed into a relation of the object that has the tuple.
	byLink [][]intoComputed
	// bySelf, by type: an object is in these relations of itself.
	bySelf [][]into

	mu       sync.Mutex
	relevant map[typeRelation][]bool
}

type typeRelation struct {
	typ      typeID
	relation relationID
}

type into struct {
	relation relationID
	sure     bool
}

type intoComputed struct {
	computed relationID
	into
}

// inverse returns the program's, made when it is first asked for.
func (p *program) inverse() *inverse {
	p.inverseOnce.Do(func() { p.inverted = newInverse(p) })
	return p.inverted
}

func newInverse(p *program) *inverse {
	r := &inverse{
		program: p, byTuple: make([][]into, len(p.table)), bySet: make([][]into, len(p.table)),
		byLink: make([][]intoComputed, len(p.table)), bySelf: make([][]into, len(p.graph.types.names)), relevant: map[typeRelation][]bool{},
	}
	for at, id := range p.table {
		if id == noRule {
			continue
		}
		typ, relation := typeID(at/p.columns), relationID(at%p.columns)
		p.sources(id, true, map[int32]bool{}, func(from *rule, sure bool) {
			to := into{relation, sure}
			if from.self {
				r.bySelf[typ] = append(r.bySelf[typ], to)
			}
			for _, d := range from.direct {
				key := p.at(typ, d)
				r.byTuple[key] = append(r.byTuple[key], to)
			}
			for _, whole := range from.includes {
				key := p.at(typ, whole)
				r.bySet[key] = append(r.bySet[key], to)
			}
			for _, a := range from.arrows {
				key := p.at(typ, a.tupleset)
				r.byLink[key] = append(r.byLink[key], intoComputed{a.computed, to})
			}
		})
	}
	return r
}

// sources visits the rules whose sets a rule's set can come from: itself and,
// no longer sure, the first operands of its logic.
func (p *program) sources(id int32, sure bool, seen map[int32]bool, visit func(from *rule, sure bool)) {
	if seen[id] {
		return
	}
	seen[id] = true
	from := &p.rules[id]
	visit(from, sure)
	for _, l := range from.logic {
		p.sources(p.logic[l].operands[0], false, seen, visit)
	}
}

// towards tells the relations through which a subject can get into the target.
func (r *inverse) towards(target typeRelation) []bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.relevant[target]; ok {
		return known
	}
	p := r.program
	types, relations := &p.graph.types, &p.graph.relations
	relevant := make([]bool, len(p.table))
	relevant[p.at(target.typ, target.relation)] = true
	for queue := []typeRelation{target}; len(queue) > 0; {
		at := queue[0]
		queue = queue[1:]
		add := func(shape tuplestore.SubjectShape, relation relationID) {
			typ, ok := types.numbers[shape.Type]
			if !ok || p.rule(typeID(typ), relation) == noRule || relevant[p.at(typeID(typ), relation)] {
				return
			}
			relevant[p.at(typeID(typ), relation)] = true
			queue = append(queue, typeRelation{typeID(typ), relation})
		}
		subjects := func(relation relationID) []schema.SubjectType {
			return p.compiled.Subjects(types.names[at.typ], relations.names[relation])
		}
		p.sources(p.rule(at.typ, at.relation), true, map[int32]bool{}, func(from *rule, _ bool) {
			for _, d := range from.direct {
				for _, s := range subjects(d) {
					if s.Relation != "" {
						add(tuplestore.SubjectShape(s), relationID(relations.numbers[s.Relation]))
					}
				}
			}
			for _, a := range from.arrows {
				for _, s := range subjects(a.tupleset) {
					add(tuplestore.SubjectShape(s), a.computed)
				}
			}
		})
	}
	r.relevant[target] = relevant
	return relevant
}
