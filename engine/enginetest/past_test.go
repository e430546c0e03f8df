package enginetest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TestThePast asks questions of random points in time. The answers must be those of another
// tenant that has the state of the point: the types and the tuples that had not expired.
func TestThePast(t *testing.T) {
	residentAndCold(t, func(t *testing.T, e *engine.Engine, s tuplestore.Store) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx := context.Background()
			expired, seen := 0, map[Verdict]int{}
			lacks := func() bool { return expired == 0 || seen[Allowed] == 0 || seen[Denied] == 0 || seen[NotFound] == 0 }
			for round := range untilShown(max(4, *rounds/10), lacks) {
				w := newTenant(ctx, t, e, r, fmt.Sprintf("tnt_%d", round))
				w.soon = true
				first := w.history.newest
				types := map[tuplestore.Revision][]schema.Type{first: w.types}
				for range 30 {
					if r.IntN(6) == 0 {
						w.changeTypes(ctx, t)
					} else {
						w.write(ctx, t)
					}
					types[w.history.newest] = w.types
				}
				commits, err := s.Changes(ctx, w.tenant, 0, 1000)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Millisecond) // until the points of randomPoint have passed
				for point := range 10 {
					c, rev, now := randomPoint(r, commits, first, w.newest.Load().(string))
					state := w.history.at(rev).without(now)
					expired += len(w.history.at(rev)) - len(state)
					replica := newReplica(ctx, t, e, fmt.Sprintf("%s_%d", w.tenant, point), types[rev], state)
					u := w.universe
					u.types, u.soon = types[rev], false
					for range 6 {
						u.sameAnswers(ctx, t, e, w.tenant, c, replica, seen)
					}
					if t.Failed() {
						t.Fatalf("at %+v, revision %d, %v\nschema %s\ntuples %v", c, rev, now, schema.Encode(types[rev]), state)
					}
				}
			}
			t.Logf("%d tuples had expired, answers %v", expired, seen)
			if lacks() {
				t.Error("this shows too little")
			}
		})
	})
}

// randomPoint draws a point in time at or after a revision, and returns the revision and the
// instant that it means.
func randomPoint(r *rand.Rand, commits []tuplestore.Commit, first tuplestore.Revision, newest string) (engine.Consistency, tuplestore.Revision, time.Time) {
	c := commits[int(first-1)+r.IntN(len(commits)-int(first)+1)]
	if r.IntN(3) == 0 {
		return engine.Consistency{Mode: engine.AsOf, Token: withRevision(newest, c.Revision)}, c.Revision, c.At
	}
	instant := c.At.Add(time.Duration(r.IntN(2000)) * time.Microsecond)
	if r.IntN(2) == 0 {
		instant = instant.Truncate(time.Millisecond) // as timestamps are shown
	}
	end := instant.Truncate(time.Millisecond).Add(time.Millisecond - time.Microsecond)
	rev := c.Revision
	for _, later := range commits {
		if !later.At.After(end) {
			rev = max(rev, later.Revision)
		}
	}
	return engine.Consistency{Mode: engine.AsOf, Instant: instant}, rev, end
}

// withRevision returns a token like another one, of another revision.
func withRevision(token string, rev tuplestore.Revision) string {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		panic(err)
	}
	history := text[:bytes.LastIndexByte(text, '|')+1]
	return base64.RawURLEncoding.EncodeToString(fmt.Append(history, rev))
}

// without returns the facts that have not expired at an instant, without the expiry.
func (f facts) without(now time.Time) facts {
	left := facts{}
	for tuple, q := range f {
		if q.ExpiresAt == 0 || q.ExpiresAt > now.UnixMicro() {
			q.ExpiresAt = 0
			left[tuple] = q
		}
	}
	return left
}

// changeTypes makes a random change of types, if the tuples allow it.
func (w *writer) changeTypes(ctx context.Context, t *testing.T) {
	t.Helper()
	if w.rand.IntN(3) == 0 {
		w.rename(ctx, t, w.renames(), true)
		return
	}
	change := w.typesChange()
	types := slices.DeleteFunc(slices.Clone(w.types), func(typ schema.Type) bool {
		return slices.Contains(change.Delete, typ.Name) || slices.ContainsFunc(change.Put, func(put schema.Type) bool { return put.Name == typ.Name })
	})
	types = append(types, change.Put...)
	compiled, err := schema.Compile(types)
	if err != nil || len(types) == 0 {
		return
	}
	if slices.ContainsFunc(types, func(t schema.Type) bool { return len(t.Relations) == 0 }) {
		return // of which no node can be drawn
	}
	applied, err := w.engine.ApplyTypes(ctx, w.tenant, change, by)
	var inUse *engine.TypeInUseError
	if errors.As(err, &inUse) {
		return
	}
	if err != nil {
		t.Fatalf("change types: %v", err)
	}
	w.types, w.compiled = types, compiled
	w.adoptStored(ctx, t)
	w.record(t, applied.Token)
}

// newReplica makes a tenant with types and a state, in one write each.
func newReplica(ctx context.Context, t *testing.T, e *engine.Engine, tenant string, types []schema.Type, state facts) string {
	t.Helper()
	if _, err := e.ApplyTypes(ctx, tenant, engine.TypesChange{Put: types}, by); err != nil {
		t.Fatal(err)
	}
	req := engine.WriteRequest{Origin: by}
	for tuple, q := range state {
		if tuple.IsPresence() {
			req.Register = append(req.Register, tuple.Object)
			continue
		}
		op := engine.WriteOp{Resource: tuple.Object, Relation: tuple.Relation, Subject: tuple.Subject, Condition: q.Condition, Context: []byte(q.Context)}
		if q.ExpiresAt != 0 {
			op.ExpiresAt = time.UnixMicro(q.ExpiresAt)
		}
		req.Ops = append(req.Ops, op)
	}
	if _, err := e.Write(ctx, tenant, req); err != nil {
		t.Fatal(err)
	}
	return tenant
}

// sameAnswers asks a random question in all ways, and for whole lists, of a state of one tenant
// and of the newest state of another.
func (u *universe) sameAnswers(ctx context.Context, t *testing.T, e *engine.Engine, tenant string, c engine.Consistency, other string, seen map[Verdict]int) {
	t.Helper()
	n, more := u.node(), u.question()
	for i := range more.contextual {
		more.contextual[i].ExpiresAt = time.Time{} // the instants of the two questions differ
	}
	q := Question{Subject: u.subject(), Action: n.Relation, Resource: n.Object, Context: more.values, Contextual: more.contextual}
	here, there := waysOf(e, tenant, c), waysOf(e, other, engine.Consistency{})
	for name, ask := range here {
		got, ok, err := ask(ctx, q)
		want, wantOK, wantErr := there[name](ctx, q)
		var budget *engine.BudgetError
		if errors.As(err, &budget) || errors.As(wantErr, &budget) {
			continue // a tree repeats what a graph shares
		}
		// Whether a tree meets a condition before its answer depends on the order of its subjects,
		// which are listed by their stored names.
		ordered := strings.HasPrefix(name, "expand")
		if got != want || ok != wantOK && !ordered || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s: %+v: %s (%v, %v), want %s (%v, %v)", name, q, got, ok, err, want, wantOK, wantErr)
		}
		seen[got]++
	}
	lists := func(tenant string, c engine.Consistency) []any {
		resources, err := e.ListResources(ctx, tenant, engine.ListResourcesRequest{Subject: q.Subject, Type: n.Object.Type, Action: n.Relation, Context: q.Context, Contextual: q.Contextual, Consistency: c})
		subjects, err2 := e.ListSubjects(ctx, tenant, engine.ListSubjectsRequest{Resource: n.Object, Action: n.Relation, SubjectType: q.Subject.Type, Context: q.Context, Contextual: q.Contextual, Consistency: c})
		actions, err3 := e.ListActions(ctx, tenant, engine.ListActionsRequest{Subject: q.Subject, Resource: n.Object, Context: q.Context, Contextual: q.Contextual, Consistency: c})
		all := []any{err == nil, err2 == nil, err3 == nil}
		if err == nil {
			all = append(all, resources.IDs)
		}
		if err2 == nil {
			all = append(all, different(subjects.Entries))
		}
		if err3 == nil {
			all = append(all, actions.Actions)
		}
		return all
	}
	if got, want := lists(tenant, c), lists(other, engine.Consistency{}); !reflect.DeepEqual(got, want) {
		t.Errorf("lists of %+v: %v, want %v", q, got, want)
	}
}

// different returns the entries of a list that differ from its wildcard. Which of the others it
// names depends on tuples that do not hold.
func different(entries []engine.SubjectEntry) []engine.SubjectEntry {
	if len(entries) == 0 || entries[0].Subject.ID != tuplestore.Wildcard {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e engine.SubjectEntry) bool {
		return e.Subject.ID != tuplestore.Wildcard && !e.Excluded
	})
}
