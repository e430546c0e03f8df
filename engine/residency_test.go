package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/engine/enginetest"
)

// Tenants beyond the budget are answered correctly from the database, and the tenants with
// the most requests are in memory.
func TestResidencyIsBounded(t *testing.T) {
	w := newFixture(t, engine.Config{ResidentBytes: 20_000})
	ctx := context.Background()
	types, err := enginetest.ParseSchema("doc\n  viewer [user]")
	if err != nil {
		t.Fatal(err)
	}
	const tenants = 10
	for n := range tenants {
		id := fmt.Sprint("tnt_", n)
		if _, _, _, err := w.engine.PutType(ctx, id, types[0], by); err != nil {
			t.Fatal(err)
		}
		var req engine.WriteRequest
		for i := range 20 {
			req.Ops = append(req.Ops, op(t, fmt.Sprintf("doc:%d#viewer@user:%d", i, n)))
		}
		if _, err := w.engine.Write(ctx, id, req); err != nil {
			t.Fatal(err)
		}
	}
	check := func(n int) {
		t.Helper()
		res, err := w.engine.Check(ctx, fmt.Sprint("tnt_", n), request(fmt.Sprint("user:", n), "view", "doc:3"))
		if err != nil || !res.Decisions[0].Allowed {
			t.Fatalf("tenant %d: %+v %v", n, res, err)
		}
		if bytes := w.engine.Stats().ResidentBytes; bytes > 20_000+6_000 { // and one that is about to be dropped
			t.Fatalf("%d bytes are resident", bytes)
		}
	}
	for range 20 {
		for n := range tenants {
			check(n)
		}
		time.Sleep(time.Millisecond) // loads run in the background
	}
	once := w.engine.Stats().Loads
	if once <= 3 {
		t.Fatalf("%d loads: there is room for more", once)
	}
	// Tenants with alternating requests do not replace each other.
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
		for n := range tenants {
			check(n)
		}
	}
	if loads := w.engine.Stats().Loads - once; loads > tenants {
		t.Errorf("%d loads of tenants that are asked about as often as the others", loads)
	}
	// Tenants with more requests become and stay resident.
	for deadline := time.Now().Add(20 * time.Second); ; {
		for n := range tenants {
			check(n)
		}
		before := w.engine.Stats().ColdReads
		for range 100 {
			check(0)
			check(tenants - 1)
		}
		if w.engine.Stats().ColdReads == before {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("what is asked about most is not resident")
		}
	}
}

// A tenant without requests leaves the memory, and the next request finds all that was written. One
// with requests stays.
func TestIdleTenantsLeaveMemory(t *testing.T) {
	const idleAfter = 200 * time.Millisecond
	w := newFixture(t, engine.Config{IdleAfter: idleAfter})
	ctx := context.Background()
	types, err := enginetest.ParseSchema("doc\n  viewer [user]")
	if err != nil {
		t.Fatal(err)
	}
	tenants := []string{"tnt_busy", "tnt_idle"}
	for _, id := range tenants {
		if _, _, _, err := w.engine.PutType(ctx, id, types[0], by); err != nil {
			t.Fatal(err)
		}
		if _, err := w.engine.Write(ctx, id, engine.WriteRequest{Ops: []engine.WriteOp{op(t, "doc:1#viewer@user:ann")}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(id, user string, mode engine.ConsistencyMode) bool {
		t.Helper()
		req := request("user:"+user, "view", "doc:1")
		req.Consistency.Mode = mode
		res, err := w.engine.Check(ctx, id, req)
		if err != nil || len(res.Decisions) != 1 {
			t.Fatalf("%s: %+v %v", id, res, err)
		}
		return res.Decisions[0].Allowed
	}
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %+v", what, w.engine.Stats())
			}
		}
	}
	until("both are loaded", func() bool {
		check(tenants[0], "ann", engine.Full)
		check(tenants[1], "ann", engine.Full)
		return w.engine.Stats().Loads >= 2
	})
	both := w.engine.Stats().ResidentBytes
	until("one leaves", func() bool {
		check(tenants[0], "ann", engine.Full)
		return w.engine.Stats().ResidentBytes == both/2
	})
	if loads := w.engine.Stats().Loads; loads != 2 {
		t.Errorf("%d loads: the tenant with requests has left, too", loads)
	}
	until("both leave", func() bool { return w.engine.Stats().ResidentBytes == 0 })
	if _, err := w.engine.Write(ctx, tenants[1], engine.WriteRequest{Ops: []engine.WriteOp{op(t, "doc:1#viewer@user:bob")}}); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []engine.ConsistencyMode{engine.Full, engine.MinimizeLatency} {
		if !check(tenants[1], "ann", mode) || !check(tenants[1], "bob", mode) || check(tenants[1], "cid", mode) {
			t.Errorf("mode %v: wrong answers after the tenant has left", mode)
		}
	}
}

// Requests at the moment at which a tenant leaves the memory are answered.
func TestRequestsWhileTenantsLeaveMemory(t *testing.T) {
	w := newFixture(t, engine.Config{IdleAfter: time.Microsecond})
	ctx := context.Background()
	types, err := enginetest.ParseSchema("doc\n  viewer [user]")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := w.engine.PutType(ctx, "tnt_a", types[0], by); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := range 200 {
				user := fmt.Sprintf("%d-%d", worker, n)
				if _, err := w.engine.Write(ctx, "tnt_a", engine.WriteRequest{Ops: []engine.WriteOp{op(t, "doc:1#viewer@user:"+user)}}); err != nil {
					t.Error(err)
					return
				}
				res, err := w.engine.Check(ctx, "tnt_a", request("user:"+user, "view", "doc:1"))
				if err != nil || !res.Decisions[0].Allowed {
					t.Errorf("%s: %+v %v", user, res, err)
					return
				}
				time.Sleep(time.Duration(n%7) * time.Millisecond)
			}
		})
	}
	all.Wait()
}

// Loads are counted by their outcome.
func TestLoadsAreCounted(t *testing.T) {
	w := newFixture(t, engine.Config{ResidentBytes: 1})
	types, err := enginetest.ParseSchema("doc\n  viewer [user]")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := w.engine.PutType(t.Context(), "large", types[0], by); err != nil {
		t.Fatal(err)
	}
	if _, err := w.engine.Write(t.Context(), "large", engine.WriteRequest{Ops: []engine.WriteOp{op(t, "doc:1#viewer@user:ann")}}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); w.engine.Stats().LoadsTooLarge == 0; time.Sleep(time.Millisecond) {
		res, err := w.engine.Check(t.Context(), "large", request("user:ann", "viewer", "doc:1"))
		if err != nil || !res.Decisions[0].Allowed || time.Now().After(end) {
			t.Fatalf("%+v %v, %+v", res, err, w.engine.Stats())
		}
	}
	if s := w.engine.Stats(); s.Loads != 0 || s.LoadsFailed != 0 {
		t.Errorf("%+v", s)
	}
}
