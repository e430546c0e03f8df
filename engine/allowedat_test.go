package engine_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// allowedAt asks about documents with some ids.
func allowedAt(t testing.TB, e *engine.Engine, revision int64, subject, action string, ids ...string) []bool {
	t.Helper()
	var resources []tuplestore.Object
	for _, id := range ids {
		resources = append(resources, tuplestore.Object{Type: "doc", ID: id})
	}
	return allowedAll(t, e, revision, tuplestore.Subject{Type: "user", ID: subject}, action, resources...)
}

// allowedAll asks again for the answers that a call omits.
func allowedAll(t testing.TB, e *engine.Engine, revision int64, subject tuplestore.Subject, action string, resources ...tuplestore.Object) (all []bool) {
	t.Helper()
	for len(all) < len(resources) {
		got, err := e.AllowedAt(context.Background(), tenant, revision, subject, action, resources[len(all):])
		if err != nil || len(got) == 0 || len(got) > len(resources)-len(all) {
			t.Fatalf("%d answers to %d questions, %v", len(got), len(resources)-len(all), err)
		}
		all = append(all, got...)
	}
	return all
}

func TestAllowedAt(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]\n  banned [user]\n  reader: viewer - banned")
	w.write("doc:1#viewer@user:ann")
	after := revisionOf(t, w.write("doc:2#viewer@user:ann"))
	if err := w.remove("doc:1#viewer@user:ann"); err != nil {
		t.Fatal(err)
	}
	newest := revisionOf(t, w.write("doc:3#viewer@user:ann"))
	for _, c := range []struct {
		name     string
		revision int64
		subject  string
		action   string
		want     []bool // of the documents 1, 2, 3 and one that does not exist
	}{
		{"before the first relation", 0, "ann", "viewer", []bool{false, false, false, false}},
		{"after the second write", after, "ann", "viewer", []bool{true, true, false, false}},
		{"before the second write", after - 1, "ann", "viewer", []bool{true, false, false, false}},
		{"the newest", newest, "ann", "viewer", []bool{false, true, true, false}},
		{"by a rewrite", after, "ann", "reader", []bool{true, true, false, false}},
		{"another subject", after, "bob", "viewer", []bool{false, false, false, false}},
		{"no such action", after, "ann", "fly", []bool{false, false, false, false}},
		{"after the end of the history: as of the newest", newest + 1000, "ann", "viewer", []bool{false, true, true, false}},
	} {
		if got := allowedAt(t, w.engine, c.revision, c.subject, c.action, "1", "2", "3", "none"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for name, s := range map[string]tuplestore.Subject{
		"unknown type": {Type: "robot", ID: "1"}, "unknown relation": {Type: "user", ID: "ann", Relation: "friends"}, "no id": {Type: "user"},
	} {
		got, err := w.engine.AllowedAt(t.Context(), tenant, newest, s, "viewer", []tuplestore.Object{{Type: "doc", ID: "2"}})
		if err != nil || !slices.Equal(got, []bool{false}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	// More questions than one check has.
	ids := slices.Repeat([]string{"2", "1"}, 700)
	if got := allowedAt(t, w.engine, newest, "ann", "viewer", ids...); len(got) != 1400 || !got[1398] || got[1399] {
		t.Errorf("%d answers", len(got))
	}
}

// A question that exceeds the budget is answered with no, and does not prevent the answers to
// others. The work of one call is bounded although many questions exceed the budget.
func TestAllowedAtBudget(t *testing.T) {
	w := newFixture(t, engine.Config{MaxVisits: 400})
	w.define("doc\n  parent [doc]\n  viewer [user]: this | parent->viewer\n  banned [user]: this | parent->banned\n  reader: viewer - banned")
	var chain []string
	for i := range 1000 {
		chain = append(chain, fmt.Sprintf("doc:%d#parent@doc:%d", i, i+1))
	}
	for part := range slices.Chunk(chain, 500) {
		w.write(part...)
	}
	newest := revisionOf(t, w.write("doc:easy#viewer@user:ann"))
	if got := allowedAt(t, w.engine, newest, "ann", "reader", "0", "easy"); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("%v", got)
	}
	ids := append(slices.Repeat([]string{"0"}, 40), "easy")
	if got := allowedAt(t, w.engine, newest, "ann", "reader", ids...); slices.Contains(got[:40], true) || !got[40] {
		t.Errorf("%v", got)
	}
	resources := make([]tuplestore.Object, 500)
	for i := range resources {
		resources[i] = tuplestore.Object{Type: "doc", ID: fmt.Sprint(i)} // each exceeds the budget
	}
	got, err := w.engine.AllowedAt(t.Context(), tenant, newest, tuplestore.Subject{Type: "user", ID: "ann"}, "reader", resources)
	if err != nil || len(got) != 1 || got[0] {
		t.Errorf("%d answers after work for one question, %v", len(got), err)
	}
}

// unpublished is a store that knows the head of before the last commit, until it reads the newest.
type unpublished struct {
	tuplestore.Store
	mu   sync.Mutex
	head tuplestore.Head // zero: that of the store
}

func (s *unpublished) known() (tuplestore.Head, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head, s.head != tuplestore.Head{}
}

func (s *unpublished) set(head tuplestore.Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = head
}

func (s *unpublished) KnownHead(tenant string) (tuplestore.Head, bool) {
	if head, ok := s.known(); ok {
		return head, true
	}
	return s.Store.KnownHead(tenant)
}

func (s *unpublished) Head(ctx context.Context, tenant string) (tuplestore.Head, error) {
	if head, ok := s.known(); ok {
		return head, nil
	}
	return s.Store.Head(ctx, tenant)
}

func (s *unpublished) Changes(ctx context.Context, tenant string, after tuplestore.Revision, limit int) ([]tuplestore.Commit, error) {
	if head, ok := s.known(); ok && head.Revision <= after {
		return nil, nil
	}
	return s.Store.Changes(ctx, tenant, after, limit)
}

func (s *unpublished) Latest(ctx context.Context, tenant string) (tuplestore.Head, []byte, error) {
	s.set(tuplestore.Head{})
	return s.Store.Latest(ctx, tenant)
}

// The answers at the revision of a commit whose writer has not published it yet are not those of
// the revision before.
func TestAllowedAtUnpublishedRevision(t *testing.T) {
	for name, c := range map[string]engine.Config{"resident": {}, "cold": {ResidentBytes: -1}} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, engine.Config{})
			w.define("doc\n  viewer [user]")
			w.write("doc:1#viewer@user:ann")
			store := &unpublished{Store: w.store}
			e := open(t, store, c)
			for c.ResidentBytes == 0 && e.Stats().Loads == 0 {
				ask(t, e, request("user:ann", "viewer", "doc:1"))
			}
			ask(t, e, request("user:ann", "viewer", "doc:1"))
			head, err := w.store.Head(t.Context(), tenant)
			if err != nil {
				t.Fatal(err)
			}
			store.set(head)
			revision := revisionOf(t, w.write("doc:2#viewer@user:ann"))
			if got := allowedAt(t, e, revision, "ann", "viewer", "1", "2"); !slices.Equal(got, []bool{true, true}) {
				t.Errorf("%v", got)
			}
		})
	}
}

// revisionOf returns the revision of a token.
func revisionOf(t testing.TB, token string) (revision int64) {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		revision, err = strconv.ParseInt(string(text[bytes.LastIndexByte(text, '|')+1:]), 10, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// BenchmarkAllowedAt measures the questions of a page of events, 100 resources, for a
// subscription that is limited to what its subject may see.
func BenchmarkAllowedAt(b *testing.B) {
	w := newFixture(b, engine.Config{})
	w.define("team\n  member [user]\ndoc\n  viewer [user, team#member]")
	var ids []string
	var newest int64
	for i := range 100 {
		ids = append(ids, fmt.Sprint(i))
		newest = revisionOf(b, w.write(fmt.Sprintf("doc:%d#viewer@team:x#member", i)))
	}
	w.write("team:x#member@user:ann")
	for name, revision := range map[string]int64{"newest": newest + 1, "earlier": newest} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				allowedAt(b, w.engine, revision, "ann", "viewer", ids...)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
		})
	}
}
