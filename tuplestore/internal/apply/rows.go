package apply

import (
	"iter"

	"stonetown/tuplestore"
)

// rows is a set of tuples with their qualifiers. The first use of a filter, which bulk
// loads do not have, builds an index by object and by subject.
type rows struct {
	all                 map[tuplestore.Tuple]tuplestore.Qualifier
	byObject, bySubject map[tuplestore.Object]map[tuplestore.Tuple]struct{} // nil before the first use of a filter
}

func newRows() rows { return rows{all: make(map[tuplestore.Tuple]tuplestore.Qualifier)} }

// qualifier returns the qualifier of a tuple, if it is in the set.
func (r *rows) qualifier(t tuplestore.Tuple) (qualifier tuplestore.Qualifier, ok bool) {
	qualifier, ok = r.all[t]
	return qualifier, ok
}

// put adds a tuple, or replaces its qualifier.
func (r *rows) put(f tuplestore.Fact) {
	r.all[f.Tuple] = f.Qualifier
	if r.byObject != nil {
		r.index(f.Tuple)
	}
}

func (r *rows) remove(t tuplestore.Tuple) {
	delete(r.all, t)
	delete(r.byObject[t.Object], t)
	delete(r.bySubject[t.Subject.Object()], t)
}

func (r *rows) index(t tuplestore.Tuple) {
	insert(r.byObject, t.Object, t)
	insert(r.bySubject, t.Subject.Object(), t)
}

func insert(index map[tuplestore.Object]map[tuplestore.Tuple]struct{}, key tuplestore.Object, t tuplestore.Tuple) {
	set := index[key]
	if set == nil {
		set = make(map[tuplestore.Tuple]struct{})
		index[key] = set
	}
	set[t] = struct{}{}
}

// crowded reports whether a node has more than one tuple.
func (r *rows) crowded(n tuplestore.Node) bool {
	tuples := 0
	for t := range r.byObject[n.Object] {
		if t.Relation == n.Relation {
			tuples++
		}
	}
	return tuples > 1
}

// matching yields the tuples that f selects, regardless of Crowded, in no particular order.
func (r *rows) matching(f tuplestore.Filter) iter.Seq[tuplestore.Tuple] {
	if r.byObject == nil {
		r.byObject = make(map[tuplestore.Object]map[tuplestore.Tuple]struct{})
		r.bySubject = make(map[tuplestore.Object]map[tuplestore.Tuple]struct{})
		for t := range r.all {
			r.index(t)
		}
	}
	return func(yield func(tuplestore.Tuple) bool) {
		visit := func(set map[tuplestore.Tuple]struct{}) bool {
			for t := range set {
				if f.Matches(tuplestore.Fact{Tuple: t, Qualifier: r.all[t]}) && !yield(t) {
					return false
				}
			}
			return true
		}
		switch {
		case f.ObjectType != "" && f.ObjectID != "":
			visit(r.byObject[tuplestore.Object{Type: f.ObjectType, ID: f.ObjectID}])
		case f.SubjectType != "" && f.SubjectID != "":
			visit(r.bySubject[tuplestore.Object{Type: f.SubjectType, ID: f.SubjectID}])
		default:
			for _, set := range r.byObject {
				if !visit(set) {
					return
				}
			}
		}
	}
}
