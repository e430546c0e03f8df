package apply

import "stonetown/tuplestore"

// Needs are the stored tuples that are required to validate a group of writes.
//
// Read Tuples and Matching first, and add them to the view. Then read [Needs.AbsentLimit]
// tuples of each filter of Absent, and [Needs.ExistingLimit] of each of Existing, and add them,
// too. A tuple can be part of several needs.
type Needs struct {
	Tuples   []tuplestore.Tuple  // those of these that exist; without duplicates
	Matching []tuplestore.Filter // all tuples that match one of these
	Absent   []tuplestore.Filter // some tuples of each of these
	Existing []Existing          // some tuples of each of these
}

// Existing are the tuples that match a filter and have not expired.
type Existing struct {
	Filter tuplestore.Filter
	Now    int64
}

// NeedsOf collects the needs of a group.
func NeedsOf(writes ...tuplestore.Write) Needs {
	return needsOf(writes, func(tuplestore.Tuple) bool { return true })
}

// NeedsOfNew collects the needs of a group whose relations, as opposed to presences, are assumed
// not to exist.
func NeedsOfNew(writes ...tuplestore.Write) Needs {
	return needsOf(writes, tuplestore.Tuple.IsPresence)
}

// needsOf collects the needs of a group, with those tuples only that may exist.
func needsOf(writes []tuplestore.Write, mayExist func(tuplestore.Tuple) bool) Needs {
	var n Needs
	ops := 0
	for _, w := range writes {
		for _, op := range w.Ops {
			if mayExist(op.Tuple) {
				ops++
			}
		}
	}
	n.Tuples = make([]tuplestore.Tuple, 0, ops)
	asked := make(map[tuplestore.Tuple]struct{}, ops)
	nodes := make(map[tuplestore.Node]struct{})
	for _, w := range writes {
		n.Absent = append(n.Absent, w.Absent...)
		for _, p := range w.Preconditions {
			n.Existing = append(n.Existing, Existing{p.Filter, w.Now})
		}
		for _, op := range w.Ops {
			if op.Kind == tuplestore.DeleteMatching {
				n.Matching = append(n.Matching, op.Match)
				continue
			}
			if op.Others != tuplestore.KeepOthers {
				if _, ok := nodes[op.Tuple.Node()]; !ok {
					nodes[op.Tuple.Node()] = struct{}{}
					n.Matching = append(n.Matching, node(op.Tuple))
				}
			}
			if !mayExist(op.Tuple) {
				continue
			}
			if _, ok := asked[op.Tuple]; !ok {
				asked[op.Tuple] = struct{}{}
				n.Tuples = append(n.Tuples, op.Tuple)
			}
		}
	}
	return n
}

// node selects the tuples of the node of t.
func node(t tuplestore.Tuple) tuplestore.Filter {
	return tuplestore.Filter{ObjectType: t.Object.Type, ObjectID: t.Object.ID, Relation: t.Relation}
}

// AbsentLimit returns the number of tuples of an Absent filter that suffice if known tuples
// were found for Tuples and Matching. The group can delete or update only those. If tuples
// that were read no longer match after that, either all matching tuples were read or
// [MaxCount] of them are left. Of a Crowded filter one more is read, because the tuples of the last
// node may be cut off.
//
// If Matching is empty, known is at most len(Tuples), so all tuples can be read in one
// round trip.
func (n Needs) AbsentLimit(known int) int { return MaxCount + 1 + known }

// ExistingLimit returns the number of tuples of e that suffice, in the same way: one is left,
// or all were read. Only those that the group can delete or update count, which are in the
// view of Tuples and Matching or, if it is nil because Matching is empty, among Tuples.
func (n Needs) ExistingLimit(e Existing, v *View) int {
	limit := 1
	if v != nil {
		for range v.rows.matching(e.Filter) {
			limit++
		}
		return limit
	}
	f := e.Filter
	f.Condition = "" // what is stored is not known
	for _, t := range n.Tuples {
		if f.Matches(tuplestore.Fact{Tuple: t}) {
			limit++
		}
	}
	return limit
}
