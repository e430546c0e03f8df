package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"stonetown/engine"
	"stonetown/engine/enginetest"
	"stonetown/schema"
	"stonetown/tuplestore"
)

func parsedTypes(t *testing.T, text string) []schema.Type {
	t.Helper()
	types, err := enginetest.ParseSchema(text)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// TestApplyTypesAgain sends changes a second time under their commit IDs, as a client does that
// lost the response.
func TestApplyTypesAgain(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("folder\n  viewer [user]\ndoc\n  viewer [user]")
	plan, err := w.engine.PlanTypes(t.Context(), tenant, engine.PlanRequest{})
	if err != nil {
		t.Fatal(err)
	}
	change := engine.TypesChange{Put: parsedTypes(t, "doc\n  viewer [user]\n  owner [user]"), Delete: []string{"folder"}, Expected: plan.Version}
	first, err := w.engine.ApplyTypes(t.Context(), tenant, change, engine.Origin{CommitID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.engine.ApplyTypes(t.Context(), tenant, change, engine.Origin{CommitID: "a"})
	if err != nil || again.Token != first.Token || again.Version != first.Version {
		t.Errorf("again: %+v, %v, want %+v", again, err, first)
	}
	if _, err := w.engine.ApplyTypes(t.Context(), tenant, change, engine.Origin{CommitID: "b"}); !is[*engine.TypesChangedError](err) {
		t.Errorf("under another commit ID: %v", err)
	}
	change.Expected = first.Version
	if _, err := w.engine.ApplyTypes(t.Context(), tenant, change, engine.Origin{CommitID: "a"}); err == nil {
		t.Error("another change under the same commit ID is taken for the first")
	}
	if _, err := w.engine.DeleteType(t.Context(), tenant, "folder", engine.Origin{CommitID: "c"}); !is[*engine.UnknownTypeError](err) {
		t.Errorf("deleting a type that is gone: %v", err)
	}
}

// TestApplyTypesRace makes changes for one version at once: one of them wins.
func TestApplyTypesRace(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	plan, err := w.engine.PlanTypes(t.Context(), tenant, engine.PlanRequest{})
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 8)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			change := engine.TypesChange{Put: parsedTypes(t, fmt.Sprintf("t%d\n  viewer [user]", i)), Expected: plan.Version}
			_, errs[i] = w.engine.ApplyTypes(t.Context(), tenant, change, by)
		})
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !is[*engine.TypesChangedError](err):
			t.Error(err)
		}
	}
	types, err := w.engine.Types(t.Context(), tenant)
	if won != 1 || err != nil || len(types) != 2 {
		t.Errorf("%d changes won, %d types, %v", won, len(types), err)
	}
}

// TestPlanCountsTuples plans a relation that takes no tuples any more. The planned answers are
// those without its tuples.
func TestPlanCountsTuples(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]\n  owner [user]")
	for i := range 30 {
		w.write(fmt.Sprintf("doc:%d#viewer@user:ann", i))
	}
	plan, err := w.engine.PlanTypes(t.Context(), tenant, engine.PlanRequest{
		TypesChange: engine.TypesChange{Put: parsedTypes(t, "doc\n  viewer: owner\n  owner [user]")},
		Questions: []engine.Query{
			{Subject: &tuplestore.Subject{Type: "user", ID: "ann"}, Resource: tuplestore.Object{Type: "doc", ID: "1"}, Action: "view"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Illegal) != 1 || plan.Illegal[0].Count != 30 || !plan.Illegal[0].Exact || len(plan.Illegal[0].Samples) != engine.MaxSamples {
		t.Errorf("illegal: %+v", plan.Illegal)
	}
	if a := plan.Answers[0]; !a.Differs() || !a.Before.Allowed || a.After.Allowed || a.After.Err != nil {
		t.Errorf("answer: %+v", a)
	}
}
