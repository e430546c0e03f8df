package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"stonetown/engine"
)

// Writes to a tenant, and checks that reflect them, do not wait for a heavy request of the same
// tenant that is in progress.
func TestHeavyRequestsDelayNoWrites(t *testing.T) {
	w := newFixture(t, engine.Config{MaxVisits: 1 << 40})
	heavy := endless(t, w.engine, tenant)
	becomeResident(t, w.engine, tenant)
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := w.engine.Check(&polled{Context: ctx, began: began}, tenant, heavy)
		ended <- err
	}()
	<-began
	for i := range 20 {
		doc := fmt.Sprintf("doc:new%d", i)
		w.write(doc + "#viewer@user:ann")
		if _, allowed := ask(t, w.engine, request("user:ann", "viewer", doc)); !allowed {
			t.Errorf("%s: denied after the write", doc)
		}
		select {
		case err := <-ended:
			t.Fatalf("the heavy check ended (%v) before %d writes", err, i+1)
		default:
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the heavy check: %v", err)
	}
}

// polled is a context that reports when it has been asked for its error more often than a light
// attempt does.
type polled struct {
	context.Context
	calls atomic.Int64
	began chan struct{}
}

func (p *polled) Err() error {
	if p.calls.Add(1) == 200 {
		close(p.began)
	}
	return p.Context.Err()
}

// Lists that take a heavy attempt reflect one revision each while resources move: each revision
// has the same number of them.
func TestHeavyListsReflectOneRevision(t *testing.T) {
	const count = 6000 // takes more steps than a light attempt has
	w := newFixture(t, engine.Config{})
	w.define(drive)
	w.write("folder:f#viewer@user:ann", "folder:f#viewer@user:bob")
	w.writeMany(count, func(i int) []string { return []string{fmt.Sprintf("document:%d#parent@folder:f", i)} })
	w.waitResident(request("user:ann", "view", "document:1"))
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for writer := range 2 {
		writers.Go(func() {
			for i := writer; ; i += 2 {
				select {
				case <-stop:
					return
				default:
				}
				gone := op(t, fmt.Sprintf("document:%d#parent@folder:f", i))
				gone.Delete = true
				ops := []engine.WriteOp{gone, op(t, fmt.Sprintf("document:%d#parent@folder:f", count+i))}
				if _, err := w.engine.Write(context.Background(), tenant, engine.WriteRequest{Ops: ops}); err != nil {
					t.Error(err)
					return
				}
				if _, allowed := ask(t, w.engine, request("user:bob", "view", fmt.Sprintf("document:%d", count+i))); !allowed {
					t.Errorf("document %d: denied after the write", count+i)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for range 15 {
				ids, err := listResources(w, "user:ann", nil)
				if err != nil || len(ids) != count {
					t.Errorf("%d documents, %v; every revision has %d", len(ids), err, count)
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writers.Wait()
}
