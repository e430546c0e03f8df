package storetest

import (
	"maps"
	"slices"

	"stonetown/tuplestore"
)

// state is a whole tenant at one revision: the model of a store's history is one state for
// every revision. Records have no CreatedAt, which the model does not know.
type state struct {
	rev     tuplestore.Revision
	records map[tuplestore.Tuple]tuplestore.Record
}

// apply returns the effect of w. It applies op after op to a copy, regardless of cost. The
// next state is s itself if nothing changed.
func (s state) apply(w tuplestore.Write) (next state, statuses []tuplestore.Status, counts []int, err error) {
	for i, filter := range w.Absent {
		if n := len(s.list(filter)); n > 0 {
			return s, nil, nil, &tuplestore.ConflictError{Op: -1, Absent: i, Count: n}
		}
	}
	expired := func(r tuplestore.Record, at int64) bool { return r.ExpiresAt != 0 && r.ExpiresAt <= at }
	for i, p := range w.Preconditions {
		existing := slices.DeleteFunc(s.list(p.Filter), func(r tuplestore.Record) bool { return expired(r, w.Now) })
		if len(existing) > 0 != p.Exists {
			return s, nil, nil, &tuplestore.PreconditionError{Index: i, Revision: s.rev}
		}
	}
	next = state{s.rev + 1, maps.Clone(s.records)}
	for i, op := range w.Ops {
		have, exists := next.records[op.Tuple]
		status, count := tuplestore.Deleted, 1
		switch op.Kind {
		case tuplestore.Create, tuplestore.CreateNew:
			if op.Kind == tuplestore.CreateNew && exists && !expired(have, w.Now) {
				return s, nil, nil, &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: op.Tuple, Exists: true}
			}
			switch {
			case !exists:
				status = tuplestore.Created
			case have.Qualifier != op.Qualifier:
				status = tuplestore.Updated
			default:
				status, count = tuplestore.Existed, 0
			}
			node := tuplestore.Filter{ObjectType: op.Tuple.Object.Type, ObjectID: op.Tuple.Object.ID, Relation: op.Tuple.Relation}
			for _, other := range next.list(node) {
				if op.Others == tuplestore.KeepOthers || other.Tuple == op.Tuple {
					continue
				}
				if op.Others == tuplestore.RefuseOthers && !expired(other, w.Now) {
					return s, nil, nil, &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: other.Tuple, Second: true}
				}
				delete(next.records, other.Tuple)
				status = tuplestore.Replaced
				count++
			}
			record, existed := s.records[op.Tuple]
			if !existed || record.Qualifier != op.Qualifier {
				record = tuplestore.Record{Fact: tuplestore.Fact{Tuple: op.Tuple, Qualifier: op.Qualifier}, CreatedRevision: next.rev, CreatedBy: w.Actor}
			}
			next.records[op.Tuple] = record
		case tuplestore.Delete:
			if !exists {
				return s, nil, nil, &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: op.Tuple}
			}
			delete(next.records, op.Tuple)
		case tuplestore.DeleteExisting:
			if delete(next.records, op.Tuple); !exists {
				count = 0
			}
		case tuplestore.DeleteMatching:
			matches := next.list(op.Match)
			count = len(matches)
			for _, r := range matches {
				delete(next.records, r.Tuple)
			}
		case tuplestore.Expire:
			if count = 0; expired(have, op.Qualifier.ExpiresAt) {
				delete(next.records, op.Tuple)
				count = 1
			}
		}
		statuses, counts = append(statuses, status), append(counts, count)
	}
	if maps.Equal(s.records, next.records) {
		return s, statuses, counts, nil
	}
	return next, statuses, counts, nil
}

// list returns the records that a filter selects, in its order.
func (s state) list(filter tuplestore.Filter) []tuplestore.Record {
	var found []tuplestore.Record
	for _, r := range s.records {
		if filter.Matches(r.Fact) && (!filter.Crowded || s.crowded(r.Tuple)) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, filter.Compare)
	return found
}

// crowded reports whether the node of t has another tuple.
func (s state) crowded(t tuplestore.Tuple) bool {
	for other := range s.records {
		if other.Node() == t.Node() && other != t {
			return true
		}
	}
	return false
}

// find returns the tuples of a lookup, in primary-key order.
func (s state) find(l tuplestore.Lookup) []tuplestore.Fact {
	var found []tuplestore.Fact
	for t, r := range s.records {
		if slices.Contains(l.Tuples, t) || slices.Contains(l.All, t.Node()) ||
			slices.Contains(l.Usersets, t.Node()) && t.Subject.IsUserset() ||
			slices.Contains(l.Naming, t.Subject.Object()) && !t.IsPresence() {
			found = append(found, r.Fact)
		}
	}
	slices.SortFunc(found, compareFacts)
	return found
}

// difference returns the changes between two states.
func difference(before, after state) map[tuplestore.Tuple]tuplestore.Change {
	changed := make(map[tuplestore.Tuple]tuplestore.Change)
	for t := range before.records {
		if _, ok := after.records[t]; !ok {
			changed[t] = tuplestore.Change{Tuple: t, Deleted: true}
		}
	}
	for t, r := range after.records {
		if before.records[t] != r {
			changed[t] = tuplestore.Change{Tuple: t, Qualifier: r.Qualifier}
		}
	}
	return changed
}

// netEffect returns the same changes from the changelog.
func (f *fixture) netEffect(c tuplestore.Commit) map[tuplestore.Tuple]tuplestore.Change {
	f.Helper()
	changed := make(map[tuplestore.Tuple]tuplestore.Change)
	for _, change := range c.Changes {
		if _, ok := changed[change.Tuple]; ok {
			f.Errorf("commit %d changes %v twice", c.Revision, change.Tuple)
		}
		changed[change.Tuple] = change
	}
	return changed
}
