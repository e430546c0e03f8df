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

// rename begins a proposal with the renamed types.
func (ch TypesChange) rename(at position) (p proposal, err error) {
	if p.renaming, err = at.compiled.Rename(ch.Renames); err != nil || len(ch.Renames) == 0 {
		p.renamed = at.compiled
		return p, err
	}
	// A name in the same change must not mean one thing in Renames and another one elsewhere.
	for i, r := range ch.Renames {
		if slices.ContainsFunc(ch.Renames, func(other schema.Rename) bool { return other.Type == r.Type && other.To == r.From }) {
			continue // another one has the name now
		}
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

// MaxRenamed is the number up to which a plan counts the tuples that its renames concern.
const MaxRenamed = 10_000

// RenamedTuples is how many stored tuples a rename concerns. A tuple that names a type or a
// relation twice counts twice.
type RenamedTuples struct {
	Count int  // of all renames of a plan together at most MaxRenamed
	Exact bool // there are not more
}

// countRenamed counts the tuples that renames concern.
func countRenamed(ctx context.Context, s tuplestore.Snapshot, renames []schema.Rename) ([]RenamedTuples, error) {
	left := MaxRenamed
	var counts []RenamedTuples
	for _, r := range renames {
		n := RenamedTuples{Exact: true}
		for _, f := range concerned(r) {
			for _, err := range s.Scan(ctx, f) {
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
		subject := names.Subject(&p.renaming.Names, *q.Subject)
		questions[i] = Query{Subject: &subject, Resource: names.Object(&p.renaming.Names, q.Resource), Action: q.Action}
	}
	req.Questions = questions
	return req
}

// concerned selects the tuples that a rename concerns: as objects, and as subjects.
func concerned(r schema.Rename) []tuplestore.Filter {
	if r.Type == "" {
		return []tuplestore.Filter{{ObjectType: r.From, Presence: tuplestore.WithPresence}, {SubjectType: r.From}}
	}
	return []tuplestore.Filter{{ObjectType: r.Type, Relation: r.From}, {SubjectType: r.Type, SubjectRelation: r.From}}
}
