package engine_test

import (
	"context"
	"fmt"
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
