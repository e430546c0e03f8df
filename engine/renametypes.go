package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// MaxRenamed is how many tuples the renames of one change may concern. They are renamed in one
// revision with the types, and other writes of the tenant wait meanwhile.
const MaxRenamed = 10_000

// TooManyRenamedError: the renames of a change concern more than [MaxRenamed] tuples.
type TooManyRenamedError struct{ Rename schema.Rename }

func (e *TooManyRenamedError) Error() string {
	return fmt.Sprintf("a change can rename at most %d relations and resources, and there are more up to %s", MaxRenamed, e.Rename)
}

// rename begins a proposal with the renamed types.
func (ch TypesChange) rename(at position) (p proposal, err error) {
	if p.renaming, err = at.compiled.Rename(ch.Renames); err != nil || len(ch.Renames) == 0 {
		p.renamed = at.compiled
		return p, err
	}
	// A name in the same change must not mean one thing for stored tuples and another for new ones.
	for i, r := range ch.Renames {
		again := slices.Contains(ch.Delete, r.From) && r.Type == ""
		for _, t := range ch.Put {
			again = again || r.Type == "" && t.Name == r.From ||
				r.Type != "" && t.Name == p.renaming.Type(r.Type) && slices.ContainsFunc(t.Relations, func(of schema.Relation) bool { return of.Name == r.From })
		}
		if again {
			return p, &schema.RenameError{Index: i, Rename: r, Field: "from", Reason: "conflict", Message: fmt.Sprintf("%q is renamed and has another meaning in the same change", r.From)}
		}
	}
	p.renamed, err = schema.Compile(p.renaming.Types)
	return p, err
}

// before returns the type that has a name after the renames, as it is before.
func (p *proposal) before(at position, name string) schema.Type {
	t, _ := at.compiled.Type(p.renaming.Reverse().Type(name))
	return t
}

// addRenamed adds the types that only renames have changed, which become those of now.
func (p *proposal) addRenamed(at position, types []schema.Type, now time.Time) {
	for i := range types {
		t := &types[i]
		listed := slices.ContainsFunc(p.changes, func(c TypeChange) bool { return c.Type.Name == t.Name })
		if !listed && !sameType(p.before(at, t.Name), *t) {
			t.UpdatedAt = now
			p.changes = append(p.changes, TypeChange{TypeUpdated, *t})
		}
	}
}

// gone lists the stored tuples, with the names before, that the types no longer allow.
func (p *proposal) gone() []tuplestore.Filter {
	filters := narrowed(p.renamed, p.compiled)
	before := p.renaming.Reverse()
	for i := range filters {
		f := &filters[i]
		f.ObjectType, f.Relation = before.Type(f.ObjectType), before.Relation(f.ObjectType, f.Relation)
		for j := range f.SubjectsOutside {
			s := &f.SubjectsOutside[j]
			s.Type, s.Relation = before.Type(s.Type), before.Relation(s.Type, s.Relation)
		}
	}
	return filters
}

// renameOps rename the stored tuples: relations first, because they name their types by the names
// before.
func (ch TypesChange) renameOps() (ops []tuplestore.Op) {
	for _, i := range ch.renameOrder() {
		ops = append(ops, renameOps(ch.Renames[i])...)
	}
	return ops
}

// renameOrder returns the indexes of the renames in the order of their ops.
func (ch TypesChange) renameOrder() (order []int) {
	for _, types := range []bool{false, true} {
		for i, r := range ch.Renames {
			if types == (r.Type == "") {
				order = append(order, i)
			}
		}
	}
	return order
}

// renameOps returns the two ops of a rename: for objects, and for subjects.
func renameOps(r schema.Rename) []tuplestore.Op {
	if r.Type == "" {
		return []tuplestore.Op{
			{Kind: tuplestore.Rename, Match: tuplestore.Filter{ObjectType: r.From, Presence: tuplestore.WithPresence}, To: tuplestore.Names{ObjectType: r.To}},
			{Kind: tuplestore.Rename, Match: tuplestore.Filter{SubjectType: r.From}, To: tuplestore.Names{SubjectType: r.To}},
		}
	}
	return []tuplestore.Op{
		{Kind: tuplestore.Rename, Match: tuplestore.Filter{ObjectType: r.Type, Relation: r.From}, To: tuplestore.Names{Relation: r.To}},
		{Kind: tuplestore.Rename, Match: tuplestore.Filter{SubjectType: r.Type, SubjectRelation: r.From}, To: tuplestore.Names{SubjectRelation: r.To}},
	}
}

// Renamed returns how many tuples each rename of the change concerned, by the result of its write.
func (ch TypesChange) Renamed(result tuplestore.Result) []int {
	counts := make([]int, len(ch.Renames))
	for n, i := range ch.renameOrder() {
		counts[i] = result.Counts[2*n] + result.Counts[2*n+1]
	}
	return counts
}

// mayRename fails if the renames of a change concern too many tuples. Tuples that are written
// meanwhile are renamed, too.
func (e *Engine) mayRename(ctx context.Context, tenantID string, change TypesChange) error {
	if len(change.Renames) == 0 {
		return nil
	}
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return err
	}
	if _, err := change.rename(at); err != nil {
		return nil // unless the change was made before, it will fail
	}
	return within(ctx, e.counts, tenantID, "engine.wait_to_count", func() error {
		counts, err := countRenamed(ctx, e.store.Snapshot(tenantID, at.revision), change.Renames)
		for i, n := range counts {
			if err == nil && !n.Exact {
				err = &TooManyRenamedError{change.Renames[i]}
			}
		}
		return err
	})
}

// RenamedTuples is how many stored tuples a rename concerns. A tuple that names a type or a
// relation twice counts twice.
type RenamedTuples struct {
	Count int  // of all renames of a change together at most MaxRenamed
	Exact bool // there are not more
}

// countRenamed counts the tuples that renames concern.
func countRenamed(ctx context.Context, s tuplestore.Snapshot, renames []schema.Rename) ([]RenamedTuples, error) {
	left := MaxRenamed
	var counts []RenamedTuples
	for _, r := range renames {
		n := RenamedTuples{Exact: true}
		for _, op := range renameOps(r) {
			for _, err := range s.Scan(ctx, op.Match) {
				if err != nil {
					return nil, err
				}
				if left == 0 {
					n.Exact = false
					break
				}
				n.Count++
				left--
			}
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// rename returns a plan's request with the new names in its questions.
func (p *proposal) rename(req PlanRequest) PlanRequest {
	questions := make([]Query, len(req.Questions))
	for i, q := range req.Questions {
		subject := renameSubject(p.renaming, *q.Subject)
		questions[i] = Query{Subject: &subject, Resource: renameObject(p.renaming, q.Resource), Action: q.Action}
	}
	req.Questions = questions
	return req
}

// snapshot returns a snapshot as it is after the renames, for questions.
func (p *proposal) snapshot(before tuplestore.Snapshot) tuplestore.Snapshot {
	return renamedSnapshot{before, p.renaming, p.renaming.Reverse()}
}

type renamedSnapshot struct {
	tuplestore.Snapshot
	to, back *schema.Renaming
}

func (s renamedSnapshot) Find(ctx context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
	var before tuplestore.Lookup
	for _, t := range l.Tuples {
		before.Tuples = append(before.Tuples, renameTuple(s.back, t))
	}
	for _, n := range l.Usersets {
		before.Usersets = append(before.Usersets, renameNode(s.back, n))
	}
	for _, n := range l.All {
		before.All = append(before.All, renameNode(s.back, n))
	}
	for _, o := range l.Naming {
		before.Naming = append(before.Naming, renameObject(s.back, o))
	}
	found, err := s.Snapshot.Find(ctx, before)
	for i := range found {
		found[i].Tuple = renameTuple(s.to, found[i].Tuple)
	}
	return found, err
}

func renameObject(n *schema.Renaming, o tuplestore.Object) tuplestore.Object {
	return tuplestore.Object{Type: n.Type(o.Type), ID: o.ID}
}

func renameNode(n *schema.Renaming, at tuplestore.Node) tuplestore.Node {
	return tuplestore.Node{Object: renameObject(n, at.Object), Relation: n.Relation(at.Object.Type, at.Relation)}
}

func renameSubject(n *schema.Renaming, s tuplestore.Subject) tuplestore.Subject {
	return tuplestore.Subject{Type: n.Type(s.Type), ID: s.ID, Relation: n.Relation(s.Type, s.Relation)}
}

func renameTuple(n *schema.Renaming, t tuplestore.Tuple) tuplestore.Tuple {
	at := renameNode(n, t.Node())
	return tuplestore.Tuple{Object: at.Object, Relation: at.Relation, Subject: renameSubject(n, t.Subject)}
}
