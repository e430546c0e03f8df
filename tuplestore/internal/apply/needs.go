package apply

import "stonetown/tuplestore"

// Needs is what must be known of the stored tuples to validate a group of writes.
//
// Read Tuples and Matching first, and add them to the view. Then read of each
// filter of Absent as many tuples as [Needs.AbsentLimit] says, and add them
// too. A tuple can answer several needs.
type Needs struct {
	Tuples   []tuplestore.Tuple  // which of these exist? None stands here twice.
	Matching []tuplestore.Filter // all tuples that match one of these
	Absent   []tuplestore.Filter // some tuples of each of these
}

// NeedsOf collects the needs of a group.
func NeedsOf(writes ...tuplestore.Write) Needs {
	var n Needs
	ops := 0
	for _, w := range writes {
		ops += len(w.Ops)
	}
	n.Tuples = make([]tuplestore.Tuple, 0, ops)
	asked := make(map[tuplestore.Tuple]struct{}, ops)
	for _, w := range writes {
		n.Absent = append(n.Absent, w.Absent...)
		for _, op := range w.Ops {
			if op.Kind == tuplestore.DeleteMatching {
				n.Matching = append(n.Matching, op.Match)
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

// AbsentLimit is how many tuples of an Absent filter are enough, when known is
// the number of tuples found for Tuples and Matching. The group can delete, or
// put with another qualifier, only what is among those; so if some of what was read
// ceases to match, either there is nothing more to find or [MaxCount] are still
// left.
//
// Where Matching is empty, known is at most len(Tuples), and with this for
// known everything can be read in one round trip.
func (n Needs) AbsentLimit(known int) int { return MaxCount + known }
