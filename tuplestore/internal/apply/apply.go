// Package apply validates writes and computes their effects, without I/O.
//
// A store commits writes in groups. Each write of a group is validated alone, in order,
// against the state of the tenant at that point: the stored rows with the effects of the
// writes of the group accepted so far. A store takes these steps:
//
//	needs := apply.NeedsOf(writes...)      // what must be read
//	view := apply.NewView(head)            // head: locked
//	view.Add(...)                          // what needs names, as far as it is stored
//	for each write:
//		effect, err := view.Validate(write)  // err is the caller's; nothing has changed
//		err = write.Also(...)              // err is the caller's; nothing has changed
//		result := view.Accept(effect)     // later writes see it
//
// and then stores the changes. All backends therefore have the same results, and the
// failure of one write does not affect the others of its group.
//
// The net effect of a write is the difference between the states before and after it: a
// tuple that is created and then deleted, or deleted and then created again with the same
// qualifier, does not change and keeps its origin. A write without net changes and without
// a schema takes no revision.
package apply

import (
	"slices"

	"stonetown/tuplestore"
)

// MaxCount is the number up to which the tuples that violate a precondition are counted.
const MaxCount = 1000

// View is the state of a tenant before the next write of a group. It is not safe for
// concurrent use.
type View struct {
	head     tuplestore.Head
	rows     rows
	accepted []tuplestore.Change // of the newest write; rows gets them when the next one is validated
}

// NewView returns the view of a tenant at its head, without tuples.
func NewView(head tuplestore.Head) *View {
	return &View{head: head, rows: newRows()}
}

// Add adds stored tuples; the same tuple may be added more than once. All must be added
// before the first write is accepted.
func (v *View) Add(stored ...tuplestore.Fact) {
	for _, f := range stored {
		v.rows.put(f)
	}
}

// Len returns the number of tuples.
func (v *View) Len() int { return len(v.rows.all) }

// Head returns the tenant's position after the writes accepted so far.
func (v *View) Head() tuplestore.Head { return v.head }

// Effect is the effect of a valid write.
type Effect struct {
	// Changes is the net effect, in the order in which the ops first concern the tuples. No
	// tuple is twice in it.
	Changes []tuplestore.Change
	// Updates has those of Changes that replace the qualifier of a tuple.
	Updates map[tuplestore.Tuple]bool
	// PutsSchema: the write also replaces the schema document.
	PutsSchema bool

	statuses []tuplestore.Status
	counts   []int
	replaced map[int][]tuplestore.Tuple
}

// TakesRevision reports whether the write changes anything.
func (d *Effect) TakesRevision() bool { return len(d.Changes) > 0 || d.PutsSchema }

// Validate returns the effect of w on the view, which it does not change. It fails with
// [tuplestore.ErrSchemaChanged], a [*tuplestore.ConflictError] or a
// [*tuplestore.PreconditionError]; preconditions come before ops, and the first failure is
// reported. All tuples that [NeedsOf] requires for w must have been added.
func (v *View) Validate(w tuplestore.Write) (*Effect, error) {
	v.settle()
	if w.IfSchema != nil && *w.IfSchema != v.head.SchemaRevision {
		return nil, tuplestore.ErrSchemaChanged
	}
	for i, f := range w.Absent {
		if n := v.count(f); n > 0 {
			return nil, &tuplestore.ConflictError{Op: -1, Absent: i, Count: n}
		}
	}
	for i, p := range w.Preconditions {
		if v.exists(p.Filter, w.Now) != p.Exists {
			return nil, &tuplestore.PreconditionError{Index: i, Revision: v.head.Revision, Epoch: v.head.Epoch}
		}
	}

	d := newDraft(&v.rows, len(w.Ops))
	effect := &Effect{
		PutsSchema: w.PutSchema != nil,
		statuses:   make([]tuplestore.Status, len(w.Ops)),
		counts:     make([]int, len(w.Ops)),
	}
	for i := range w.Ops { // an op is large
		op := &w.Ops[i]
		switch op.Kind {
		case tuplestore.Create, tuplestore.CreateNew:
			qualifier, exists := d.qualifier(op.Tuple)
			switch {
			case op.Kind == tuplestore.CreateNew && exists && !expired(qualifier, w.Now):
				return nil, &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: op.Tuple, Exists: true}
			case !exists:
				effect.statuses[i], effect.counts[i] = tuplestore.Created, 1
			case qualifier != op.Qualifier:
				effect.statuses[i], effect.counts[i] = tuplestore.Updated, 1
			default:
				effect.statuses[i] = tuplestore.Existed
			}
			if op.Others != tuplestore.KeepOthers {
				others := d.others(op.Tuple)
				for _, t := range others {
					if qualifier, _ := d.qualifier(t); op.Others == tuplestore.RefuseOthers && !expired(qualifier, w.Now) {
						return nil, &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: t, Second: true}
					}
				}
				if len(others) > 0 {
					effect.replace(i, others)
				}
				for _, t := range others {
					d.set(tuplestore.Change{Tuple: t, Deleted: true})
				}
			}
			if !exists || qualifier != op.Qualifier {
				d.set(tuplestore.Change{Tuple: op.Tuple, Qualifier: op.Qualifier})
			}
		case tuplestore.Delete, tuplestore.DeleteExisting:
			effect.statuses[i] = tuplestore.Deleted
			if _, exists := d.qualifier(op.Tuple); exists {
				d.set(tuplestore.Change{Tuple: op.Tuple, Deleted: true})
				effect.counts[i] = 1
			} else if op.Kind == tuplestore.Delete {
				return nil, &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: op.Tuple}
			}
		case tuplestore.DeleteMatching:
			matches := d.matching(op.Match)
			for _, t := range matches {
				d.set(tuplestore.Change{Tuple: t, Deleted: true})
			}
			effect.statuses[i], effect.counts[i] = tuplestore.Deleted, len(matches)
		case tuplestore.Expire:
			effect.statuses[i] = tuplestore.Deleted
			if qualifier, exists := d.qualifier(op.Tuple); exists && expired(qualifier, op.Qualifier.ExpiresAt) {
				d.set(tuplestore.Change{Tuple: op.Tuple, Deleted: true})
				effect.counts[i] = 1
			}
		}
	}
	effect.Changes, effect.Updates = d.changes()
	return effect, nil
}

// replace records the tuples that an op deletes.
func (d *Effect) replace(op int, others []tuplestore.Tuple) {
	if d.replaced == nil {
		d.replaced = make(map[int][]tuplestore.Tuple)
	}
	d.replaced[op] = others
	d.statuses[op] = tuplestore.Replaced
	d.counts[op] += len(others)
}

// count returns the number of tuples that match, at most MaxCount.
func (v *View) count(f tuplestore.Filter) (n int) {
	for t := range v.rows.matching(f) {
		if f.Crowded && !v.rows.crowded(t.Node()) {
			continue
		}
		if n++; n == MaxCount {
			break
		}
	}
	return n
}

// exists reports whether a tuple matches that has not expired.
func (v *View) exists(f tuplestore.Filter, now int64) bool {
	for t := range v.rows.matching(f) {
		if qualifier, _ := v.rows.qualifier(t); !expired(qualifier, now) {
			return true
		}
	}
	return false
}

func expired(q tuplestore.Qualifier, now int64) bool { return q.ExpiresAt != 0 && q.ExpiresAt <= now }

// Accept applies the effect of a write to the view and returns the result of the write,
// with its revision. The effect must come from this view in its current state.
func (v *View) Accept(d *Effect) tuplestore.Result {
	v.settle()
	v.accepted = d.Changes
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
		Replaced: d.replaced,
	}
}

// settle applies the newest accepted write to the rows. Most bulk loads have no write after them,
// and need not be applied.
func (v *View) settle() {
	for _, c := range v.accepted {
		if c.Deleted {
			v.rows.remove(c.Tuple)
		} else {
			v.rows.put(tuplestore.Fact{Tuple: c.Tuple, Qualifier: c.Qualifier})
		}
	}
	v.accepted = nil
}

// draft is the view with the changes of one write's ops.
type draft struct {
	rows    *rows
	touched []tuplestore.Change      // the tuples that the write has set, with their current state
	place   map[tuplestore.Tuple]int // index in touched
}

func newDraft(rows *rows, ops int) draft {
	return draft{rows, make([]tuplestore.Change, 0, ops), make(map[tuplestore.Tuple]int, ops)}
}

// qualifier returns the qualifier of a tuple, if it exists.
func (d *draft) qualifier(t tuplestore.Tuple) (qualifier tuplestore.Qualifier, exists bool) {
	if i, ok := d.place[t]; ok {
		return d.touched[i].Qualifier, !d.touched[i].Deleted
	}
	return d.rows.qualifier(t)
}

func (d *draft) set(c tuplestore.Change) {
	if i, ok := d.place[c.Tuple]; ok {
		d.touched[i] = c
		return
	}
	d.place[c.Tuple] = len(d.touched)
	d.touched = append(d.touched, c)
}

// others returns the other tuples of the node of t, in primary-key order.
func (d *draft) others(t tuplestore.Tuple) []tuplestore.Tuple {
	return slices.DeleteFunc(d.matching(node(t)), func(other tuplestore.Tuple) bool { return other == t })
}

// matching returns the tuples that f selects, in primary-key order.
func (d *draft) matching(f tuplestore.Filter) []tuplestore.Tuple {
	var found []tuplestore.Tuple
	for t := range d.rows.matching(f) {
		if _, ok := d.place[t]; !ok {
			found = append(found, t)
		}
	}
	for _, c := range d.touched {
		if !c.Deleted && f.Matches(tuplestore.Fact{Tuple: c.Tuple, Qualifier: c.Qualifier}) {
			found = append(found, c.Tuple)
		}
	}
	slices.SortFunc(found, tuplestore.Tuple.Compare)
	return found
}

// changes returns the differences to the rows, and which of them replace a qualifier. It
// ends the draft.
func (d *draft) changes() (net []tuplestore.Change, updates map[tuplestore.Tuple]bool) {
	net = d.touched[:0]
	for _, c := range d.touched {
		qualifier, existed := d.rows.qualifier(c.Tuple)
		if existed != c.Deleted && qualifier == c.Qualifier {
			continue
		}
		net = append(net, c)
		if existed && !c.Deleted {
			if updates == nil {
				updates = make(map[tuplestore.Tuple]bool)
			}
			updates[c.Tuple] = true
		}
	}
	return net, updates
}
