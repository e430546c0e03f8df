package judge

import (
	"iter"

	"stonetown/tuplestore"
)

// rows is a set of tuples that finds those of an object or of a subject
// without looking at the others. Few tuples have terms, so these are apart.
type rows struct {
	byObject, bySubject map[tuplestore.Object]map[tuplestore.Tuple]struct{}
	special             map[tuplestore.Tuple]tuplestore.Terms // none are zero
	len                 int
}

func newRows() rows {
	return rows{
		byObject:  make(map[tuplestore.Object]map[tuplestore.Tuple]struct{}),
		bySubject: make(map[tuplestore.Object]map[tuplestore.Tuple]struct{}),
		special:   make(map[tuplestore.Tuple]tuplestore.Terms),
	}
}

func (r *rows) has(t tuplestore.Tuple) bool {
	_, ok := r.byObject[t.Object][t]
	return ok
}

// terms are those of a tuple, if it is in the set.
func (r *rows) terms(t tuplestore.Tuple) (terms tuplestore.Terms, ok bool) {
	return r.special[t], r.has(t)
}

// put adds a tuple, or gives it other terms.
func (r *rows) put(f tuplestore.Fact) {
	if f.Terms == (tuplestore.Terms{}) {
		delete(r.special, f.Tuple)
	} else {
		r.special[f.Tuple] = f.Terms
	}
	if r.has(f.Tuple) {
		return
	}
	insert(r.byObject, f.Object, f.Tuple)
	insert(r.bySubject, f.Subject.Object(), f.Tuple)
	r.len++
}

func (r *rows) remove(t tuplestore.Tuple) {
	if !r.has(t) {
		return
	}
	delete(r.byObject[t.Object], t)
	delete(r.bySubject[t.Subject.Object()], t)
	delete(r.special, t)
	r.len--
}

func insert(index map[tuplestore.Object]map[tuplestore.Tuple]struct{}, key tuplestore.Object, t tuplestore.Tuple) {
	set := index[key]
	if set == nil {
		set = make(map[tuplestore.Tuple]struct{})
		index[key] = set
	}
	set[t] = struct{}{}
}

// matching yields the tuples that f selects, in no particular order.
func (r *rows) matching(f tuplestore.Filter) iter.Seq[tuplestore.Tuple] {
	return func(yield func(tuplestore.Tuple) bool) {
		visit := func(set map[tuplestore.Tuple]struct{}) bool {
			for t := range set {
				if f.Matches(tuplestore.Fact{Tuple: t, Terms: r.special[t]}) && !yield(t) {
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
