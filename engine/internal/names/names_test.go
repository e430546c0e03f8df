package names_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/names"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

const tenant = "t"

func compile(t *testing.T, types ...schema.Type) *schema.Compiled {
	t.Helper()
	c, err := schema.Compile(types)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func typ(name, stored string, relations ...[2]string) schema.Type {
	t := schema.Type{Name: name, Stored: stored}
	for _, r := range relations {
		t.Relations = append(t.Relations, schema.Relation{Name: r[0], Stored: r[1]})
	}
	return t
}

func tuple(object, id, relation, user string) tuplestore.Tuple {
	return tuplestore.Tuple{Object: tuplestore.Object{Type: object, ID: id}, Relation: relation, Subject: tuplestore.Subject{Type: "user", ID: user}}
}

// recorder is a store that keeps the last write, and calls its Event.
type recorder struct {
	tuplestore.Store
	last  tuplestore.Write
	event string
}

func (s *recorder) Write(ctx context.Context, tenant string, w tuplestore.Write) (tuplestore.Result, error) {
	s.last = w
	r, err := s.Store.Write(ctx, tenant, w)
	if err == nil && w.Event != nil {
		s.event = w.Event(r)
	}
	return r, err
}

func newStore(t *testing.T) *recorder {
	s := memstore.New(memstore.Config{})
	t.Cleanup(func() { s.Close() })
	return &recorder{Store: s}
}

// Without renames, there is nothing between the engine and its store.
func TestNothingWithoutRenames(t *testing.T) {
	c, store := compile(t, typ("doc", "", [2]string{"viewer", ""})), newStore(t)
	in := store.Snapshot(tenant, 0)
	if names.Snapshot(in, c) != in {
		t.Error("a snapshot is wrapped")
	}
	r := &tuplestore.Record{}
	commits := []tuplestore.Commit{{Changes: []tuplestore.Change{{Tuple: tuple("doc", "1", "viewer", "ann")}}}}
	if names.Position(r, c) != r || &names.Commits(commits, c)[0] != &commits[0] || &names.Changes(&commits[0], c)[0] != &commits[0].Changes[0] {
		t.Error("records are copied")
	}
	w := tuplestore.Write{Ops: []tuplestore.Op{{Kind: tuplestore.Create, Tuple: tuple("doc", "1", "viewer", "ann")}}}
	if _, err := names.Write(t.Context(), store, tenant, w, c); err != nil || &store.last.Ops[0] != &w.Ops[0] {
		t.Errorf("a write is copied, %v", err)
	}
	if n := testing.AllocsPerRun(10, func() {
		names.Snapshot(in, c)
		names.Position(r, c)
		names.Changes(&commits[0], c)
		names.Rename(nil, c, c)
		names.StoredObject(tuplestore.Object{}, c)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// All parts of a write are stored by the stored names, and its outcome has those of the types.
func TestWrite(t *testing.T) {
	c, store := compile(t, typ("paper", "doc", [2]string{"reader", "viewer"})), newStore(t)
	ctx := t.Context()
	write := func(w tuplestore.Write) (tuplestore.Result, error) { return names.Write(ctx, store, tenant, w, c) }
	ann, bob := tuple("paper", "1", "reader", "ann"), tuple("paper", "1", "reader", "bob")
	if _, err := write(tuplestore.Write{Ops: []tuplestore.Op{{Kind: tuplestore.Create, Tuple: ann}}}); err != nil {
		t.Fatal(err)
	}
	if got := store.last.Ops[0].Tuple; got != tuple("doc", "1", "viewer", "ann") {
		t.Errorf("stored %v", got)
	}
	_, err := write(tuplestore.Write{Ops: []tuplestore.Op{{Kind: tuplestore.CreateNew, Tuple: ann}}})
	if conflict, ok := errors.AsType[*tuplestore.ConflictError](err); !ok || conflict.Tuple != ann {
		t.Errorf("%v", err)
	}
	node := tuplestore.Filter{ObjectType: "paper", Relation: "reader", SubjectsOutside: []tuplestore.SubjectShape{{Type: "paper", Relation: "reader"}}}
	_, err = write(tuplestore.Write{Absent: []tuplestore.Filter{node}})
	if conflict, ok := errors.AsType[*tuplestore.ConflictError](err); !ok || conflict.Count != 1 || store.last.Absent[0].SubjectsOutside[0].Type != "doc" {
		t.Errorf("%v", err)
	}
	result, err := write(tuplestore.Write{
		Preconditions: []tuplestore.Precondition{{Filter: node, Exists: true}},
		Ops:           []tuplestore.Op{{Kind: tuplestore.Create, Tuple: bob, Others: tuplestore.ReplaceOthers}},
		Event:         func(r tuplestore.Result) string { return fmt.Sprint(r.Replaced) },
	})
	if err != nil || !slices.Equal(result.Replaced[0], []tuplestore.Tuple{ann}) || store.event != "map[0:[paper:1#reader@user:ann]]" {
		t.Errorf("%+v, %v, event %q", result, err, store.event)
	}
	node.SubjectsOutside = nil
	if result, err = write(tuplestore.Write{Ops: []tuplestore.Op{{Kind: tuplestore.DeleteMatching, Match: node}}}); err != nil || result.Counts[0] != 1 {
		t.Errorf("%+v, %v", result, err)
	}
	known := &tuplestore.Known{Facts: []tuplestore.Fact{{Tuple: ann}}}
	if _, err := write(tuplestore.Write{Ops: []tuplestore.Op{{Kind: tuplestore.DeleteExisting, Tuple: ann}}, Known: known}); err != nil {
		t.Fatal(err)
	}
	if got := store.last.Known.Facts[0].Tuple; got != store.last.Ops[0].Tuple || known.Facts[0].Tuple != ann {
		t.Errorf("known is %v, and the caller's %v", got, known.Facts[0].Tuple)
	}
	commits, err := store.Changes(ctx, tenant, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := names.Commits(commits, c)[0].Changes; got[0].Tuple != ann || !got[0].Deleted || got[1].Tuple != bob {
		t.Errorf("%v", got)
	}
	if got := commits[0].Changes[0].Tuple; got.Object.Type != "doc" {
		t.Errorf("the store's own changes have become %v", got)
	}
	if _, err := write(tuplestore.Write{Absent: []tuplestore.Filter{{SubjectType: "user", Relation: "reader"}}}); err == nil {
		t.Error("a relation of any type was translated")
	}
}

// A graph is renamed as a whole, or not at all.
func TestRenameGraph(t *testing.T) {
	before := []schema.Type{typ("doc", "", [2]string{"reader", ""}, [2]string{"editor", ""}), typ("folder", "", [2]string{"reader", ""})}
	for name, c := range map[string]struct {
		after []schema.Type
		want  string // the relation of folder:1; empty: not possible
	}{
		"a type":                       {[]schema.Type{typ("paper", "doc", [2]string{"reader", ""}, [2]string{"editor", ""}), typ("area", "folder", [2]string{"reader", ""})}, "area:1#reader@user:ann"},
		"two types exchange names":     {[]schema.Type{typ("folder", "doc", [2]string{"reader", ""}, [2]string{"editor", ""}), typ("doc", "folder", [2]string{"reader", ""})}, "doc:1#reader@user:ann"},
		"a relation of one type":       {[]schema.Type{typ("doc", "", [2]string{"reader", ""}, [2]string{"x", "editor"}), typ("folder", "", [2]string{"reader", ""})}, "folder:1#reader@user:ann"},
		"a relation of all types":      {[]schema.Type{typ("doc", "", [2]string{"x", "reader"}, [2]string{"editor", ""}), typ("folder", "", [2]string{"x", "reader"})}, "folder:1#x@user:ann"},
		"a relation of one of two":     {[]schema.Type{typ("doc", "", [2]string{"reader", ""}, [2]string{"editor", ""}), typ("folder", "", [2]string{"x", "reader"})}, ""},
		"the name of another relation": {[]schema.Type{typ("doc", "", [2]string{"reader", ""}, [2]string{"editor", ""}), typ("folder", "", [2]string{"editor", "reader"})}, ""},
		"the name of a system type's":  {[]schema.Type{typ("doc", "", [2]string{"reader", ""}, [2]string{"viewer", "editor"}), typ("folder", "", [2]string{"reader", ""})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph.New()
			for _, stored := range []tuplestore.Tuple{tuple("doc", "1", "editor", "ann"), tuple("folder", "1", "reader", "ann")} {
				g.Add(tuplestore.Fact{Tuple: stored})
			}
			possible := names.Rename(g, compile(t, before...), compile(t, c.after...))
			if possible != (c.want != "") {
				t.Fatalf("possible: %v", possible)
			}
			want := c.want
			if !possible {
				want = "folder:1#reader@user:ann"
			}
			var found []string
			for id := range graph.ObjectID(3) {
				o := g.At(id)
				for i := range o.Edges() {
					relation, _ := o.Edge(i).Relation()
					found = append(found, fmt.Sprintf("%s#%s@user:ann", g.Object(id), g.Relations.Name(relation)))
				}
			}
			if !slices.Contains(found, want) {
				t.Errorf("%v, want %s", found, want)
			}
		})
	}
}
