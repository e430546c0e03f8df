package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stonetown/engine"
	"stonetown/engine/enginetest"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// by is the origin of the tests' changes.
var by = engine.Origin{Actor: "test"}

const tenant = "tnt_a"

// fixture is an engine on a store of its own.
type fixture struct {
	testing.TB
	store  tuplestore.Store
	engine *engine.Engine
}

func newFixture(t testing.TB, c engine.Config) *fixture {
	t.Helper()
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { store.Close() })
	return &fixture{t, store, open(t, store, c)}
}

func open(t testing.TB, store tuplestore.Store, c engine.Config) *engine.Engine {
	t.Helper()
	c.Store = store
	e, err := engine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func (w *fixture) define(text string) {
	w.Helper()
	types, err := enginetest.ParseSchema(text)
	if err != nil {
		w.Fatal(err)
	}
	for _, typ := range types {
		if _, _, _, err := w.engine.PutType(context.Background(), tenant, typ, by); err != nil {
			w.Fatal(err)
		}
	}
}

func op(w interface{ Fatal(...any) }, tuple string) engine.WriteOp {
	t, err := enginetest.ParseTuple(tuple)
	if err != nil {
		w.Fatal(err)
	}
	return engine.WriteOp{Resource: t.Object, Relation: t.Relation, Subject: t.Subject}
}

func (w *fixture) write(tuples ...string) (token string) {
	w.Helper()
	var req engine.WriteRequest
	for _, text := range tuples {
		req.Ops = append(req.Ops, op(w, text))
	}
	res, err := w.engine.Write(context.Background(), tenant, req)
	if err != nil {
		w.Fatal(err)
	}
	return res.Token
}

func (w *fixture) remove(tuple string) error {
	w.Helper()
	o := op(w, tuple)
	o.Delete = true
	_, err := w.engine.Write(context.Background(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{o}})
	return err
}

func request(subject, action, resource string) engine.CheckRequest {
	s, err := enginetest.ParseSubject(subject)
	if err != nil {
		panic(err)
	}
	r, err := enginetest.ParseSubject(resource)
	if err != nil {
		panic(err)
	}
	return engine.CheckRequest{Subject: s, Queries: []engine.Query{{Resource: r.Object(), Action: action}}}
}

func ask(t testing.TB, e *engine.Engine, req engine.CheckRequest) (*engine.CheckResponse, bool) {
	t.Helper()
	res, err := e.Check(context.Background(), tenant, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Decisions[0].Err; err != nil {
		t.Fatal(err)
	}
	return res, res.Decisions[0].Allowed
}

// waitResident checks until the tenant's graph is loaded.
func (w *fixture) waitResident(req engine.CheckRequest) {
	w.Helper()
	waitResident(w.TB, w.engine, req)
}

// waitResident asks an engine until the tenant is resident.
func waitResident(t testing.TB, e *engine.Engine, req engine.CheckRequest) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); e.Stats().Loads+e.Stats().LoadsRestored == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the tenant did not become resident")
		}
		ask(t, e, req)
	}
}

func TestWriteErrorsNameTheOperation(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  owner [user]\n  viewer [user, group]: this | owner\n  derived: viewer\nfolder\n  any")
	long := strings.Repeat("x", engine.MaxID+1)
	for name, c := range map[string]struct {
		op    engine.WriteOp
		check func(error) bool
	}{
		"unknown type":       {op(t, "ghost:1#owner@user:ann"), is[*engine.UnknownTypeError]},
		"undefined relation": {op(t, "doc:1#editor@user:ann"), is[*engine.UndefinedRelationError]},
		"derived relation":   {op(t, "doc:1#derived@user:ann"), reason("relation_not_direct")},
		"unknown subject":    {op(t, "folder:1#any@ghost:ann"), reason("unknown_type")},
		"type not allowed":   {op(t, "doc:1#owner@application:ann"), reason("type_not_allowed")},
		"group not allowed":  {op(t, "doc:1#owner@group:eng"), reason("type_not_allowed")},
		"wildcard":           {op(t, "doc:1#viewer@user:*"), reason("wildcard_not_allowed")},
		"open wildcard":      {op(t, "folder:1#any@user:*"), reason("wildcard_not_allowed")},
		"undefined userset":  {op(t, "folder:1#any@doc:1#editor"), reason("relation_undefined")},
		"wildcard userset":   {op(t, "folder:1#any@doc:*#viewer"), reason("wildcard")},
		"long subject":       {op(t, "doc:1#owner@user:"+long), reason("id_length")},
		"long resource":      {op(t, "doc:"+long+"#owner@user:ann"), is[*engine.InvalidResourceError]},
		"wildcard resource":  {op(t, "doc:*#owner@user:ann"), is[*engine.InvalidResourceError]},
		"user as resource":   {op(t, "user:ann#owner@user:ann"), is[*engine.UndefinedRelationError]},
	} {
		t.Run(name, func(t *testing.T) {
			good := op(t, "doc:good#owner@user:ann")
			_, err := w.engine.Write(context.Background(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{good, c.op}})
			var opErr *engine.OpError
			if !errors.As(err, &opErr) || opErr.Index != 1 || !c.check(err) {
				t.Errorf("got %v", err)
			}
			res, err := w.engine.Check(context.Background(), tenant, request("user:ann", "owner", "doc:good"))
			if err != nil || !is[*engine.ResourceNotFoundError](res.Decisions[0].Err) {
				t.Errorf("the operation before it was applied: %v %v", res, err)
			}
		})
	}
	if err := w.remove("doc:1#owner@user:ann"); !is[*engine.RelationNotFoundError](err) {
		t.Errorf("deleting a missing relation: %v", err)
	}
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func reason(want string) func(error) bool {
	return func(err error) bool {
		var e *engine.InvalidSubjectError
		return errors.As(err, &e) && e.Reason == want
	}
}

func TestCheckSubjects(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user, user:*]")
	w.write("doc:1#viewer@user:*")
	for subject, check := range map[string]func(error) bool{
		"doc:*#viewer":   reason("wildcard"),
		"ghost:*":        reason("unknown_type"),
		"ghost:1":        reason("unknown_type"),
		"doc:1#editor":   reason("relation_undefined"),
		"group:1#editor": reason("relation_undefined"),
		"user:" + strings.Repeat("x", engine.MaxID+1): reason("id_length"),
	} {
		if _, err := w.engine.Check(context.Background(), tenant, request(subject, "view", "doc:1")); !check(err) {
			t.Errorf("%.40s: %v", subject, err)
		}
	}
}

// TestReasonsOfSharedGoals requests the reasons of a ladder, each rung of which is linked
// to both sides of the next: there are 2^40 paths.
func TestReasonsOfSharedGoals(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  parent [doc]\n  viewer [user]: this | all parent->viewer")
	const rungs = 40
	for i := range rungs {
		for _, side := range []string{"l", "r"} {
			for _, to := range []string{"l", "r"} {
				w.write(fmt.Sprintf("doc:%s%d#parent@doc:%s%d", side, i, to, i+1))
			}
		}
	}
	w.write(fmt.Sprintf("doc:l%d#viewer@user:ann", rungs), fmt.Sprintf("doc:r%d#viewer@user:ann", rungs))
	req := request("user:ann", "view", "doc:l0")
	req.Reasons = true
	answer, err := w.engine.Check(context.Background(), tenant, req)
	if err != nil || !answer.Decisions[0].Allowed {
		t.Fatalf("%+v, %v", answer, err)
	}
	if n := len(answer.Decisions[0].Reasons); n > 4*rungs {
		t.Errorf("%d reasons, want each step once", n)
	}
}

func TestInvalidQueries(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	for _, q := range []engine.Query{
		{},
		{Resource: tuplestore.Object{Type: "ghost", ID: "1"}, Action: "view"},
		{Resource: tuplestore.Object{Type: "doc", ID: "1"}},
		{Resource: tuplestore.Object{Type: "doc", ID: "1"}, Action: "sing"},
		{Resource: tuplestore.Object{Type: "doc", ID: "2"}, Action: "view"},
		{Resource: tuplestore.Object{Type: "doc"}, Action: "view"},
	} {
		// In a batch with a valid query, and alone.
		good := engine.Query{Resource: tuplestore.Object{Type: "doc", ID: "1"}, Action: "view"}
		for _, queries := range [][]engine.Query{{q}, {q, good, q}} {
			res, err := w.engine.Check(context.Background(), tenant, engine.CheckRequest{
				Subject: tuplestore.Subject{Type: "user", ID: "ann"}, Queries: queries,
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range res.Decisions {
				if wantErr := queries[i] == q; (d.Err != nil) != wantErr || d.Allowed == wantErr {
					t.Errorf("%+v of %+v: %+v", queries[i], queries, d)
				}
			}
		}
	}
}

func TestWorkIsBounded(t *testing.T) {
	for name, c := range map[string]engine.Config{"resident": {MaxVisits: 150}, "cold": {MaxVisits: 150, ResidentBytes: -1}} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c)
			w.define("team\n  member [user, team#member]")
			for i := range 100 {
				w.write(fmt.Sprintf("team:%d#member@team:%d#member", i, i+1))
			}
			w.write("team:100#member@user:ann", "team:90#member@user:bob")
			if c.ResidentBytes == 0 {
				w.waitResident(request("user:ann", "member", "team:100"))
			}
			_, err := w.engine.Check(context.Background(), tenant, request("user:ann", "member", "team:0"))
			var budget *engine.BudgetError
			if !errors.As(err, &budget) || budget.Limit != 150 {
				t.Errorf("got %v, want a *BudgetError naming the limit", err)
			}
			if _, allowed := ask(t, w.engine, request("user:bob", "member", "team:80")); !allowed {
				t.Error("a question within the budget was denied")
			}
		})
	}
}

func TestDeepChains(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("team\n  member [user, team#member]")
	const depth = 20_000
	var req engine.WriteRequest
	for i := range depth {
		req.Ops = append(req.Ops, op(t, fmt.Sprintf("team:%d#member@team:%d#member", i, i+1)))
	}
	req.Ops = append(req.Ops, op(t, fmt.Sprintf("team:%d#member@user:ann", depth)))
	if _, err := w.engine.Write(context.Background(), tenant, req); err != nil {
		t.Fatal(err)
	}
	w.waitResident(request("user:ann", "member", fmt.Sprintf("team:%d", depth)))
	if _, allowed := ask(t, w.engine, request("user:ann", "member", "team:0")); !allowed {
		t.Errorf("a chain of %d teams was not followed", depth)
	}
}

// A cold batch takes one read per level, regardless of the number of queries and the width
// of the graph.
func TestColdReadsAreOnePerLevel(t *testing.T) {
	w := newFixture(t, engine.Config{ResidentBytes: -1})
	w.define("folder\n  parent [folder]\n  viewer [user, group]: this | parent->viewer\ndoc\n  parent [folder]\n  viewer [user]: this | parent->viewer")
	const depth = 6 // folders
	var req engine.WriteRequest
	for i := range depth {
		req.Ops = append(req.Ops, op(t, fmt.Sprintf("folder:%d#viewer@group:%d", i, i)))
		if i+1 < depth {
			req.Ops = append(req.Ops, op(t, fmt.Sprintf("folder:%d#parent@folder:%d", i, i+1)))
		}
	}
	for i := range 300 {
		req.Ops = append(req.Ops, op(t, fmt.Sprintf("doc:%d#parent@folder:%d", i, i%depth)))
		req.Ops = append(req.Ops, op(t, fmt.Sprintf("group:%d#member@user:%d", i%depth, i)))
	}
	if _, err := w.engine.Write(context.Background(), tenant, req); err != nil {
		t.Fatal(err)
	}
	batch := request("user:nobody", "view", "doc:0")
	for i := range 500 {
		batch.Queries = append(batch.Queries, engine.Query{Resource: tuplestore.Object{Type: "doc", ID: fmt.Sprint(i * depth % 300)}, Action: "view"}) // all in folder 0
	}
	before := w.engine.Stats().ColdReads
	if _, allowed := ask(t, w.engine, batch); allowed {
		t.Error("a user without relations is allowed")
	}
	// The document, six folders and the last one's group.
	if reads := w.engine.Stats().ColdReads - before; reads != depth+2 {
		t.Errorf("%d reads for a path of %d objects", reads, depth+2)
	}
}

// The subjects of a batch share the reads: it takes as many as the deepest of its questions.
func TestColdReadsAreOnePerLevelOfAllSubjects(t *testing.T) {
	w := newFixture(t, engine.Config{ResidentBytes: -1})
	w.define("folder\n  parent [folder]\n  viewer [user]: this | parent->viewer\n")
	const depth, subjects = 5, 40
	for i := range depth {
		w.write(fmt.Sprintf("folder:%d#parent@folder:%d", i, i+1))
	}
	req := engine.CheckRequest{}
	for i := range subjects {
		if i%2 == 0 {
			w.write(fmt.Sprintf("folder:%d#viewer@user:%d", i%(depth+1), i))
		}
		req.Queries = append(req.Queries, engine.Query{
			Resource: tuplestore.Object{Type: "folder", ID: "0"}, Action: "viewer", Subject: &tuplestore.Subject{Type: "user", ID: fmt.Sprint(i)},
		})
	}
	before := w.engine.Stats().ColdReads
	answer, err := w.engine.Check(t.Context(), tenant, req)
	if err != nil {
		t.Fatal(err)
	}
	if reads := w.engine.Stats().ColdReads - before; reads != depth+1 {
		t.Errorf("%d reads, want %d", reads, depth+1)
	}
	for i, d := range answer.Decisions {
		if d.Err != nil || d.Allowed != (i%2 == 0) {
			t.Errorf("user %d: %+v", i, d)
		}
	}
}

func TestUnregisterDeletesAllRelations(t *testing.T) {
	w := newFixture(t, engine.Config{})
	ctx := context.Background()
	w.define("folder\n  viewer [user]\ndoc\n  parent [folder]\n  viewer [user]: this | parent->viewer")
	w.write("folder:a#viewer@user:ann", "doc:1#parent@folder:a")
	folder := tuplestore.Object{Type: "folder", ID: "a"}
	if _, err := w.engine.Unregister(ctx, tenant, folder, by); err != nil {
		t.Fatal(err)
	}
	if _, allowed := ask(t, w.engine, request("user:ann", "view", "doc:1")); allowed {
		t.Error("access through a deleted folder")
	}
	w.write("folder:a#viewer@user:ann") // another folder with the same ID
	if _, allowed := ask(t, w.engine, request("user:ann", "view", "doc:1")); allowed {
		t.Error("the document came back under a new folder that took the old one's ID")
	}
	gone := tuplestore.Object{Type: "folder", ID: "gone"}
	if _, err := w.engine.Unregister(ctx, tenant, gone, by); !is[*engine.ResourceNotFoundError](err) {
		t.Errorf("deleting a missing resource: %v", err)
	}
	if _, err := w.engine.Alter(ctx, tenant, gone, by); !is[*engine.ResourceNotFoundError](err) {
		t.Errorf("altering a missing resource: %v", err)
	}
}
