package enginetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/storetest"
)

// During the collection of history, checks, later pages and watches are correct, or fail
// with an error that names the collected history.
func TestCollection(t *testing.T) {
	everywhere(t, func(t *testing.T, e *engine.Engine, s tuplestore.Store) {
		collector, ok := s.(storetest.Collector)
		if !ok {
			return // the store in memory collects nothing
		}
		ctx := t.Context()
		began := time.Now().Add(-time.Second)
		_, _, first, err := e.PutType(ctx, "t", schema.Type{Name: "document", Relations: []schema.Relation{{Name: "viewer"}}}, by)
		if err != nil {
			t.Fatal(err)
		}
		document := tuplestore.Object{Type: "document", ID: "d"}
		ann := tuplestore.Subject{Type: "user", ID: "ann"}
		view := engine.CheckRequest{Subject: ann, Queries: []engine.Query{{Resource: document, Action: "viewer"}}}
		check := func(want bool) {
			t.Helper()
			answer, err := e.Check(ctx, "t", view)
			if err != nil || answer.Decisions[0].Err != nil || answer.Decisions[0].Allowed != want {
				t.Fatalf("%+v, %v, want %t", answer, err, want)
			}
		}
		relate := func(e *engine.Engine, remove bool) string {
			t.Helper()
			response, err := e.Write(ctx, "t", engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{{Delete: remove, Resource: document, Relation: "viewer", Subject: ann}}})
			if err != nil {
				t.Fatal(err)
			}
			return response.Token
		}
		relate(e, false)
		check(true)
		if strings.HasSuffix(t.Name(), "/mapped") {
			awaitLoad(t, e) // a load that the collection interrupts is tried again much later
		}

		// The engine has not read the writes of another engine, and the changelog of them
		// is collected.
		other := newEngine(t, engine.Config{}, s)
		for range 20 {
			relate(other, true)
			relate(other, false)
		}
		relate(other, true)
		forget := func() {
			t.Helper()
			if err := collector.Collect(ctx, time.Now().Add(time.Hour), time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
		}
		forget()
		check(false)

		// A decision that is older than the history has the relations that prove it.
		since := time.Now()
		relate(other, false)
		forget()
		history, err := e.CheckHistory(ctx, "t", engine.HistoryRequest{Subject: ann, Query: view.Queries[0], Limit: 10})
		if err != nil || !history.Collected || len(history.Changes) > 0 || len(history.Proof) != 1 {
			t.Fatalf("history of an old decision: %+v, %v", history, err)
		}
		if r := history.Proof[0]; r.Object != document || r.Subject != ann || r.CreatedBy != by.Actor || r.CreatedAt.Before(since.Truncate(time.Millisecond)) {
			t.Errorf("proof of an old decision: %+v", r)
		}
		last := relate(other, true)
		forget()
		check(false)

		exactly := engine.Consistency{Mode: engine.Exactly, Token: first}
		_, err = e.ListResources(ctx, "t", engine.ListResourcesRequest{Subject: ann, Type: "document", Action: "viewer", Consistency: exactly})
		if !errors.Is(err, engine.ErrTokenExpired) {
			t.Errorf("a list at a revision that is gone: %v", err)
		}
		var past *engine.PastError
		for _, c := range []engine.Consistency{{Token: first}, {Instant: began}} {
			c.Mode = engine.AsOf
			_, err = e.ListResources(ctx, "t", engine.ListResourcesRequest{Subject: ann, Type: "document", Action: "viewer", Consistency: c})
			if !errors.Is(err, engine.ErrTokenExpired) || !errors.As(err, &past) {
				t.Errorf("a list as of %+v, which is gone: %v", c, err)
			}
		}
		err = e.Watch(ctx, "t", engine.WatchRequest{After: first}, func(engine.WatchEvent) error { return nil })
		if !errors.Is(err, engine.ErrTokenExpired) {
			t.Errorf("a watch from a revision that is gone: %v", err)
		}
		view.Consistency = engine.Consistency{Mode: engine.AtLeast, Token: first}
		check(false) // a newer state suffices
		exactly.Token = last
		list, err := e.ListResources(ctx, "t", engine.ListResourcesRequest{Subject: ann, Type: "document", Action: "viewer", Consistency: exactly})
		if err != nil || len(list.IDs) != 0 {
			t.Errorf("a list at the newest revision: %+v, %v", list, err)
		}

		// Collection, writes and requests concurrently.
		view.Consistency = engine.Consistency{}
		stop, cancel := context.WithTimeout(ctx, 2*time.Second)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() {
			for stop.Err() == nil {
				forget()
			}
		})
		seen := make(chan error, 1)
		go func() {
			n := 0
			err := e.Watch(stop, "t", engine.WatchRequest{}, func(engine.WatchEvent) error { n++; return nil })
			if n < 2 {
				err = fmt.Errorf("%d events, %w", n, err)
			}
			seen <- err
		}()
		for stop.Err() == nil {
			relate(other, false)
			check(true)
			relate(other, true)
			check(false)
		}
		wg.Wait()
		if err := <-seen; !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, engine.ErrTokenExpired) {
			t.Errorf("the watch ended: %v", err)
		}
	})
}
