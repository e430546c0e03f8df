package storetest

import (
	"errors"
	"fmt"
	"testing"

	"stonetown/tuplestore"
)

// Limits bounds a store's queues.
type Limits struct {
	PerResource int // queued writes to one resource
	PerTenant   int // queued writes of one tenant
}

// RunQueue tests that queues are bounded as configured. Writes in progress are not queued.
func RunQueue(t *testing.T, open func(t *testing.T, l Limits) tuplestore.Store) {
	for _, c := range []struct {
		promise  string
		limits   Limits
		resource func(i int) string // the resource of write i
		want     tuplestore.BusyError
	}{
		{
			"a burst on one resource is refused beyond its limit",
			Limits{3, 100},
			func(int) string { return "busy" },
			tuplestore.BusyError{Queue: "resource", Limit: 3},
		},
		{
			"writes of a tenant are refused beyond its limit",
			Limits{3, 5},
			func(i int) string { return fmt.Sprint(i) },
			tuplestore.BusyError{Queue: "tenant", Limit: 5},
		},
	} {
		t.Run(c.promise, func(t *testing.T) {
			const writes = 20
			f := newFixture(t, open(t, c.limits))
			release := f.hold()
			outcomes := make(chan outcome, writes)
			for i := range writes {
				go func() {
					result, err := f.store.Write(f.ctx, f.tenant, tuplestore.Write{Ops: creations(viewer(c.resource(i), fmt.Sprint(i)))})
					outcomes <- outcome{result, err}
				}()
			}
			// Refused writes return while the others are queued.
			for range writes - c.want.Limit {
				o := wait(f, "refused writes", outcomes)
				busy, ok := errors.AsType[*tuplestore.BusyError](o.err)
				if !ok || busy.Queue != c.want.Queue || busy.Limit != c.want.Limit {
					f.Fatalf("error %v, want %v", o.err, &c.want)
				}
				if busy.RetryAfter <= 0 {
					f.Errorf("to be tried again after %v", busy.RetryAfter)
				}
			}
			var other <-chan outcome
			if c.want.Queue == "resource" {
				other = f.start(f.ctx, tuplestore.Write{Ops: creations(viewer("other", "ann"))})
			}
			release()
			for range c.want.Limit {
				if o := wait(f, "accepted writes", outcomes); o.err != nil {
					f.Errorf("a write that had room: %v", o.err)
				}
			}
			if other != nil {
				if o := wait(f, "write of another resource", other); o.err != nil {
					f.Errorf("write of another resource: %v", o.err)
				}
			}
			head := f.head()
			f.apply(create(viewer(c.resource(0), "afterwards")))
			// held, the accepted, perhaps the other, and the one just written
			if n := len(f.scan(f.newest(), everything)); n != int(head.Revision)+1 || n < c.want.Limit+2 {
				f.Errorf("%d tuples exist after revision %d", n, head.Revision)
			}
		})
	}
}
