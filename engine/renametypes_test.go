package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TestRenameAndChange renames a relation and a type, and changes the type in the same revision.
func TestRenameAndChange(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user, doc#viewer]\n  owner [user]")
	w.write("doc:1#viewer@user:ann", "doc:2#viewer@doc:1#viewer", "doc:2#owner@user:bob")
	change := engine.TypesChange{
		Renames: []schema.Rename{{From: "doc", To: "paper"}, {Type: "doc", From: "viewer", To: "reader"}},
		Put:     parsedTypes(t, "paper\n  reader [user]\n  owner [user]\n  editor: owner"),
	}
	plan, err := w.engine.PlanTypes(t.Context(), tenant, engine.PlanRequest{TypesChange: change})
	if err != nil {
		t.Fatal(err)
	}
	// By the names as they are stored.
	if len(plan.Illegal) != 1 || plan.Illegal[0].Relation != "viewer" || plan.Illegal[0].Count != 1 || plan.Illegal[0].Samples[0].String() != "doc:2#viewer@doc:1#viewer" {
		t.Errorf("%+v", plan.Illegal)
	}
	_, err = w.engine.ApplyTypes(t.Context(), tenant, change, by)
	if !is[*engine.TypeInUseError](err) {
		t.Errorf("with a tuple that is not allowed: %v", err)
	}
	change.Put = parsedTypes(t, "paper\n  reader [user, paper#reader]\n  owner [user]\n  editor: owner")
	once := engine.Origin{CommitID: "once"}
	first, err := w.engine.ApplyTypes(t.Context(), tenant, change, once)
	if err != nil {
		t.Fatal(err)
	}
	// As objects: two resources and three relations, and one as a subject; the relation of two, and once of a subject.
	if fmt.Sprint(first.Renamed) != "[6 3]" || len(first.Changes) != 1 || first.Changes[0].Result != engine.TypeUpdated {
		t.Errorf("%+v", first)
	}
	if again, err := w.engine.ApplyTypes(t.Context(), tenant, change, once); err != nil || again.Token != first.Token || fmt.Sprint(again.Renamed) != "[6 3]" {
		t.Errorf("again: %+v %v", again, err)
	}
	for _, again := range []engine.TypesChange{
		{Renames: []schema.Rename{{From: "paper", To: "x"}}, Put: parsedTypes(t, "paper\n  reader [user]")},
		{Renames: []schema.Rename{{From: "paper", To: "x"}}, Delete: []string{"paper"}},
		{Renames: []schema.Rename{{Type: "paper", From: "reader", To: "x"}}, Put: parsedTypes(t, "paper\n  reader [user]\n  x [user]")},
	} {
		if _, err := w.engine.ApplyTypes(t.Context(), tenant, again, by); !is[*schema.RenameError](err) {
			t.Errorf("%+v: %v", again, err)
		}
	}
}

// TestRenameIsBounded renames as many tuples as possible, and not one more.
func TestRenameIsBounded(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]\nfolder\n  viewer [user]")
	register := func(n int) {
		t.Helper()
		req := engine.WriteRequest{Origin: by}
		for i := range n {
			req.Register = append(req.Register, tuplestore.Object{Type: "doc", ID: fmt.Sprint(i)})
		}
		if _, err := w.engine.Write(t.Context(), tenant, req); err != nil {
			t.Fatal(err)
		}
	}
	rename := engine.TypesChange{Renames: []schema.Rename{{Type: "folder", From: "viewer", To: "x"}, {From: "doc", To: "paper"}}}
	register(engine.MaxRenamed + 1)
	plan, err := w.engine.PlanTypes(t.Context(), tenant, engine.PlanRequest{TypesChange: rename})
	if err != nil || !plan.Renamed[0].Exact || plan.Renamed[1] != (engine.RenamedTuples{Count: engine.MaxRenamed}) {
		t.Errorf("%+v, %v", plan, err)
	}
	if _, err := w.engine.ApplyTypes(t.Context(), tenant, rename, by); !is[*engine.TooManyRenamedError](err) {
		t.Errorf("%v", err)
	}
	if _, err := w.engine.Unregister(t.Context(), tenant, tuplestore.Object{Type: "doc", ID: "0"}, by); err != nil {
		t.Fatal(err)
	}
	if applied, err := w.engine.ApplyTypes(t.Context(), tenant, rename, by); err != nil || applied.Renamed[1] != engine.MaxRenamed {
		t.Errorf("%+v, %v", applied.Renamed, err)
	}
}

// TestRenameDuringWrites renames a type to and fro while relations are written by both names. All
// that were acknowledged are stored, by the last name.
func TestRenameDuringWrites(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	const writers, each = 4, 100
	var acknowledged sync.Map
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			names := []string{"doc", "paper"}
			for i := 0; i < each; {
				o := tuplestore.Object{Type: names[0], ID: fmt.Sprintf("%d-%d", n, i)}
				_, err := w.engine.Write(t.Context(), tenant, engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{
					{Resource: o, Relation: "viewer", Subject: tuplestore.Subject{Type: "user", ID: "ann"}},
				}})
				switch {
				case err == nil:
					acknowledged.Store(o.ID, true)
					i++
				case is[*engine.UnknownTypeError](err):
					names[0], names[1] = names[1], names[0]
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	names := []string{"doc", "paper"}
	for range 20 {
		if _, err := w.engine.ApplyTypes(t.Context(), tenant, engine.TypesChange{Renames: []schema.Rename{{From: names[0], To: names[1]}}}, by); err != nil {
			t.Error(err)
		}
		names[0], names[1] = names[1], names[0]
	}
	group.Wait()
	stored := 0
	acknowledged.Range(func(id, _ any) bool {
		stored++
		res, err := w.engine.Check(t.Context(), tenant, engine.CheckRequest{
			Subject: tuplestore.Subject{Type: "user", ID: "ann"},
			Queries: []engine.Query{{Resource: tuplestore.Object{Type: names[0], ID: id.(string)}, Action: "view"}},
		})
		if err != nil || !res.Decisions[0].Allowed {
			t.Errorf("%s:%v: %+v %v", names[0], id, res, err)
		}
		return true
	})
	if stored != writers*each {
		t.Errorf("%d relations were written", stored)
	}
}
