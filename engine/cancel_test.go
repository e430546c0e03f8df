package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"stonetown/engine"
	"stonetown/tuplestore"
)

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
