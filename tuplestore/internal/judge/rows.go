package judge

import (
	"iter"

	"stonetown/tuplestore"
)

// rows is a set of tuples that finds those of an object or of a subject
// without looking at the others.
type rows struct {
	byObject, bySubject map[tuplestore.Object]map[tuplestore.Tuple]struct{}
	len                 int
}

func newRows() rows {
	return rows{
		byObject:  make(map[tuplestore.Object]map[tuplestore.Tuple]struct{}),
		bySubject: make(map[tuplestore.Object]map[tuplestore.Tuple]struct{}),
	}
}

func (r *rows) has(t tuplestore.Tuple) bool {
	_, ok := r.byObject[t.Object][t]
	return ok
}

func (r *rows) add(t tuplestore.Tuple) {
	if r.has(t) {
		return
	}
	insert(r.byObject, t.Object, t)
	insert(r.bySubject, t.Subject.Object(), t)
	r.len++
}

func (r *rows) remove(t tuplestore.Tuple) {
	if !r.has(t) {
		return
	}
	delete(r.byObject[t.Object], t)
	delete(r.bySubject[t.Subject.Object()], t)
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
				if f.Matches(t) && !yield(t) {
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
