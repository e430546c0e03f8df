package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"stonetown/engine"
	"stonetown/engine/enginetest"
	"stonetown/schema"
	"stonetown/tuplestore"
)

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
