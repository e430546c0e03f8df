package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stonetown/engine/internal/names"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Assumption is changes that a question assumes: they are not made. The answer is the one that
// the question would have after them.
type Assumption struct {
	Remove []WriteOp // relations that are stored, also expired ones; at most MaxContextual
	// Add are relations to create after those of Remove are deleted, at most MaxContextual. Like
	// a write, they register their resources and replace the expiry and the condition of
	// relations that exist.
	Add []WriteOp
	// Types is a change of resource types that is made first. Relations that the new types do
	// not allow do not exist.
	Types TypesChange
	// Instant is the time by which tuples expire; zero: that of the question.
	Instant time.Time
}

// AssumptionError is the error of a part of an [Assumption].
type AssumptionError struct {
	Part  string // the relations to add or remove: add, remove; or types
	Index int    // of the relation
	Err   error  // that of a write or a change of types
}

func (e *AssumptionError) Error() string {
	if e.Part == "types" {
		return fmt.Sprintf("assumed resource types: %v", e.Err)
	}
	return fmt.Sprintf("relation %d to %s: %v", e.Index, e.Part, e.Err)
}
func (e *AssumptionError) Unwrap() error { return e.Err }

func (a *Assumption) clock() time.Time { return a.Instant }

// changesState reports whether the assumption is about more than the time.
func (a *Assumption) changesState() bool {
	return a != nil && len(a.Remove)+len(a.Add)+len(a.Types.Put)+len(a.Types.Delete) > 0
}

// assumed is a snapshot after changes that are not made, for questions.
type assumed struct {
	tuplestore.Snapshot
	before  *schema.Compiled // the types of the snapshot
	gone    []tuplestore.Filter
	hidden  map[tuplestore.Tuple]bool // those removed or replaced
	added   map[tuplestore.Tuple]tuplestore.Fact
	nodes   map[tuplestore.Node][]tuplestore.Fact
	objects map[tuplestore.Object][]tuplestore.Fact // by the subject's object
}

// assume makes the changes of an assumption, for the view only, to a snapshot and the types of its
// revision.
func (v *readView) assume(ctx context.Context, tenantID string, s tuplestore.Snapshot, a *Assumption) (tuplestore.Snapshot, error) {
	if n := max(len(a.Remove), len(a.Add)); n > MaxContextual {
		return nil, &TooManyContextualError{Count: n}
	}
	after := &assumed{Snapshot: s, before: v.at.compiled, hidden: map[tuplestore.Tuple]bool{}}
	if err := after.remove(ctx, v.at.compiled, a.Remove); err != nil {
		return nil, err
	}
	if len(a.Types.Put)+len(a.Types.Delete) > 0 {
		p, err := a.Types.propose(tenantID, v.at)
		if err != nil {
			return nil, &AssumptionError{Part: "types", Err: err}
		}
		after.gone = forbidden(narrowed(v.at.compiled, p.compiled))
		v.at.compiled = p.compiled
	}
	return after, after.add(v.at.compiled, a.Add)
}

// forbidden returns the filters of tuples that types do not allow, each by itself, unlike the
// tuples of a node that has more than one.
func forbidden(gone []tuplestore.Filter) []tuplestore.Filter {
	return slices.DeleteFunc(slices.Clone(gone), func(f tuplestore.Filter) bool { return f.Crowded })
}

// remove hides relations, which the types before allow and which must exist.
func (s *assumed) remove(ctx context.Context, before *schema.Compiled, ops []WriteOp) error {
	var tuples []tuplestore.Tuple
	for i, op := range ops {
		op.Delete = true
		f, err := validateOp(before, op)
		if err != nil {
			return &AssumptionError{Part: "remove", Index: i, Err: err}
		}
		tuples = append(tuples, f.Tuple)
		s.hidden[f.Tuple] = true
	}
	if len(tuples) == 0 {
		return nil
	}
	found, err := s.Snapshot.Find(ctx, tuplestore.Lookup{Tuples: tuples})
	if err != nil {
		return expired(err)
	}
	for i, t := range tuples {
		if !slices.ContainsFunc(found, func(f tuplestore.Fact) bool { return f.Tuple == t }) {
			return &AssumptionError{Part: "remove", Index: i, Err: &RelationNotFoundError{Tuple: t}}
		}
	}
	return nil
}

// add adds relations, which the types after must allow, and their resources.
func (s *assumed) add(after *schema.Compiled, ops []WriteOp) error {
	s.added = map[tuplestore.Tuple]tuplestore.Fact{}
	for i, op := range ops {
		op.Delete = false
		f, err := validateOp(after, op)
		if err != nil {
			return &AssumptionError{Part: "add", Index: i, Err: err}
		}
		presence := tuplestore.Presence(f.Object)
		s.added[f.Tuple], s.added[presence] = f, tuplestore.Fact{Tuple: presence}
	}
	s.nodes, s.objects = map[tuplestore.Node][]tuplestore.Fact{}, map[tuplestore.Object][]tuplestore.Fact{}
	for t, f := range s.added {
		s.hidden[t] = true
		if !t.IsPresence() {
			s.nodes[t.Node()] = append(s.nodes[t.Node()], f)
			s.objects[t.Subject.Object()] = append(s.objects[t.Subject.Object()], f)
		}
	}
	return nil
}

// isGone reports whether a stored tuple does not exist after the changes, or is replaced.
func (s *assumed) isGone(fact tuplestore.Fact) bool {
	return s.hidden[fact.Tuple] || slices.ContainsFunc(s.gone, func(f tuplestore.Filter) bool { return f.Matches(fact) })
}

// List lists tuples of a node.
func (s *assumed) List(ctx context.Context, f tuplestore.Filter, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	var list []tuplestore.Record
	compare := names.Compare(f, s.before)
	for from := after; len(list) < limit; {
		page, err := s.Snapshot.List(ctx, f, from, limit)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if from = &page[i]; !s.isGone(from.Fact) {
				list = append(list, *from)
			}
		}
		if len(page) < limit {
			break
		}
	}
	for _, fact := range s.nodes[tuplestore.Node{Object: tuplestore.Object{Type: f.ObjectType, ID: f.ObjectID}, Relation: f.Relation}] {
		if r := (tuplestore.Record{Fact: fact}); after == nil || compare(r, *after) > 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, compare)
	return list[:min(limit, len(list))], nil
}

func (s *assumed) Find(ctx context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
	found, err := s.Snapshot.Find(ctx, l)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, s.isGone)
	more := map[tuplestore.Tuple]tuplestore.Fact{} // several parts of a lookup can request a tuple
	for _, t := range l.Tuples {
		if f, ok := s.added[t]; ok {
			more[t] = f
		}
	}
	for _, n := range l.Usersets {
		for _, f := range s.nodes[n] {
			if f.Subject.IsUserset() {
				more[f.Tuple] = f
			}
		}
	}
	for _, n := range l.All {
		for _, f := range s.nodes[n] {
			more[f.Tuple] = f
		}
	}
	for _, o := range l.Naming {
		for _, f := range s.objects[o] {
			more[f.Tuple] = f
		}
	}
	for _, f := range more {
		found = append(found, f)
	}
	return found, nil
}
