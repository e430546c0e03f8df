package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	if len(first.Changes) != 1 || first.Changes[0].Result != engine.TypeUpdated {
		t.Errorf("%+v", first)
	}
	if again, err := w.engine.ApplyTypes(t.Context(), tenant, change, once); err != nil || again.Token != first.Token {
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

// TestRenamedTuplesAreCounted counts up to a bound.
func TestRenamedTuplesAreCounted(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]\nfolder\n  viewer [user]")
	plan := engine.PlanRequest{TypesChange: engine.TypesChange{Renames: []schema.Rename{{Type: "folder", From: "viewer", To: "x"}, {From: "doc", To: "paper"}}}}
	count := func(register int, want engine.RenamedTuples) {
		t.Helper()
		req := engine.WriteRequest{Origin: by}
		for i := range register {
			req.Register = append(req.Register, tuplestore.Object{Type: "doc", ID: fmt.Sprint(register, "-", i)})
		}
		if _, err := w.engine.Write(t.Context(), tenant, req); err != nil {
			t.Fatal(err)
		}
		got, err := w.engine.PlanTypes(t.Context(), tenant, plan)
		if err != nil || !got.Renamed[0].Exact || got.Renamed[1] != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
	count(engine.MaxRenamed, engine.RenamedTuples{Count: engine.MaxRenamed, Exact: true})
	count(1, engine.RenamedTuples{Count: engine.MaxRenamed})
}

// writes is a store that keeps the last write, and counts reads.
type writes struct {
	tuplestore.Store
	last  tuplestore.Write
	reads int
}

func (s *writes) Write(ctx context.Context, tenant string, w tuplestore.Write) (tuplestore.Result, error) {
	s.last = w
	return s.Store.Write(ctx, tenant, w)
}

func (s *writes) Snapshot(tenant string, rev tuplestore.Revision) tuplestore.Snapshot {
	s.reads++
	return s.Store.Snapshot(tenant, rev)
}

// TestRenameWritesNoTuples: a rename is a new document, whatever is stored.
func TestRenameWritesNoTuples(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	store := &writes{Store: w.store}
	e := open(t, store, engine.Config{})
	if _, err := e.Types(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	store.reads = 0
	if _, err := e.ApplyTypes(t.Context(), tenant, engine.TypesChange{Renames: []schema.Rename{{From: "doc", To: "paper"}}}, by); err != nil {
		t.Fatal(err)
	}
	if len(store.last.Ops)+len(store.last.Absent)+store.reads > 0 || store.last.PutSchema == nil {
		t.Errorf("%d reads, %+v", store.reads, store.last)
	}
}

// TestWritesAfterRenames: whatever the engine reports about relations has the names of the types.
func TestWritesAfterRenames(t *testing.T) {
	for name, config := range map[string]engine.Config{"resident": {}, "cold": {ResidentBytes: -1}} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, config)
			types := parsedTypes(t, "doc\n  viewer [user]\n  owner [user]\n  admin [user]")
			for i, onSecond := range []schema.OnSecond{schema.Replace, schema.Refuse} {
				r := &types[0].Relations[1+i]
				r.Cardinality, r.OnSecond = schema.One, onSecond
			}
			w.apply(engine.TypesChange{Put: types})
			w.write("doc:1#viewer@user:ann", "doc:1#owner@user:ann", "doc:1#admin@user:ann")
			w.apply(engine.TypesChange{Renames: []schema.Rename{
				{From: "doc", To: "paper"}, {Type: "doc", From: "owner", To: "admin"}, {Type: "doc", From: "admin", To: "owner"},
			}})
			w.apply(engine.TypesChange{Put: parsedTypes(t, "doc\n  viewer [user]")}) // another type with the former name

			write := func(op engine.WriteOp) error {
				_, err := w.engine.Write(t.Context(), tenant, engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{op}})
				return err
			}
			refused := func(text string, change func(*engine.WriteOp), want string) {
				t.Helper()
				op := op(t, text)
				if change != nil {
					change(&op)
				}
				if err := write(op); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %s", text, err, want)
				}
			}
			refused("paper:1#owner@user:bob", nil, "paper:1#owner takes one subject and has another")
			refused("paper:1#viewer@user:ann", func(op *engine.WriteOp) { op.New = true }, "paper:1#viewer@user:ann")
			refused("paper:1#viewer@user:eve", func(op *engine.WriteOp) { op.Delete = true }, "paper:1#viewer@user:eve")
			refused("doc:1#viewer@user:ann", func(op *engine.WriteOp) { op.Delete = true }, "doc:1#viewer@user:ann")
			if err := write(op(t, "paper:1#admin@user:bob")); err != nil {
				t.Fatal(err)
			}
			paper := engine.RelationFilter{Resource: tuplestore.Object{Type: "paper"}}
			w.found(paper, "paper:1#owner@user:ann", "paper:1#admin@user:bob", "paper:1#viewer@user:ann")
			// Actions mean what they did before the relations exchanged their names.
			w.allowed("user:bob", "owner", "paper:1", true)
			w.allowed("user:ann", "admin", "paper:1", true)
			w.write("doc:1#viewer@user:eve")
			w.allowed("user:eve", "viewer", "doc:1", true)
			w.allowed("user:ann", "viewer", "doc:1", false)
			w.allowed("user:eve", "viewer", "paper:1", false)

			// A relation of all types.
			subject := engine.RelationFilter{Relation: "viewer", Subject: tuplestore.Subject{Type: "user"}}
			w.found(subject, "paper:1#viewer@user:ann", "doc:1#viewer@user:eve")
			w.apply(engine.TypesChange{Renames: []schema.Rename{{Type: "paper", From: "viewer", To: "reader"}}})
			w.found(subject, "doc:1#viewer@user:eve")
			subject.Relation = "reader"
			w.found(subject, "paper:1#reader@user:ann")
			// A new process reads the same.
			w.engine = open(t, w.store, config)
			w.found(subject, "paper:1#reader@user:ann")
			w.allowed("user:ann", "reader", "paper:1", true)
			if _, err := w.engine.DeleteType(t.Context(), tenant, "doc", by); !is[*engine.TypeInUseError](err) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestListsGoOnAfterRenames renames between the pages of lists.
func TestListsGoOnAfterRenames(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  a [user]\n  b [user]\n  c [user]\nfolder\n  a [user]")
	w.write("doc:1#a@user:ann", "doc:1#b@user:ann", "doc:1#c@user:ann", "folder:1#a@user:ann")
	rename := func(renames ...schema.Rename) { w.apply(engine.TypesChange{Renames: renames}) }
	o := tuplestore.Object{Type: "doc", ID: "1"}
	_, position, err := w.engine.Relations(t.Context(), tenant, o, "", nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	ann := engine.RelationFilter{Subject: tuplestore.Subject{Type: "user", ID: "ann"}}
	_, naming, err := w.engine.FindRelations(t.Context(), tenant, ann, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, docs, err := w.engine.FindRelations(t.Context(), tenant, engine.RelationFilter{Resource: tuplestore.Object{Type: "doc"}}, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	rename(schema.Rename{Type: "doc", From: "a", To: "z"}, schema.Rename{Type: "doc", From: "b", To: "x"}, schema.Rename{Type: "doc", From: "c", To: "a"})
	rest, next, err := w.engine.Relations(t.Context(), tenant, o, "", position, 2)
	if fmt.Sprint(facts(rest)) != "[doc:1#a@user:ann]" || next != nil || err != nil {
		t.Errorf("%v, %v, %v", rest, next, err)
	}
	rename(schema.Rename{From: "doc", To: "folder"}, schema.Rename{From: "folder", To: "doc"})
	rest, next, err = w.engine.FindRelations(t.Context(), tenant, ann, naming, 2)
	if fmt.Sprint(facts(rest)) != "[folder:1#a@user:ann doc:1#a@user:ann]" || next != nil || err != nil {
		t.Errorf("%v, %v, %v", rest, next, err)
	}
	// The name means other resources now.
	if _, _, err = w.engine.Relations(t.Context(), tenant, o, "", position, 2); !errors.Is(err, engine.ErrPosition) {
		t.Errorf("%v", err)
	}
	if _, _, err = w.engine.FindRelations(t.Context(), tenant, engine.RelationFilter{Resource: tuplestore.Object{Type: "doc"}}, docs, 2); !errors.Is(err, engine.ErrPosition) {
		t.Errorf("%v", err)
	}
}

// TestWatchRenames: a watch names the renames, and has the names of each revision.
func TestWatchRenames(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]\nfolder\n  viewer [user]")
	first := w.write("doc:1#viewer@user:ann")
	rename := func(renames ...schema.Rename) string {
		t.Helper()
		applied, err := w.engine.ApplyTypes(t.Context(), tenant, engine.TypesChange{Renames: renames}, by)
		if err != nil {
			t.Fatal(err)
		}
		return applied.Token
	}
	w.write("doc:2#viewer@user:ann")
	middle := rename(schema.Rename{From: "doc", To: "paper"}, schema.Rename{Type: "doc", From: "viewer", To: "reader"})
	w.write("paper:3#reader@user:ann")
	rename(schema.Rename{From: "paper", To: "folder"}, schema.Rename{From: "folder", To: "paper"})
	last := w.write("paper:4#viewer@user:ann")
	want := []string{
		"[] [doc:2#viewer@user:ann doc:2]", "[doc=paper doc#viewer=reader] []", "[] [paper:3#reader@user:ann paper:3]",
		"[paper=folder folder=paper] []", "[] [paper:4#viewer@user:ann paper:4]",
	}
	for after, want := range map[string][]string{first: want, middle: want[2:]} {
		events, err := watchUntil(w, after, last)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ev := range events {
			if ev.Heartbeat {
				continue
			}
			var tuples []string
			for _, c := range ev.Changes {
				tuples = append(tuples, c.Tuple.String())
			}
			got = append(got, fmt.Sprint(ev.Renamed, " ", tuples))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWatchedDecisionsAfterRenames: renames that do not concern the question have no event.
func TestWatchedDecisionsAfterRenames(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("team\n  member [user]\ndoc\n  viewer [user, team#member]")
	first := w.write("doc:1#viewer@team:a#member")
	rename := func(renames ...schema.Rename) { w.apply(engine.TypesChange{Renames: renames}) }
	rename(schema.Rename{From: "team", To: "crew"}, schema.Rename{Type: "team", From: "member", To: "hand"}, schema.Rename{Type: "doc", From: "viewer", To: "reader"})
	w.write("crew:a#hand@user:ann")
	rename(schema.Rename{From: "doc", To: "paper"})
	rename(schema.Rename{From: "paper", To: "doc"})
	w.write("doc:2#reader@user:bob")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []string
	done := errors.New("done")
	err := w.engine.Watch(ctx, tenant, engine.WatchRequest{After: first, Decisions: &engine.WatchedDecisions{Type: "doc", Action: "view", SubjectType: "user"}}, func(ev engine.WatchEvent) error {
		if ev.Heartbeat {
			return nil
		}
		var text []string
		for _, c := range ev.Decisions {
			text = append(text, fmt.Sprint(c.Subject, " ", c.Resource))
		}
		got = append(got, fmt.Sprint(text, ev.Renamed))
		if len(got) == 4 {
			return done
		}
		return nil
	})
	want := []string{"[user:ann doc:1] []", "[] [doc=paper]", "[] [paper=doc]", "[user:bob doc:2] []"}
	if !errors.Is(err, done) || !slices.Equal(got, want) {
		t.Errorf("%q, want %q, %v", got, want, err)
	}
}

// allowed asks and compares.
func (w *fixture) allowed(subject, action, resource string, want bool) {
	w.Helper()
	res, err := w.engine.Check(context.Background(), tenant, request(subject, action, resource))
	if err != nil || res.Decisions[0].Allowed != want {
		w.Errorf("%s %s %s: %+v, %v, want %v", subject, action, resource, res, err, want)
	}
}

// found compares all relations that a filter selects.
func (w *fixture) found(f engine.RelationFilter, want ...string) {
	w.Helper()
	page, next, err := w.engine.FindRelations(context.Background(), tenant, f, nil, 10)
	if got := facts(page); !slices.Equal(got, want) || next != nil || err != nil {
		w.Errorf("%+v: %v, %v, %v, want %v", f, got, next, err, want)
	}
}

func facts(records []tuplestore.Record) (all []string) {
	for _, r := range records {
		all = append(all, r.Tuple.String())
	}
	return all
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

// TestChecksDuringRenames asks by the former and the new names at once. Every answer is that of one
// revision: allowed by its names, and undefined by the others.
func TestChecksDuringRenames(t *testing.T) {
	for name, config := range map[string]engine.Config{"resident": {}, "cold": {ResidentBytes: -1}} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, config)
			w.define("doc\n  viewer [user]\n  part [user]\nfolder\n  viewer [user]")
			w.write("doc:1#viewer@user:ann", "doc:1#part@user:ann", "folder:1#viewer@user:ann")
			// To and fro: a type, a relation that no other type has, and one that another type has.
			names := [][2]string{{"doc", "paper"}, {"part", "piece"}, {"viewer", "reader"}}
			req := engine.CheckRequest{Subject: tuplestore.Subject{Type: "user", ID: "ann"}}
			for _, typ := range names[0] {
				for _, relation := range []string{"viewer", "reader", "part", "piece"} {
					req.Queries = append(req.Queries, engine.Query{Resource: tuplestore.Object{Type: typ, ID: "1"}, Action: relation})
				}
			}
			done := make(chan struct{})
			var group sync.WaitGroup
			for range 2 {
				group.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						res, err := w.engine.Check(t.Context(), tenant, req)
						if err != nil {
							t.Error(err)
							return
						}
						allowed := 0
						for _, d := range res.Decisions {
							switch {
							case d.Allowed:
								allowed++
							case !is[*engine.UnknownTypeError](d.Err) && !is[*engine.UndefinedRelationError](d.Err):
								t.Errorf("%+v", res)
								return
							}
						}
						if allowed < 2 || allowed > 4 { // two relations, by former names also as actions
							t.Errorf("%d allowed: %+v", allowed, res)
							return
						}
					}
				})
			}
			typ := "doc"
			for i := range 60 {
				of, from := names[i%3], i/3%2
				r := schema.Rename{Type: typ, From: of[from], To: of[1-from]}
				if i%3 == 0 {
					r.Type, typ = "", r.To
				}
				w.apply(engine.TypesChange{Renames: []schema.Rename{r}})
			}
			close(done)
			group.Wait()
		})
	}
}
