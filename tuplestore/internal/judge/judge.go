// Package judge decides what writes do, without any I/O.
//
// A store commits writes in groups. Each write of a group is judged alone, in
// order, against what the tenant looks like at that point: the rows that are
// stored, plus the effects of the writes of the group accepted so far. A store
// goes through these steps:
//
//	needs := judge.NeedsOf(writes...)      // what must be read
//	view := judge.NewView(head)            // head: locked, nobody else writes
//	view.Add(...)                          // what needs names, as far as it is stored
//	for each write:
//		verdict, err := view.Judge(write)  // err is the caller's; nothing has changed
//		err = write.Also(...)              // err is the caller's; nothing has changed
//		result := view.Accept(verdict)     // later writes see it
//
// and then stores the verdicts' changes. So both backends give the same answer
// for the same reasons, and one caller's failure cannot reach its neighbours.
//
// The net effect of a write is what differs between before and after, and not
// what happened in between: a tuple that is created and then deleted, or
// deleted and then created again, is no change at all and keeps its origin. A
// write without net changes and without a schema takes no revision.
package judge

import (
	"slices"

	"stonetown/tuplestore"
)

// MaxCount is how far the tuples that break a precondition are counted.
const MaxCount = 1000

// View is a tenant as the next write of a group finds it. It is not safe for
// concurrent use.
type View struct {
	head tuplestore.Head
	rows rows
}

// NewView returns the view of a tenant at its head, with no tuple known to
// exist.
func NewView(head tuplestore.Head) *View {
	return &View{head: head, rows: newRows()}
}

// Add makes stored tuples known; the same tuple may be added more than once.
// All must be added before the first write is accepted.
func (v *View) Add(tuples ...tuplestore.Tuple) {
	for _, t := range tuples {
		v.rows.add(t)
	}
}

// Len is the number of tuples known to exist.
func (v *View) Len() int { return v.rows.len }

// Head is the tenant's position after the writes accepted so far.
func (v *View) Head() tuplestore.Head { return v.head }

// Verdict is what an applicable write does.
type Verdict struct {
	// Changes is the net effect, in the order in which the ops came upon the
	// tuples. No tuple stands here twice.
	Changes []tuplestore.Change
	// PutsSchema says that the write also replaces the schema document.
	PutsSchema bool

	statuses []tuplestore.Status
	counts   []int
}

// TakesRevision reports whether the write changes anything.
func (d *Verdict) TakesRevision() bool { return len(d.Changes) > 0 || d.PutsSchema }

// Judge finds out what w does to the view, which stays as it is. It fails with
// [tuplestore.ErrSchemaChanged] or a [*tuplestore.ConflictError]; preconditions
// come before ops and the first that fails is the one reported. Everything
// that [NeedsOf] names for w must have been added.
func (v *View) Judge(w tuplestore.Write) (*Verdict, error) {
	if w.IfSchema != nil && *w.IfSchema != v.head.SchemaRevision {
		return nil, tuplestore.ErrSchemaChanged
	}
	for i, f := range w.Absent {
		if n := v.count(f); n > 0 {
			return nil, &tuplestore.ConflictError{Op: -1, Absent: i, Count: n}
		}
	}

	d := draft{rows: &v.rows, exists: make(map[tuplestore.Tuple]bool, len(w.Ops))}
	verdict := &Verdict{
		PutsSchema: w.PutSchema != nil,
		statuses:   make([]tuplestore.Status, len(w.Ops)),
		counts:     make([]int, len(w.Ops)),
	}
	for i, op := range w.Ops {
		switch op.Kind {
		case tuplestore.Create:
			if d.has(op.Tuple) {
				verdict.statuses[i] = tuplestore.Existed
				continue
			}
			d.set(op.Tuple, true)
			verdict.statuses[i], verdict.counts[i] = tuplestore.Created, 1
		case tuplestore.Delete:
			if !d.has(op.Tuple) {
				return nil, &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: op.Tuple}
			}
			d.set(op.Tuple, false)
			verdict.statuses[i], verdict.counts[i] = tuplestore.Deleted, 1
		case tuplestore.DeleteMatching:
			matches := d.matching(op.Match)
			for _, t := range matches {
				d.set(t, false)
			}
			verdict.statuses[i], verdict.counts[i] = tuplestore.Deleted, len(matches)
		}
	}
	verdict.Changes = d.changes()
	return verdict, nil
}

// count is the number of tuples that match, at most MaxCount.
func (v *View) count(f tuplestore.Filter) (n int) {
	for range v.rows.matching(f) {
		if n++; n == MaxCount {
			break
		}
	}
	return n
}

// Accept makes the effects of a write visible to those judged after it and
// returns its result, with the revision it takes. The verdict must come from
// this view as it is now.
func (v *View) Accept(d *Verdict) tuplestore.Result {
	for _, c := range d.Changes {
		if c.Deleted {
			v.rows.remove(c.Tuple)
		} else {
			v.rows.add(c.Tuple)
		}
	}
	if d.TakesRevision() {
		v.head.Revision++
	}
	if d.PutsSchema {
		v.head.SchemaRevision = v.head.Revision
	}
	return tuplestore.Result{
		Revision: v.head.Revision,
		Epoch:    v.head.Epoch,
		Statuses: d.statuses,
		Counts:   d.counts,
	}
}

// draft is the view as one write's ops change it.
type draft struct {
	rows    *rows
	exists  map[tuplestore.Tuple]bool // the tuples this write has set
	touched []tuplestore.Tuple        // its keys, in order of appearance
}

func (d *draft) has(t tuplestore.Tuple) bool {
	if exists, ok := d.exists[t]; ok {
		return exists
	}
	return d.rows.has(t)
}

func (d *draft) set(t tuplestore.Tuple, exists bool) {
	if _, ok := d.exists[t]; !ok {
		d.touched = append(d.touched, t)
	}
	d.exists[t] = exists
}

// matching is the tuples that f selects, in primary-key order.
func (d *draft) matching(f tuplestore.Filter) []tuplestore.Tuple {
	var found []tuplestore.Tuple
	for t := range d.rows.matching(f) {
		if d.has(t) {
			found = append(found, t)
		}
	}
	for _, t := range d.touched {
		if d.exists[t] && !d.rows.has(t) && f.Matches(t) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, tuplestore.Tuple.Compare)
	return found
}

// changes is what differs from the rows.
func (d *draft) changes() []tuplestore.Change {
	var net []tuplestore.Change
	for _, t := range d.touched {
		if exists := d.exists[t]; exists != d.rows.has(t) {
			net = append(net, tuplestore.Change{Tuple: t, Deleted: !exists})
		}
	}
	return net
}
