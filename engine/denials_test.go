package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// The work of an explanation is bounded, whatever the graph is like, and the answer is the
// same as without one.
func TestDenialsAreBounded(t *testing.T) {
	for name, config := range map[string]engine.Config{
		"resident": {}, "cold": {ResidentBytes: -1}, "little work": {MaxVisits: 3_000}, "little work, cold": {ResidentBytes: -1, MaxVisits: 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, config)
			w.define(`team
  member [user, team#member]
doc
  parent [doc]
  viewer [user, team#member]: this | parent->viewer
  every [user]: this | all parent->every
  strict: viewer & every`)
			var req engine.WriteRequest
			for i := range 400 { // far more ways than an explanation has, of which those from 200 on take two changes
				req.Ops = append(req.Ops, op(t, fmt.Sprintf("doc:wide#viewer@team:%d#member", i)))
				if i >= 200 {
					req.Ops[i] = op(t, fmt.Sprintf("doc:wide#parent@doc:%d", i))
				}
			}
			for i := range 60 { // a dense graph with cycles: exponentially many paths
				for j := range 4 {
					req.Ops = append(req.Ops, op(t, fmt.Sprintf("team:x%d#member@team:x%d#member", i, (i*7+j*13+1)%60)))
				}
			}
			req.Ops = append(req.Ops, op(t, "doc:dense#viewer@team:x0#member"))
			if _, err := w.engine.Write(t.Context(), tenant, req); err != nil {
				t.Fatal(err)
			}
			for _, resource := range []string{"wide", "dense"} {
				for _, action := range []string{"viewer", "every", "strict"} {
					check := request("user:new", action, "doc:"+resource)
					check.Denials = true
					before := w.engine.Stats().ColdReads
					answer, err := w.engine.Check(t.Context(), tenant, check)
					if config.MaxVisits == 3_000 && err != nil {
						continue // the check itself takes more
					}
					if err != nil {
						t.Fatal(err)
					}
					d := answer.Decisions[0]
					if d.Allowed || d.Denial == nil || len(d.Denial.Ways) == 0 && !d.Denial.Truncated || len(d.Denial.Ways) > 10 {
						t.Errorf("%s %s: %+v", action, resource, d)
					}
					if resource == "wide" && action == "viewer" && !d.Denial.Truncated {
						t.Errorf("%s %s is not truncated", action, resource)
					}
					if reads := w.engine.Stats().ColdReads - before; reads > 100 {
						t.Errorf("%s %s took %d reads", action, resource, reads)
					}
				}
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			check := request("user:new", "strict", "doc:dense")
			check.Denials = true
			if _, err := w.engine.Check(ended, tenant, check); !errors.Is(err, context.Canceled) {
				t.Errorf("after its end: %v", err)
			}
		})
	}
}

// Each denied check of a batch is explained for its own subject.
func TestDenialsOfBatch(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	req := engine.CheckRequest{Denials: true}
	for _, id := range []string{"bob", "ann", "cid"} {
		req.Queries = append(req.Queries, engine.Query{
			Resource: tuplestore.Object{Type: "doc", ID: "1"}, Action: "view", Subject: &tuplestore.Subject{Type: "user", ID: id},
		})
	}
	req.Queries = append(req.Queries, engine.Query{Resource: tuplestore.Object{Type: "doc", ID: "2"}, Action: "view", Subject: req.Queries[0].Subject})
	answer, err := w.engine.Check(t.Context(), tenant, req)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"doc:1#viewer@user:bob", "", "doc:1#viewer@user:cid", ""} {
		got := ""
		if d := answer.Decisions[i].Denial; d != nil && len(d.Ways) == 1 {
			got = d.Ways[0].Relations[0].String()
		}
		if got != want {
			t.Errorf("check %d: %q, want %q", i, got, want)
		}
	}
}

// BenchmarkDenial compares a denied check without and with an explanation.
func BenchmarkDenial(b *testing.B) {
	w := newFixture(b, engine.Config{})
	w.define("folder\n  parent [folder]\n  viewer [user, group]: this | parent->viewer\ndoc\n  parent [folder]\n  banned [user]\n  viewer [user]: this | parent->viewer\n  reader: viewer - banned")
	for i := range 5 {
		w.write(fmt.Sprintf("folder:%d#parent@folder:%d", i, i+1), fmt.Sprintf("folder:%d#viewer@group:%d", i, i))
	}
	w.write("doc:1#parent@folder:0", "doc:1#banned@user:bob")
	check := request("user:bob", "reader", "doc:1")
	w.waitResident(check)
	for _, explain := range []bool{false, true} {
		b.Run(fmt.Sprintf("explain=%t", explain), func(b *testing.B) {
			check.Denials = explain
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.engine.Check(context.Background(), tenant, check); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
