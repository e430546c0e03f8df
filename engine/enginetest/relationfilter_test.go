package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/engine/internal/names"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// selected returns the relations that a filter selects.
func (state facts) selected(f engine.RelationFilter) []tuplestore.Fact {
	if f.Subject.Type == schema.GroupType && f.Subject.ID != "" && f.Subject.ID != tuplestore.Wildcard && f.Subject.Relation == "" {
		f.Subject.Relation = schema.GroupMember // a group as a subject represents its members
	}
	var found []tuplestore.Fact
	for t, on := range state {
		differs := t.Relation == ""
		for _, field := range [][2]string{
			{f.Resource.Type, t.Object.Type},
			{f.Resource.ID, t.Object.ID},
			{f.Relation, t.Relation},
			{f.Subject.Type, t.Subject.Type},
			{f.Subject.ID, t.Subject.ID},
			{f.Subject.Relation, t.Subject.Relation},
		} {
			differs = differs || field[0] != "" && field[0] != field[1]
		}
		if !differs {
			found = append(found, tuplestore.Fact{Tuple: t, Qualifier: on})
		}
	}
	return found
}

// selected returns the relations that a filter selects, in the order of a list, which is by the names
// of stored relations.
func (w *writer) selected(f engine.RelationFilter) []tuplestore.Fact {
	found := w.tuples.selected(f)
	compare := names.Compare(tuplestore.Filter{ObjectType: f.Resource.Type, SubjectType: f.Subject.Type}, w.compiled)
	slices.SortFunc(found, func(a, b tuplestore.Fact) int { return compare(tuplestore.Record{Fact: a}, tuplestore.Record{Fact: b}) })
	return found
}

// filter draws a filter of random fields of a random tuple, and reports whether the engine must
// accept it and whether it may be a precondition.
func (w *writer) filter() (f engine.RelationFilter, answerable, decidable bool) {
	t, _ := w.tuple()
	for other := range w.tuples { // mostly one that exists
		if w.rand.IntN(4) > 0 && !other.IsPresence() {
			t = other
		}
		break
	}
	has := make([]bool, 6)
	for i, field := range []struct {
		from string
		to   *string
	}{
		{t.Object.Type, &f.Resource.Type},
		{t.Object.ID, &f.Resource.ID},
		{t.Relation, &f.Relation},
		{t.Subject.Type, &f.Subject.Type},
		{t.Subject.ID, &f.Subject.ID},
		{t.Subject.Relation, &f.Subject.Relation},
	} {
		if w.rand.IntN(2) == 0 {
			*field.to = field.from
		}
		has[i] = *field.to != ""
	}
	answerable = (has[0] || has[3]) && (has[0] || !has[1]) && (has[3] || !has[4])
	// The given fields are the first ones of an order if none follows one that is missing.
	prefix := func(order ...int) bool {
		missing := slices.IndexFunc(order, func(i int) bool { return !has[i] })
		return missing < 0 || !slices.ContainsFunc(order[missing:], func(i int) bool { return has[i] })
	}
	decidable = answerable && (has[1] && prefix(0, 1, 2, 3, 4, 5) || has[3] && prefix(3, 4, 0, 1, 2, 5))
	return f, answerable, decidable
}

// find compares all pages of a random filter with the model.
func (w *writer) find(ctx context.Context, t *testing.T) {
	t.Helper()
	f, answerable, _ := w.filter()
	var found []tuplestore.Fact
	var after *tuplestore.Record
	for {
		page, next, err := w.engine.FindRelations(ctx, w.tenant, f, after, 1+w.rand.IntN(5))
		if _, refused := errors.AsType[*engine.FilterError](err); refused && !answerable {
			return
		}
		if err != nil || !answerable {
			t.Fatalf("find %+v: error %v, answerable: %v", f, err, answerable)
		}
		for _, r := range page {
			found = append(found, r.Fact)
		}
		if next == nil {
			break
		}
		after = next
	}
	if want := w.selected(f); !slices.Equal(want, found) {
		t.Errorf("find %+v: %v, want %v", f, found, want)
	}
}

// holding reports whether relations exist that a filter selects and that have not expired.
func (state facts) holding(f engine.RelationFilter) bool {
	return slices.ContainsFunc(state.selected(f), func(fact tuplestore.Fact) bool { return !hasExpired(fact.Qualifier) })
}

func hasExpired(on tuplestore.Qualifier) bool {
	return on.ExpiresAt != 0 && on.ExpiresAt <= time.Now().UnixMicro()
}

// writeConditionally writes under random preconditions, and compares the outcome with that of
// the model.
func (w *writer) writeConditionally(ctx context.Context, t *testing.T) (refused bool) {
	t.Helper()
	req := engine.WriteRequest{Origin: by}
	isNew, ifPresent := w.rand.IntN(2) == 0, w.rand.IntN(2) == 0
	var want error
	for range w.rand.IntN(3) {
		f, _, decidable := w.filter()
		if !decidable {
			continue
		}
		p := engine.Precondition{Filter: f, MustExist: w.tuples.holding(f)}
		if w.rand.IntN(6) == 0 {
			p.MustExist = !p.MustExist
			if want == nil {
				want = &engine.PreconditionError{Index: len(req.Preconditions), Token: w.newest.Load().(string)}
			}
		}
		req.Preconditions = append(req.Preconditions, p)
	}
	after := maps.Clone(w.tuples)
	var counts []int
	for range 1 + w.rand.IntN(4) {
		op, ok := w.op()
		if !ok {
			continue
		}
		op.New, op.IfPresent, op.Delete = isNew, ifPresent, w.rand.IntN(2) == 0
		f := factOf(op)
		on, exists := after[f.Tuple]
		count := 1
		switch {
		case op.Delete && exists:
			delete(after, f.Tuple)
		case op.Delete && ifPresent:
			count = 0
		case op.Delete && want == nil:
			want = &engine.OpError{Index: len(req.Ops), Err: &engine.RelationNotFoundError{Tuple: f.Tuple}}
		case !op.Delete && isNew && exists && !hasExpired(on) && want == nil:
			want = &engine.OpError{Index: len(req.Ops), Err: &engine.RelationExistsError{Tuple: f.Tuple}}
		case !op.Delete:
			if exists && on == f.Qualifier {
				count = 0
			}
			after[f.Tuple] = f.Qualifier
			after[tuplestore.Presence(f.Object)] = tuplestore.Qualifier{}
		}
		req.Ops, counts = append(req.Ops, op), append(counts, count)
	}
	if len(req.Ops) == 0 {
		return false
	}
	res, err := w.engine.Write(ctx, w.tenant, req)
	if want != nil {
		if err == nil || err.Error() != "write: "+want.Error() {
			t.Errorf("write %+v: error %v, want %v", req, err, want)
		}
		if unmet, ok := errors.AsType[*engine.PreconditionError](err); ok && revision(t, unmet.Token) != revision(t, w.newest.Load().(string)) {
			t.Errorf("write %+v: judged by %s, want %s", req, unmet.Token, w.newest.Load())
		}
		return true
	}
	if err != nil || !slices.Equal(res.Counts, counts) {
		t.Errorf("write %+v: counts %v, error %v, want %v", req, res.Counts, err, counts)
		return false
	}
	w.tuples = after
	w.record(t, res.Token)
	return false
}

// deleteSelected deletes by a random filter.
func (w *writer) deleteSelected(ctx context.Context, t *testing.T) {
	t.Helper()
	f, answerable, _ := w.filter()
	if !answerable {
		return
	}
	selected := w.selected(f)
	d := engine.RelationDeletion{RelationFilter: f, Limit: 1 + w.rand.IntN(4), Origin: func([]engine.WriteOp) engine.Origin { return by }}
	kept := tuplestore.Object{}
	if len(selected) > 0 {
		kept = selected[0].Object
	}
	d.Keep = func(o tuplestore.Object, _ string) bool { return o == kept }
	all := len(selected)
	selected = slices.DeleteFunc(selected, func(f tuplestore.Fact) bool { return f.Object == kept })
	// A deletion reads ten pages. It finds fewer than its limit if these have so many to keep.
	canFindFewer := all-len(selected) >= 10*(d.Limit+1)-d.Limit
	for {
		deleted, err := w.engine.DeleteRelations(ctx, w.tenant, d)
		n := min(d.Limit, len(selected))
		fewer := err == nil && canFindFewer && deleted.Count <= n && deleted.Next != nil
		if err != nil || !fewer && (deleted.Count != n || (deleted.Next == nil) != (len(selected) == n)) {
			t.Fatalf("delete %+v: %+v, error %v; want %d and then %d", f, deleted, err, n, len(selected)-n)
		}
		w.tuples = maps.Clone(w.tuples)
		for _, fact := range selected[:deleted.Count] {
			delete(w.tuples, fact.Tuple)
		}
		selected = selected[deleted.Count:]
		w.record(t, deleted.Token)
		if deleted.Next == nil {
			return
		}
		if deleted.Count < n || w.rand.IntN(2) == 0 {
			d.After = deleted.Next
		}
	}
}

// TestFilterAgreement finds and deletes relations by random filters, and writes under random
// preconditions.
func TestFilterAgreement(t *testing.T) {
	everywhere(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx, refused := context.Background(), 0
			for round := range *rounds {
				w := newTenant(ctx, t, e, r, fmt.Sprintf("tnt_%d", round))
				for i := range 20 {
					w.write(ctx, t)
					w.renameSometimes(ctx, t)
					if w.writeConditionally(ctx, t) {
						refused++
					}
					if i%5 == 4 {
						w.deleteSelected(ctx, t)
					}
					for range 4 {
						w.find(ctx, t)
					}
					if i%4 == 0 {
						w.compare(ctx, t, &w.universe, engine.Consistency{})
					}
				}
				if t.Failed() {
					return
				}
			}
			if refused < *rounds {
				t.Errorf("only %d writes were refused: this compares too little", refused)
			}
		})
	})
}
