package engine_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stonetown/engine"
	"stonetown/engine/enginetest"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// by is the origin of the tests' changes.
var by = engine.Origin{Actor: "test"}

const tenant = "tnt_a"

// fixture is an engine on a store of its own.
type fixture struct {
	*testing.T
	store  tuplestore.Store
	engine *engine.Engine
}

func newFixture(t *testing.T, c engine.Config) *fixture {
	t.Helper()
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { store.Close() })
	return &fixture{t, store, open(t, store, c)}
}

func open(t *testing.T, store tuplestore.Store, c engine.Config) *engine.Engine {
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

func ask(t *testing.T, e *engine.Engine, req engine.CheckRequest) (*engine.CheckResponse, bool) {
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
	for deadline := time.Now().Add(10 * time.Second); w.engine.Stats().Loads == 0; {
		if time.Now().After(deadline) {
			w.Fatal("the tenant did not become resident")
		}
		ask(w.T, w.engine, req)
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

func TestConsistencyTokens(t *testing.T) {
	w := newFixture(t, engine.Config{MaxStaleness: time.Hour})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	req := request("user:ann", "view", "doc:1")
	w.waitResident(req)

	// Within bounded staleness the engine need not read; with the token of a write it must.
	other := open(t, hideHead{w.store}, engine.Config{MaxStaleness: time.Hour})
	for other.Stats().Loads == 0 {
		ask(t, other, req)
	}
	if err := w.remove("doc:1#viewer@user:ann"); err != nil {
		t.Fatal(err)
	}
	token := w.write("doc:2#viewer@user:ann")
	stale := req
	stale.Consistency = engine.Consistency{Mode: engine.MinimizeLatency}
	if _, allowed := ask(t, other, stale); !allowed {
		t.Error("a minimize_latency check went to the store although its data is fresh enough")
	}
	fresh := req
	fresh.Consistency = engine.Consistency{Mode: engine.AtLeast, Token: token}
	if _, allowed := ask(t, other, fresh); allowed {
		t.Error("a check with the token of a later write missed the write before it")
	}
	if _, allowed := ask(t, other, req); allowed {
		t.Error("a fully consistent check missed an acknowledged write")
	}

	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"garbage":      {"%%%", engine.ErrTokenInvalid},
		"not a token":  {"aGVsbG8", engine.ErrTokenInvalid},
		"other tenant": {tokenOf("v1|tnt_b|%s|1", token, t), engine.ErrTokenInvalid},
		"other format": {tokenOf("v2|tnt_a|%s|1", token, t), engine.ErrTokenInvalid},
		"negative":     {tokenOf("v1|tnt_a|%s|-1", token, t), engine.ErrTokenInvalid},
		"from ahead":   {tokenOf("v1|tnt_a|%s|999", token, t), engine.ErrTokenUnknown},
	} {
		r := req
		r.Consistency = engine.Consistency{Mode: engine.AtLeast, Token: c.token}
		if _, err := w.engine.Check(context.Background(), tenant, r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	// A token of another history cannot be compared: the answer is fully consistent and has
	// TokenIgnored.
	r := req
	r.Consistency = engine.Consistency{Mode: engine.AtLeast, Token: tokenOf("v1|tnt_a|x%s|1", token, t)}
	if res, allowed := ask(t, w.engine, r); allowed || !res.TokenIgnored {
		t.Errorf("token of another epoch: allowed %v, ignored %v", allowed, res.TokenIgnored)
	}
}

// hideHead is a store of which this process is not the only writer.
type hideHead struct{ tuplestore.Store }

func (hideHead) KnownHead(string) (tuplestore.Head, bool) { return tuplestore.Head{}, false }

func TestChecksShareTheTailRead(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	slow := &slowStore{Store: hideHead{w.store}, gate: make(chan struct{}, 1000)}
	for range 1000 {
		slow.gate <- struct{}{}
	}
	e := open(t, slow, engine.Config{})
	req := request("user:ann", "view", "doc:1")
	for e.Stats().Loads == 0 {
		ask(t, e, req)
	}
	for len(slow.gate) > 0 { // from now on a tail read waits
		<-slow.gate
	}
	before := e.Stats().TailReads
	var checks sync.WaitGroup
	for range 100 {
		checks.Go(func() { ask(t, e, req) })
	}
	time.Sleep(50 * time.Millisecond) // all of them wait
	for range 100 {
		slow.gate <- struct{}{}
	}
	checks.Wait()
	if reads := e.Stats().TailReads - before; reads > 4 {
		t.Errorf("100 checks at once took %d tail reads, want a few that they share", reads)
	}
}

// slowStore lets a changelog read pass for each token in the gate.
type slowStore struct {
	tuplestore.Store
	gate chan struct{}
}

func (s *slowStore) Changes(ctx context.Context, tenant string, after tuplestore.Revision, limit int) ([]tuplestore.Commit, error) {
	<-s.gate
	return s.Store.Changes(ctx, tenant, after, limit)
}

// If the database hangs, only the checks that read it fail.
func TestTailReadsAreBounded(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	hanging := &hangingStore{Store: hideHead{w.store}}
	e := open(t, hanging, engine.Config{TailTimeout: 50 * time.Millisecond})
	req := request("user:ann", "view", "doc:1")
	for e.Stats().Loads == 0 {
		ask(t, e, req)
	}
	hanging.hangs.Store(true)
	if _, err := e.Check(context.Background(), tenant, req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the database hangs: %v", err)
	}
	cancelAt, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := e.Check(cancelAt, tenant, req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller with less patience: %v", err)
	}
	stale := req
	stale.Consistency = engine.Consistency{Mode: engine.MinimizeLatency}
	if _, allowed := ask(t, e, stale); !allowed {
		t.Error("what needs no read was refused")
	}
	hanging.hangs.Store(false)
	if _, err := e.Check(context.Background(), tenant, req); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err) // it may have joined a read that hung
	}
	if _, allowed := ask(t, e, req); !allowed {
		t.Error("denied after the database came back")
	}
}

// hangingStore does not answer while it hangs.
type hangingStore struct {
	tuplestore.Store
	hangs atomic.Bool
}

func (s *hangingStore) Changes(ctx context.Context, tenant string, after tuplestore.Revision, limit int) ([]tuplestore.Commit, error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Changes(ctx, tenant, after, limit)
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

func TestTypesInUse(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("folder\n  viewer [user]\ndoc\n  parent [folder]\n  viewer [user, group]\n  open")
	w.write("doc:1#viewer@group:eng", "doc:1#parent@folder:a", "doc:2#open@folder:a")
	put := func(text string) error {
		types, err := enginetest.ParseSchema(text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = w.engine.PutType(context.Background(), tenant, types[0], by)
		return err
	}
	inUse := func(err error, typ, relation string, count int) {
		t.Helper()
		var e *engine.TypeInUseError
		if !errors.As(err, &e) || e.Type != typ || e.Relation != relation || e.Count != count {
			t.Errorf("got %v, want %s#%s in use by %d", err, typ, relation, count)
		}
	}
	inUse(put("doc\n  parent [folder]\n  open"), "doc", "viewer", 1)
	inUse(put("doc\n  parent [folder]\n  viewer [user]\n  open"), "doc", "viewer", 1)
	inUse(put("doc\n  parent [folder]\n  viewer [user, group]\n  open: viewer"), "doc", "open", 1)
	_, err := w.engine.DeleteType(context.Background(), tenant, "doc", by)
	inUse(err, "doc", "", 5) // three relations, two registrations
	_, err = w.engine.DeleteType(context.Background(), tenant, "folder", by)
	inUse(err, "doc", "parent", 1) // no folder is registered, but tuples name one
	if err := put("doc\n  parent [folder]\n  viewer [user, group, user:*]\n  open\n  extra"); err != nil {
		t.Errorf("widening a type: %v", err)
	}
	for _, tuple := range []string{"doc:1#parent@folder:a", "doc:2#open@folder:a"} {
		if err := w.remove(tuple); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = w.engine.DeleteType(context.Background(), tenant, "folder", by); err != nil {
		t.Errorf("deleting a type that nothing names any more: %v", err)
	}
	if _, err := w.engine.Type(context.Background(), tenant, "folder"); !is[*engine.UnknownTypeError](err) {
		t.Errorf("reading a deleted type: %v", err)
	}
	if _, err := w.engine.DeleteType(context.Background(), tenant, "folder", by); !is[*engine.UnknownTypeError](err) {
		t.Errorf("deleting it again: %v", err)
	}
}

// A changed rewrite and a deleted relation are as consistent as a tuple, also if another
// engine made the change.
func TestSchemaChangesAreConsistent(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  owner [user]\n  viewer [user]: this | owner")
	w.write("doc:1#owner@user:ann")
	other := open(t, hideHead{w.store}, engine.Config{})
	req := request("user:ann", "view", "doc:1")
	for other.Stats().Loads == 0 {
		ask(t, other, req)
	}
	w.define("doc\n  owner [user]\n  viewer [user]")
	if _, allowed := ask(t, other, req); allowed {
		t.Error("the other engine answered by the old rewrite")
	}
	// It also validates writes by the new schema, which it has not read yet.
	w.define("doc\n  owner [user]\n  viewer [user]\n  signer [user]")
	_, err := other.Write(context.Background(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{op(t, "doc:1#signer@user:ann")}})
	if err != nil {
		t.Errorf("writing a relation that was just defined elsewhere: %v", err)
	}
	w.define("doc\n  owner [user]\n  viewer [application]\n  signer [user]")
	_, err = other.Write(context.Background(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{op(t, "doc:1#viewer@user:ann")}})
	if !reason("type_not_allowed")(err) {
		t.Errorf("writing what was just forbidden elsewhere: %v", err)
	}
}

func TestConcurrentDefinitions(t *testing.T) {
	w := newFixture(t, engine.Config{})
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			typ := schema.Type{Name: fmt.Sprintf("type%d", i), Relations: []schema.Relation{{Name: "viewer"}}}
			for {
				_, _, _, err := w.engine.PutType(context.Background(), tenant, typ, by)
				if errors.Is(err, tuplestore.ErrSchemaChanged) {
					continue // lost five times in a row; the caller may repeat
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
		})
	}
	group.Wait()
	types, err := w.engine.Types(context.Background(), tenant)
	if err != nil || len(types) != 20 {
		t.Errorf("%d types are defined, want 20 (%v)", len(types), err)
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

func TestCancelledChecksEnd(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.engine.Check(ctx, tenant, request("user:ann", "view", "doc:1")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// cancelAt is a context that is canceled at the nth call of Err.
type cancelAt struct {
	context.Context
	left atomic.Int64
	late atomic.Int64 // later calls
}

func (c *cancelAt) Err() error {
	if c.left.Add(-1) > 0 {
		return nil
	}
	c.late.Add(1)
	return context.Canceled
}

// Work in progress stops when its request is canceled, also within a level of a traversal.
func TestCancelledWorkStops(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("team\n  owner [user]\n  member [user, team#member]: this | owner\ndoc\n  parent [team]\n  viewer: parent->member")
	var tuples []string
	for i := range 5000 {
		tuples = append(tuples, fmt.Sprintf("team:0#member@team:t%d#member", i))
		tuples = append(tuples, fmt.Sprintf("team:t%d#member@user:cid", i))
		tuples = append(tuples, fmt.Sprintf("doc:%d#parent@team:t%d", i, i))
	}
	for part := range slices.Chunk(tuples, 500) {
		w.write(part...)
	}
	w.write("team:0#member@user:ann", "team:other#member@user:bob")
	w.waitResident(request("user:bob", "member", "team:0"))
	for name, work := range map[string]func(ctx context.Context) error{
		"check": func(ctx context.Context) error {
			_, err := w.engine.Check(ctx, tenant, request("user:bob", "member", "team:0"))
			return err
		},
		"list of resources": func(ctx context.Context) error {
			_, err := w.engine.ListResources(ctx, tenant, engine.ListResourcesRequest{Subject: request("user:cid", "", "x:x").Subject, Type: "doc", Action: "viewer"})
			return err
		},
		"list of subjects": func(ctx context.Context) error {
			_, err := w.engine.ListSubjects(ctx, tenant, engine.ListSubjectsRequest{Resource: tuplestore.Object{Type: "team", ID: "0"}, Action: "member", SubjectType: "user"})
			return err
		},
	} {
		counted := &cancelAt{Context: context.Background()}
		counted.left.Store(1 << 40)
		if err := work(counted); err != nil {
			t.Fatal(err)
		}
		all := 1<<40 - counted.left.Load()
		if all < 8 { // there are four levels at most
			t.Errorf("%s: %d checks of the context", name, all)
		}
		for n := range all {
			ctx := &cancelAt{Context: context.Background()}
			ctx.left.Store(n + 1)
			if err := work(ctx); !errors.Is(err, context.Canceled) || ctx.late.Load() > 1 {
				t.Errorf("%s, cancelled at call %d of %d: %v after %d more", name, n, all, err, ctx.late.Load()-1)
			}
		}
	}
}

// tokenOf builds a token of this form with the epoch of a real one.
func tokenOf(format, real string, t *testing.T) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(real)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, format, strings.Split(string(text), "|")[2]))
}
