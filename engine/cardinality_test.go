package engine_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// one returns a change of doc to types whose owner is one subject.
func one(t *testing.T, onSecond schema.OnSecond) engine.TypesChange {
	types := parsedTypes(t, "doc\n  owner [user]\n  viewer [user]: this | owner")
	types[0].Relations[0].Cardinality, types[0].Relations[0].OnSecond = schema.One, onSecond
	return engine.TypesChange{Put: types}
}

func (w *fixture) apply(change engine.TypesChange) {
	w.Helper()
	if _, err := w.engine.ApplyTypes(w.Context(), tenant, change, by); err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) subjects(relation string) (texts []string) {
	w.Helper()
	records, _, err := w.engine.Relations(w.Context(), tenant, tuplestore.Object{Type: "doc", ID: "d"}, relation, nil, 100)
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range records {
		texts = append(texts, r.Subject.ID)
	}
	return texts
}

func TestSecondSubject(t *testing.T) {
	now := time.Now()
	w := newFixture(t, engine.Config{Clock: func() time.Time { return now }})
	w.apply(one(t, ""))
	expiring := op(w, "doc:d#owner@user:ann")
	expiring.ExpiresAt = now.Add(time.Minute)
	write := func(ops ...engine.WriteOp) (engine.WriteResponse, error) {
		return w.engine.Write(t.Context(), tenant, engine.WriteRequest{Ops: ops})
	}
	if _, err := write(expiring); err != nil {
		t.Fatal(err)
	}
	_, err := write(op(w, "doc:d#viewer@user:x"), op(w, "doc:d#owner@user:bob"))
	var failed *engine.OpError
	var second *engine.SingleValuedError
	if !errors.As(err, &failed) || failed.Index != 1 || !errors.As(err, &second) || second.Tuple.Subject.ID != "ann" {
		t.Errorf("a second owner: %v", err)
	}
	contextual := request("user:bob", "owner", "doc:d")
	contextual.Contextual = []engine.WriteOp{op(w, "doc:d#owner@user:bob")}
	if _, allowed := ask(t, w.engine, contextual); !allowed {
		t.Error("a contextual relation beside the stored one does not count")
	}
	now = now.Add(time.Minute)
	if res, err := write(op(w, "doc:d#owner@user:bob")); err != nil || res.Statuses[0] != tuplestore.Replaced || res.Counts[0] != 2 {
		t.Errorf("after the expiry: %+v, %v", res, err)
	}
	if got := fmt.Sprint(w.subjects("owner")); got != "[bob]" {
		t.Errorf("owners %s", got)
	}

	w.apply(one(t, schema.Replace))
	if res, err := write(op(w, "doc:d#owner@user:cid"), op(w, "doc:d#owner@user:dan"), op(w, "doc:d#viewer@user:eve"), op(w, "doc:d#viewer@user:fay")); err != nil {
		t.Errorf("%+v, %v", res, err)
	}
	if got := fmt.Sprint(w.subjects("owner"), w.subjects("viewer")); got != "[dan] [eve fay]" {
		t.Errorf("owners and viewers %s", got)
	}
	if _, allowed := ask(t, w.engine, request("user:bob", "view", "doc:d")); allowed {
		t.Error("the relation that was replaced still counts")
	}
}

func TestOwnersRace(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.apply(one(t, schema.Replace))
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for i := range 20 {
				if n == 0 && i%5 == 0 { // the types change meanwhile
					if _, err := w.engine.ApplyTypes(t.Context(), tenant, one(t, []schema.OnSecond{"", schema.Replace}[i/5%2]), by); err != nil {
						t.Error(err)
					}
				}
				_, err := w.engine.Write(t.Context(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{op(w, fmt.Sprintf("doc:d#owner@user:%d-%d", n, i))}})
				if err != nil && !is[*engine.SingleValuedError](err) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if owners := w.subjects("owner"); len(owners) != 1 {
		t.Errorf("owners %v", owners)
	}
}

// A relation cannot become single-valued while a resource has several.
func TestCardinalityOfStoredRelations(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  owner [user]\n  viewer [user]: this | owner")
	for i := range 8 {
		w.write(fmt.Sprintf("doc:%d#owner@user:ann", i), fmt.Sprintf("doc:%d#viewer@user:ann", i), fmt.Sprintf("doc:%d#viewer@user:bob", i))
	}
	plan := func() *engine.TypesPlan {
		t.Helper()
		plan, err := w.engine.PlanTypes(t.Context(), tenant, engine.PlanRequest{TypesChange: one(t, ""), Questions: []engine.Query{
			{Subject: &tuplestore.Subject{Type: "user", ID: "ann"}, Resource: tuplestore.Object{Type: "doc", ID: "1"}, Action: "owner"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if a := plan.Answers[0]; a.Differs() || !a.After.Allowed {
			t.Errorf("answer: %+v", a)
		}
		return plan
	}
	if p := plan(); len(p.Illegal) != 0 {
		t.Errorf("illegal: %+v", p.Illegal)
	}
	for i := range 6 {
		w.write(fmt.Sprintf("doc:%d#owner@user:bob", i))
	}
	if p := plan(); len(p.Illegal) != 1 || !p.Illegal[0].Crowded || p.Illegal[0].Count != 12 || len(p.Illegal[0].Samples) != engine.MaxSamples || len(p.Affected) != 0 {
		t.Errorf("illegal: %+v, affected %v", p.Illegal, p.Affected)
	}
	_, err := w.engine.ApplyTypes(t.Context(), tenant, one(t, ""), by)
	var inUse *engine.TypeInUseError
	if !errors.As(err, &inUse) || !inUse.Crowded || inUse.Count != 12 || inUse.Relation != "owner" {
		t.Errorf("apply: %v", err)
	}
	for i := range 6 {
		if err := w.remove(fmt.Sprintf("doc:%d#owner@user:bob", i)); err != nil {
			t.Fatal(err)
		}
	}
	w.apply(one(t, ""))
}
