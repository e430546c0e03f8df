package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

// inPart is a configuration with memory for parts of the tenant of newTenantInPart.
var inPart = engine.Config{ResidentBytes: 128 << 10, MaxStaleness: time.Hour}

// newTenantInPart returns a fixture whose tenant does not fit into memory, and a folder with a
// document that ann views through a group with 1,000 members.
func newTenantInPart(t *testing.T, store tuplestore.Store) *fixture {
	t.Helper()
	w := &fixture{t, store, open(t, store, inPart)}
	w.define("folder\n  viewer [user, group#member]\ndoc\n  parent [folder]\n  viewer [user, user:*, group#member]: this | parent->viewer")
	for first := 0; first < 2000; first += 500 {
		var req engine.WriteRequest
		for n := first; n < first+500; n++ {
			req.Ops = append(req.Ops, op(t, fmt.Sprintf("group:large#member@user:u%d", n)), op(t, fmt.Sprintf("doc:other%d#viewer@user:u%d", n, n)))
		}
		if _, err := w.engine.Write(t.Context(), tenant, req); err != nil {
			t.Fatal(err)
		}
	}
	w.write("doc:1#parent@folder:f")
	w.write("folder:f#viewer@group:large#member")
	for end := time.Now().Add(20 * time.Second); w.engine.Stats().LoadsTooLarge == 0; time.Sleep(time.Millisecond) {
		if ask(t, w.engine, request("user:u1", "view", "doc:1")); time.Now().After(end) {
			t.Fatalf("%+v", w.engine.Stats())
		}
	}
	return w
}

// reads returns how often an answer read from the store.
func (w *fixture) reads(req engine.CheckRequest, want bool) int64 {
	w.Helper()
	before := w.engine.Stats().ColdReads
	if _, allowed := ask(w, w.engine, req); allowed != want {
		w.Errorf("%v may %v: %v, want %v", req.Subject, req.Queries, allowed, want)
	}
	return w.engine.Stats().ColdReads - before
}

// What was read is not read again, also about another subject, until it changes.
func TestPartsAreKept(t *testing.T) {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	w := newTenantInPart(t, hideHead{store})
	u1, u2, none := request("user:u1", "view", "doc:1"), request("user:u2", "view", "doc:1"), request("user:none", "view", "doc:1")
	w.reads(u1, true)
	for _, step := range []struct {
		what string
		req  engine.CheckRequest
		want int64
	}{
		{"the same", u1, 0},
		{"another member of the group", u2, 1},
		{"the same again", u2, 0},
		{"no member", none, 1},
		{"that there is none", none, 0},
	} {
		if got := w.reads(step.req, step.req.Subject.ID != "none"); got != step.want {
			t.Errorf("%s: %d reads, want %d", step.what, got, step.want)
		}
	}
	other := open(t, store, engine.Config{ResidentBytes: -1}) // another process
	change := func(text string, remove bool) string {
		t.Helper()
		o := op(t, text)
		o.Delete = remove
		res, err := other.Write(t.Context(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{o}})
		if err != nil {
			t.Fatal(err)
		}
		return res.Token
	}
	before := change("group:large#member@user:new", false)
	w.reads(u1, true)
	var others []engine.CheckRequest
	for n := 2; n < 10; n++ {
		others = append(others, request(fmt.Sprint("user:u", n), "view", "doc:1"))
		w.reads(others[len(others)-1], true)
	}
	removed := change("group:large#member@user:u1", true)
	stale := u1
	stale.Consistency = engine.Consistency{Mode: engine.MinimizeLatency}
	if got := w.reads(stale, true); got != 0 {
		t.Errorf("an answer that may be stale took %d reads", got)
	}
	w.reads(u1, false)
	w.reads(stale, false)
	var again int64 // parts can share the place of one that changed
	for _, other := range others {
		again += w.reads(other, true)
	}
	if again > 4 {
		t.Errorf("%d reads about 8 other members than the one that was removed", again)
	}
	for mode, want := range map[engine.Consistency]bool{
		{Mode: engine.AtLeast, Token: removed}: false, {Mode: engine.Exactly, Token: removed}: false, {Mode: engine.Exactly, Token: before}: true,
	} {
		u1.Consistency = mode
		w.reads(u1, want)
	}
	u1.Consistency = engine.Consistency{}
	added := change("doc:1#viewer@user:*", false)
	for _, req := range []engine.CheckRequest{u1, u2, none} {
		req.Consistency = engine.Consistency{Mode: engine.AtLeast, Token: added}
		w.reads(req, true)
	}
	change("doc:1#viewer@user:*", true)
	w.reads(none, false)

	// More changes than are worth following.
	for n := range 300 {
		change(fmt.Sprintf("doc:new%d#viewer@user:u1", n), false)
	}
	change("group:large#member@user:u2", true)
	w.reads(u2, false)
	w.reads(u1, false)
	w.define("folder\n  viewer [user, group#member]\ndoc\n  parent [folder]\n  viewer [user, user:*, group#member]\n")
	w.reads(request("user:u3", "view", "doc:1"), false)

	if s := w.engine.Stats(); s.ResidentBytes != 0 || s.PartHits == 0 || s.PartMisses == 0 || s.PartBytes == 0 || s.PartBytes > inPart.ResidentBytes+4096 {
		t.Errorf("%+v", s)
	}
}

// restorable is a store in whose place comes another one, as by a backup that is restored.
type restorable struct {
	tuplestore.Store
	other atomic.Pointer[memstore.Store]
}

func (r *restorable) store() tuplestore.Store {
	if other := r.other.Load(); other != nil {
		return other
	}
	return r.Store
}

func (r *restorable) KnownHead(string) (tuplestore.Head, bool) { return tuplestore.Head{}, false }

func (r *restorable) Latest(ctx context.Context, tenant string) (tuplestore.Head, []byte, error) {
	return r.store().Latest(ctx, tenant)
}

func (r *restorable) Since(ctx context.Context, tenant string, after tuplestore.Revision) (tuplestore.Head, []tuplestore.Tuple, bool, error) {
	return r.store().Since(ctx, tenant, after)
}

func (r *restorable) Snapshot(tenant string, rev tuplestore.Revision) tuplestore.Snapshot {
	return r.store().Snapshot(tenant, rev)
}

// After a restore, nothing that was kept of the other history is used, at any of its revisions.
func TestPartsOfAnotherHistoryAreNotUsed(t *testing.T) {
	for _, later := range []int{0, 3} { // revisions of the restored history beyond the lost one
		lost := memstore.New(memstore.Config{})
		defer lost.Close()
		r := &restorable{Store: lost}
		w := newTenantInPart(t, r)
		u1 := request("user:u1", "view", "doc:1")
		w.reads(u1, true)
		if got := w.reads(u1, true); got != 0 {
			t.Fatalf("%d reads of what is kept", got)
		}
		restored := memstore.New(memstore.Config{})
		defer restored.Close()
		n := &fixture{t, restored, open(t, restored, inPart)}
		n.define("folder\n  viewer [user, group#member]\ndoc\n  parent [folder]\n  viewer [user, user:*, group#member]: this | parent->viewer")
		head, err := lost.Head(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			if now, err := restored.Head(t.Context(), tenant); err != nil || now.Revision == head.Revision+tuplestore.Revision(later) {
				break
			}
			n.write(fmt.Sprintf("doc:1#viewer@user:v%d", i))
		}
		r.other.Store(restored)
		w.reads(u1, false)
		w.reads(request("user:v0", "view", "doc:1"), true)
	}
}
