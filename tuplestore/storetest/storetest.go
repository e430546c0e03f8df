// Package storetest is the conformance suite of [tuplestore.Store].
//
// [Run] tests the promises of the interface for one store, [RunQueue] the bounds of its
// queues, [RunCollection] the collection of history, [RunSQL] the transactions of a store
// on SQL, and [RunShared] two stores on one database. Each takes a function that opens a
// fresh store and calls it for every subtest; the name of a subtest is the promise that it
// tests. Histories are compared with a model that is simple enough to be obviously correct:
// a copy of the whole tenant at every revision.
package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// Run tests one kind of store. Its queues must have room for 100 writes.
func Run(t *testing.T, open func(t *testing.T) tuplestore.Store) {
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"Revisions", revisionCases},
		{"Ops", opCases},
		{"Large", largeCases},
		{"Qualifier", qualifierCases},
		{"Preconditions", preconditionCases},
		{"Others", otherCases},
		{"Schema", schemaCases},
		{"Replay", replayCases},
		{"Also", alsoCases},
		{"Snapshots", snapshotCases},
		{"Whole", wholeCases},
		{"Histories", historyCases},
		{"Ids", idCases},
		{"Concurrency", concurrencyCases},
		{"Loads", loadCases},
		{"Close", closeCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.promise, func(t *testing.T) {
					c.test(newFixture(t, open(t)))
				})
			}
		})
	}
}

// UnsteadyClock is the time for stores under test. It jumps back and forth by up to a second.
func UnsteadyClock() time.Time {
	return time.Now().Add(time.Duration(rand.Int64N(int64(2*time.Second))) - time.Second)
}

// testCase is a promise and its test.
type testCase struct {
	promise string
	test    func(*fixture)
}

// patience is the time after which a test, or an operation that waits, counts as blocked.
const patience = 2 * time.Minute

// fixture is a fresh store and a tenant of it, with the calls that most tests
// make. A call that fails ends the test.
type fixture struct {
	*testing.T
	ctx    context.Context
	store  tuplestore.Store
	tenant string
}

func newFixture(t *testing.T, store tuplestore.Store) *fixture {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(func() {
		cancel()
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &fixture{T: t, ctx: ctx, store: store, tenant: "tenant"}
}

// in returns the fixture for another tenant of the same store.
func (f *fixture) in(tenant string) *fixture {
	g := *f
	g.tenant = tenant
	return &g
}

func (f *fixture) write(w tuplestore.Write) tuplestore.Result {
	f.Helper()
	result, err := f.store.Write(f.ctx, f.tenant, w)
	if err != nil {
		f.Fatalf("write of %d operations, first %+v: %v", len(w.Ops), w.Ops[:min(len(w.Ops), 3)], err)
	}
	if len(result.Statuses) != len(w.Ops) || len(result.Counts) != len(w.Ops) {
		f.Fatalf("%d ops have %d statuses and %d counts", len(w.Ops), len(result.Statuses), len(result.Counts))
	}
	return result
}

// apply writes ops.
func (f *fixture) apply(ops ...tuplestore.Op) tuplestore.Result {
	f.Helper()
	return f.write(tuplestore.Write{Ops: ops})
}

// refuse writes w, which must fail and change nothing, and returns the error.
func (f *fixture) refuse(w tuplestore.Write) error {
	f.Helper()
	before := f.head()
	result, err := f.store.Write(f.ctx, f.tenant, w)
	if err == nil {
		f.Fatalf("write %+v succeeded: %+v", w, result)
	}
	if after := f.head(); after != before {
		f.Errorf("a refused write moved the head from %+v to %+v", before, after)
	}
	return err
}

// conflict writes w, which must be refused with a ConflictError.
func (f *fixture) conflict(w tuplestore.Write) tuplestore.ConflictError {
	f.Helper()
	err := f.refuse(w)
	conflict, ok := errors.AsType[*tuplestore.ConflictError](err)
	if !ok {
		f.Fatalf("error is %v, want a ConflictError", err)
	}
	return *conflict
}

func (f *fixture) head() tuplestore.Head {
	f.Helper()
	head, err := f.store.Head(f.ctx, f.tenant)
	if err != nil {
		f.Fatalf("head: %v", err)
	}
	return head
}

func (f *fixture) at(rev tuplestore.Revision) tuplestore.Snapshot {
	return f.store.Snapshot(f.tenant, rev)
}

func (f *fixture) newest() tuplestore.Snapshot {
	f.Helper()
	return f.at(f.head().Revision)
}

func (f *fixture) scan(s tuplestore.Snapshot, filter tuplestore.Filter) []tuplestore.Record {
	f.Helper()
	var records []tuplestore.Record
	for r, err := range s.Scan(f.ctx, filter) {
		if err != nil {
			f.Fatalf("scan %+v at revision %d: %v", filter, s.Revision(), err)
		}
		records = append(records, r)
	}
	return records
}

// list reads all records that match in pages of the given size.
func (f *fixture) list(s tuplestore.Snapshot, filter tuplestore.Filter, size int) []tuplestore.Record {
	f.Helper()
	var records []tuplestore.Record
	var after *tuplestore.Record
	for {
		page, err := s.List(f.ctx, filter, after, size)
		if err != nil {
			f.Fatalf("list %+v at revision %d: %v", filter, s.Revision(), err)
		}
		if len(page) > size {
			f.Fatalf("list %+v at revision %d: %d records on a page of %d", filter, s.Revision(), len(page), size)
		}
		if len(page) == 0 {
			return records
		}
		if after != nil && filter.Compare(*after, page[0]) >= 0 {
			f.Fatalf("list %+v at revision %d: the page after %v begins with %v", filter, s.Revision(), after.Tuple, page[0].Tuple)
		}
		records = append(records, page...)
		after = &page[len(page)-1]
	}
}

// page reads all records that match in pages of the newest revision.
func (f *fixture) page(filter tuplestore.Filter, limit, reads int) []tuplestore.Record {
	f.Helper()
	var records []tuplestore.Record
	var after *tuplestore.Record
	for {
		page, next, err := f.store.Page(f.ctx, f.tenant, filter, after, limit, reads)
		if err != nil || len(page) > limit {
			f.Fatalf("page of %+v: %d records, error %v", filter, len(page), err)
		}
		records = append(records, page...)
		if next == nil {
			return records
		}
		if after != nil && filter.Compare(*after, *next) >= 0 {
			f.Fatalf("page of %+v: the page after %v goes on after %v", filter, after.Tuple, next.Tuple)
		}
		after = next
	}
}

// find returns the result of Find in primary-key order.
func (f *fixture) find(s tuplestore.Snapshot, l tuplestore.Lookup) []tuplestore.Fact {
	f.Helper()
	found, err := s.Find(f.ctx, l)
	if err != nil {
		f.Fatalf("find at revision %d: %v", s.Revision(), err)
	}
	slices.SortFunc(found, compareFacts)
	return found
}

// findTuples is find without qualifiers.
func (f *fixture) findTuples(s tuplestore.Snapshot, l tuplestore.Lookup) []tuplestore.Tuple {
	f.Helper()
	var tuples []tuplestore.Tuple
	for _, fact := range f.find(s, l) {
		tuples = append(tuples, fact.Tuple)
	}
	return tuples
}

func (f *fixture) exists(s tuplestore.Snapshot, t tuplestore.Tuple) bool {
	f.Helper()
	return len(f.find(s, tuplestore.Lookup{Tuples: []tuplestore.Tuple{t}})) > 0
}

func (f *fixture) changes(after tuplestore.Revision, limit int) []tuplestore.Commit {
	f.Helper()
	commits, err := f.store.Changes(f.ctx, f.tenant, after, limit)
	if err != nil {
		f.Fatalf("changes after %d: %v", after, err)
	}
	return commits
}

// holds fails unless the tenant's newest tuples are exactly these.
func (f *fixture) holds(want ...tuplestore.Tuple) {
	f.Helper()
	var got []tuplestore.Tuple
	for _, r := range f.scan(f.newest(), everything) {
		got = append(got, r.Tuple)
	}
	f.same("tuples", sorted(want), got)
}

// same fails unless both are equal; an empty slice equals a nil one.
func (f *fixture) same(what string, want, got any) {
	f.Helper()
	if reflect.DeepEqual(want, got) {
		return // far cheaper
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		f.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// outcome is the outcome of one of many concurrent writes.
type outcome struct {
	result tuplestore.Result
	err    error
}

// start begins a write in another goroutine.
func (f *fixture) start(ctx context.Context, w tuplestore.Write) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		result, err := f.store.Write(ctx, f.tenant, w)
		done <- outcome{result, err}
	}()
	return done
}

// wait returns the value that c delivers.
func wait[T any](f *fixture, what string, c <-chan T) T {
	f.Helper()
	select {
	case v := <-c:
		return v
	case <-f.ctx.Done():
		f.Fatalf("%s: still waiting after %v", what, patience)
		panic("unreachable")
	}
}

// hold keeps the tenant's other writes in the queue until release is called, which returns
// when the holding write is done. It writes the presence of storetest:held.
func (f *fixture) hold() (release func()) {
	f.Helper()
	entered, released := make(chan struct{}), make(chan struct{})
	var once, onlyOnce sync.Once
	let := func() { onlyOnce.Do(func() { close(released) }) }
	f.Cleanup(let) // also when the test fails before it releases
	done := f.start(f.ctx, tuplestore.Write{
		Ops: []tuplestore.Op{create(held)},
		Also: func(context.Context, *sqldb.Tx) error {
			once.Do(func() { close(entered) })
			<-released
			return nil
		},
	})
	wait(f, "holding write", entered)
	return func() {
		f.Helper()
		settle()
		let()
		if o := wait(f, "holding write", done); o.err != nil {
			f.Fatalf("holding write: %v", o.err)
		}
	}
}

// settle gives started writes the time to be queued. No outcome depends on it, but whether
// a test covers its case does.
func settle() { time.Sleep(20 * time.Millisecond) }

var held = presence("storetest", "held")
