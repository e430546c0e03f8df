// Package names shows a tuple store by the names of types and relations that hold at a revision.
//
// Tuples have the names that they were written with. A rename changes the types of a tenant only:
// they say by which name the tuples of each type and relation are stored
// ([schema.StoredNames]). The functions of this package translate what the engine writes, and what
// it reads, by the types of the revision in question. If no name of them differs, which is so unless
// the tenant has renamed something, they return what they are given: there is nothing in between.
//
// The store orders tuples by their stored names. Positions in its lists ([Page]) therefore have
// stored names, too, which renames do not change: a list continues where it was, by the new names.
package names

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Object translates the name of an object.
func Object(n *schema.Names, o tuplestore.Object) tuplestore.Object {
	return tuplestore.Object{Type: n.Type(o.Type), ID: o.ID}
}

// Node translates the names of a node.
func Node(n *schema.Names, at tuplestore.Node) tuplestore.Node {
	return tuplestore.Node{Object: Object(n, at.Object), Relation: n.Relation(at.Object.Type, at.Relation)}
}

// Subject translates the names of a subject.
func Subject(n *schema.Names, s tuplestore.Subject) tuplestore.Subject {
	return tuplestore.Subject{Type: n.Type(s.Type), ID: s.ID, Relation: n.Relation(s.Type, s.Relation)}
}

// Tuple translates the names of a tuple.
func Tuple(n *schema.Names, t tuplestore.Tuple) tuplestore.Tuple {
	at := Node(n, t.Node())
	return tuplestore.Tuple{Object: at.Object, Relation: at.Relation, Subject: Subject(n, t.Subject)}
}

// StoredObject returns the stored name of an object.
func StoredObject(o tuplestore.Object, c *schema.Compiled) tuplestore.Object {
	if s := c.StoredNames(); s != nil {
		return Object(&s.Of, o)
	}
	return o
}

// Position returns the position of a record in lists of the store.
func Position(r *tuplestore.Record, c *schema.Compiled) *tuplestore.Record {
	s := c.StoredNames()
	if s == nil || r == nil {
		return r
	}
	return record(&s.Of, *r)
}

func record(n *schema.Names, r tuplestore.Record) *tuplestore.Record {
	r.Tuple = Tuple(n, r.Tuple)
	return &r
}

// filter translates a filter that names the type of each relation. The error is that of one that
// does not.
func filter(n *schema.Names, f tuplestore.Filter) (tuplestore.Filter, error) {
	if f.Relation != "" && f.ObjectType == "" || f.SubjectRelation != "" && f.SubjectType == "" {
		return f, fmt.Errorf("filter by a relation of any type: %+v", f)
	}
	f.ObjectType, f.Relation = n.Type(f.ObjectType), n.Relation(f.ObjectType, f.Relation)
	f.SubjectType, f.SubjectRelation = n.Type(f.SubjectType), n.Relation(f.SubjectType, f.SubjectRelation)
	f.SubjectsOutside = slices.Clone(f.SubjectsOutside)
	for i := range f.SubjectsOutside {
		s := &f.SubjectsOutside[i]
		s.Type, s.Relation = n.Type(s.Type), n.Relation(s.Type, s.Relation)
	}
	return f, nil
}

// ErrPosition is the error of a position in a list of other names: those of the list have been
// exchanged by renames.
var ErrPosition = errors.New("the position is one of another list")

// contains reports whether a list of a stored filter can have a position; nil is its start.
func contains(f tuplestore.Filter, position *tuplestore.Record) bool {
	if position == nil {
		return true
	}
	equal := func(want, got string) bool { return want == "" || want == got }
	return equal(f.ObjectType, position.Object.Type) && equal(f.Relation, position.Relation) &&
		equal(f.SubjectType, position.Subject.Type) && equal(f.SubjectRelation, position.Subject.Relation)
}

// Compare orders records as the lists of a snapshot do, in the order of f.
func Compare(f tuplestore.Filter, c *schema.Compiled) func(a, b tuplestore.Record) int {
	s := c.StoredNames()
	if s == nil {
		return f.Compare
	}
	return func(a, b tuplestore.Record) int { return f.Compare(*record(&s.Of, a), *record(&s.Of, b)) }
}

// Changes returns the changes of a commit. c are the types that hold from the commit on.
func Changes(commit *tuplestore.Commit, c *schema.Compiled) []tuplestore.Change {
	s := c.StoredNames()
	if s == nil {
		return commit.Changes
	}
	changes := slices.Clone(commit.Changes)
	for i := range changes {
		changes[i].Tuple = Tuple(&s.Back, changes[i].Tuple)
	}
	return changes
}

// Tuples returns stored tuples by the names of types.
func Tuples(stored []tuplestore.Tuple, c *schema.Compiled) []tuplestore.Tuple {
	s := c.StoredNames()
	if s == nil {
		return stored
	}
	named := make([]tuplestore.Tuple, len(stored))
	for i, t := range stored {
		named[i] = Tuple(&s.Back, t)
	}
	return named
}

// Commits returns commits between which the types do not change.
func Commits(commits []tuplestore.Commit, c *schema.Compiled) []tuplestore.Commit {
	if c.StoredNames() == nil {
		return commits
	}
	commits = slices.Clone(commits)
	for i := range commits {
		commits[i].Changes = Changes(&commits[i], c)
	}
	return commits
}

// Write makes a write that was validated by types. Its result, also for Attach and Event, and its
// errors have their names.
func Write(ctx context.Context, store tuplestore.Store, tenant string, w tuplestore.Write, c *schema.Compiled) (tuplestore.Result, error) {
	s := c.StoredNames()
	if s == nil {
		return store.Write(ctx, tenant, w)
	}
	stored, err := write(s, w)
	if err != nil {
		return tuplestore.Result{}, err
	}
	result, err := store.Write(ctx, tenant, stored)
	var conflict *tuplestore.ConflictError
	if errors.As(err, &conflict) && conflict.Op >= 0 {
		named := *conflict
		named.Tuple = Tuple(&s.Back, conflict.Tuple)
		err = &named
	}
	return resultOf(s, result), err
}

func write(s *schema.StoredNames, w tuplestore.Write) (tuplestore.Write, error) {
	var err error
	w.Ops, w.Absent, w.Preconditions = slices.Clone(w.Ops), slices.Clone(w.Absent), slices.Clone(w.Preconditions)
	for i := range w.Ops {
		op := &w.Ops[i]
		if op.Kind != tuplestore.DeleteMatching {
			op.Tuple = Tuple(&s.Of, op.Tuple)
		} else if op.Match, err = filter(&s.Of, op.Match); err != nil {
			return w, err
		}
	}
	for i := range w.Absent {
		if w.Absent[i], err = filter(&s.Of, w.Absent[i]); err != nil {
			return w, err
		}
	}
	for i := range w.Preconditions {
		if w.Preconditions[i].Filter, err = filter(&s.Of, w.Preconditions[i].Filter); err != nil {
			return w, err
		}
	}
	if w.Known != nil {
		known := *w.Known
		known.Facts = slices.Clone(known.Facts)
		for i := range known.Facts {
			known.Facts[i].Tuple = Tuple(&s.Of, known.Facts[i].Tuple)
		}
		w.Known = &known
	}
	if attach := w.Attach; attach != nil {
		w.Attach = func(r tuplestore.Result, b *tuplestore.Batch) { attach(resultOf(s, r), b) }
	}
	if event := w.Event; event != nil {
		w.Event = func(r tuplestore.Result) string { return event(resultOf(s, r)) }
	}
	return w, nil
}

func resultOf(s *schema.StoredNames, r tuplestore.Result) tuplestore.Result {
	r.Replaced = maps.Clone(r.Replaced)
	for op, tuples := range r.Replaced {
		named := make([]tuplestore.Tuple, len(tuples))
		for i, t := range tuples {
			named[i] = Tuple(&s.Back, t)
		}
		r.Replaced[op] = named
	}
	return r
}

// Page is [tuplestore.Store.Page] by the names of types, except that positions have stored names.
//
// A filter can have a relation, but no type. If the relations of this name have different stored
// names, the page is selected from one without the relation.
func Page(ctx context.Context, store tuplestore.Store, tenant string, c *schema.Compiled, f tuplestore.Filter, after *tuplestore.Record, limit, reads int) (page []tuplestore.Record, next *tuplestore.Record, err error) {
	s := c.StoredNames()
	if s == nil {
		return store.Page(ctx, tenant, f, after, limit, reads)
	}
	wide := f
	if f.ObjectType == "" && s.Of.ChangesRelation(f.Relation) {
		wide.Relation = ""
	}
	if f.SubjectType == "" && s.Of.ChangesRelation(f.SubjectRelation) {
		wide.SubjectRelation = ""
	}
	read := limit
	if isWide := wide.Relation != f.Relation || wide.SubjectRelation != f.SubjectRelation; isWide {
		read = reads
	}
	wide.ObjectType, wide.Relation = s.Of.Type(f.ObjectType), s.Of.Relation(f.ObjectType, wide.Relation)
	wide.SubjectType, wide.SubjectRelation = s.Of.Type(f.SubjectType), s.Of.Relation(f.SubjectType, wide.SubjectRelation)
	if !contains(wide, after) {
		return nil, nil, ErrPosition
	}
	found, next, err := store.Page(ctx, tenant, wide, after, read, reads)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range found {
		named := record(&s.Back, r)
		if !f.Matches(named.Fact) {
			continue
		}
		if len(page) == limit {
			return page, record(&s.Of, page[limit-1]), nil
		}
		page = append(page, *named)
	}
	return page, next, nil
}

// List is the List of a [Snapshot], after a position.
func List(ctx context.Context, in tuplestore.Snapshot, f tuplestore.Filter, position *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	if named, ok := in.(interface {
		listAfter(context.Context, tuplestore.Filter, *tuplestore.Record, int) ([]tuplestore.Record, error)
	}); ok {
		return named.listAfter(ctx, f, position, limit)
	}
	return in.List(ctx, f, position, limit)
}

// Snapshot returns a snapshot by the names of the types of its revision. It is a
// [tuplestore.WholeFinder] if the given one is.
func Snapshot(in tuplestore.Snapshot, c *schema.Compiled) tuplestore.Snapshot {
	s := c.StoredNames()
	if s == nil {
		return in
	}
	if finder, ok := in.(tuplestore.WholeFinder); ok {
		return wholeFinder{snapshot{in, s}, finder}
	}
	return snapshot{in, s}
}

type snapshot struct {
	tuplestore.Snapshot
	names *schema.StoredNames
}

func (sn snapshot) lookup(l tuplestore.Lookup) (stored tuplestore.Lookup) {
	for _, t := range l.Tuples {
		stored.Tuples = append(stored.Tuples, Tuple(&sn.names.Of, t))
	}
	for _, n := range l.Usersets {
		stored.Usersets = append(stored.Usersets, Node(&sn.names.Of, n))
	}
	for _, n := range l.All {
		stored.All = append(stored.All, Node(&sn.names.Of, n))
	}
	for _, o := range l.Naming {
		stored.Naming = append(stored.Naming, Object(&sn.names.Of, o))
	}
	return stored
}

func (sn snapshot) Find(ctx context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
	found, err := sn.Snapshot.Find(ctx, sn.lookup(l))
	sn.name(found)
	return found, err
}

// name gives stored tuples the names of types.
func (sn snapshot) name(found []tuplestore.Fact) {
	for i := range found {
		found[i].Tuple = Tuple(&sn.names.Back, found[i].Tuple)
	}
}

type wholeFinder struct {
	snapshot
	finder tuplestore.WholeFinder
}

func (w wholeFinder) FindWhole(ctx context.Context, l tuplestore.Lookup, objects []tuplestore.Object) (tuplestore.Whole, error) {
	stored := make([]tuplestore.Object, len(objects))
	for i, o := range objects {
		stored[i] = Object(&w.names.Of, o)
	}
	found, err := w.finder.FindWhole(ctx, w.lookup(l), stored)
	w.name(found.Found)
	for _, o := range found.Objects {
		w.name(o.Facts)
	}
	return found, err
}

func (sn snapshot) Touched(ctx context.Context, l tuplestore.Lookup) (tuplestore.Revision, error) {
	return sn.Snapshot.Touched(ctx, sn.lookup(l))
}

// List continues after a record by the same names.
func (sn snapshot) List(ctx context.Context, f tuplestore.Filter, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	if after != nil {
		after = record(&sn.names.Of, *after)
	}
	return sn.listAfter(ctx, f, after, limit)
}

func (sn snapshot) listAfter(ctx context.Context, f tuplestore.Filter, position *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	stored, err := filter(&sn.names.Of, f)
	if err != nil {
		return nil, err
	}
	if !contains(stored, position) {
		return nil, ErrPosition
	}
	list, err := sn.Snapshot.List(ctx, stored, position, limit)
	for i := range list {
		list[i].Tuple = Tuple(&sn.names.Back, list[i].Tuple)
	}
	return list, err
}

func (sn snapshot) Scan(ctx context.Context, f tuplestore.Filter) iter.Seq2[tuplestore.Record, error] {
	return func(yield func(tuplestore.Record, error) bool) {
		stored, err := filter(&sn.names.Of, f)
		if err != nil {
			yield(tuplestore.Record{}, err)
			return
		}
		for r, err := range sn.Snapshot.Scan(ctx, stored) {
			r.Tuple = Tuple(&sn.names.Back, r.Tuple)
			if !yield(r, err) {
				return
			}
		}
	}
}
