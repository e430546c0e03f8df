package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"stonetown/tuplestore"
)

// Collector is a store that collects history.
type Collector interface {
	tuplestore.Store
	Collect(ctx context.Context, before, receipts time.Time) error
	Expire(ctx context.Context, before time.Time) error
}

// RunCollection tests the collection of history: kept revisions are unchanged, and reads of
// collected ones fail. clock is the time of the store.
func RunCollection(t *testing.T, open func(t *testing.T, clock func() time.Time) Collector) {
	t.Run("expired tuples are deleted", func(t *testing.T) {
		store := open(t, time.Now)
		sweeps(newFixture(t, store), store)
	})
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprintf("kept revisions do not change, seed %d", seed), func(t *testing.T) {
			now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
			store := open(t, func() time.Time { return now })
			f := newFixture(t, store)
			g := generator{rand.New(rand.NewPCG(seed, 7))}
			states := []state{{records: map[tuplestore.Tuple]tuplestore.Record{}}} // by revision
			times := []time.Time{now}
			schemas := [][]byte{nil}
			keep := 0
			other := f.in("other")
			other.apply(creations(viewer("1", "ann"))...)
			for i := range 150 {
				now = now.Add(time.Duration(g.IntN(5)-1) * time.Second) // sometimes back
				write := g.write(fmt.Sprint("actor ", i))
				schema := schemas[len(schemas)-1]
				if g.IntN(10) == 0 {
					schema = fmt.Append(nil, "schema ", i)
					write = tuplestore.Write{PutSchema: schema}
				}
				write.CommitID = fmt.Sprint("commit ", i)
				after, _, _, _ := states[len(states)-1].apply(write)
				if write.PutSchema != nil {
					after = state{states[len(states)-1].rev + 1, after.records}
				}
				if _, err := f.store.Write(f.ctx, f.tenant, write); err != nil {
					continue
				}
				if after.rev > states[len(states)-1].rev {
					latest := now
					if last := times[len(times)-1]; now.Before(last) {
						latest = last
					}
					states, times, schemas = append(states, after), append(times, latest), append(schemas, schema)
				}
				if i%40 == 39 {
					keep = max(keep, 1+g.IntN(len(states)-1)) // collected revisions stay collected
					for keep+1 < len(times) && times[keep+1].Equal(times[keep]) {
						keep++
					}
					f.collect(store, times[keep].Add(time.Microsecond))
					f.kept(g, states, schemas, keep)
					f.revisionsAt(commitsOf(states, times), states[keep].rev)
				}
			}
			f.collect(store, now.Add(time.Hour))
			f.kept(g, states, schemas, len(states)-1)
			f.collect(store, now.Add(time.Hour)) // again
			f.kept(g, states, schemas, len(states)-1)
			if !other.exists(other.newest(), viewer("1", "ann")) {
				f.Error("another tenant lost its newest state")
			}
			// A commit ID whose receipt was deleted is new.
			before := f.head().Revision
			f.write(tuplestore.Write{CommitID: "commit 0", PutSchema: []byte("new")})
			if after := f.head().Revision; after != before+1 {
				f.Errorf("head %d after a write under a forgotten commit ID, want %d", after, before+1)
			}
		})
	}
}

// commitsOf returns the commits that led to the states after the first, without their changes.
func commitsOf(states []state, times []time.Time) (commits []tuplestore.Commit) {
	for i := 1; i < len(states); i++ {
		commits = append(commits, tuplestore.Commit{Revision: states[i].rev, At: times[i]})
	}
	return commits
}

// sweeps tests that expired tuples, and no others, are deleted as by any other write.
func sweeps(f *fixture, store Collector) {
	const some = 1200 // more than one write deletes
	at := func(n int64) time.Time { return time.UnixMicro(n) }
	var ops []tuplestore.Op
	for i := range some {
		ops = append(ops, createOn(tuplestore.Qualifier{ExpiresAt: int64(1 + i%3)}, viewer("old", fmt.Sprint(i))))
	}
	lasting, other := viewer("1", "ann"), f.in("other")
	ops = append(ops, create(lasting), createOn(tuplestore.Qualifier{ExpiresAt: 1}, viewer("1", "bob")))
	other.apply(ops...)
	before := f.apply(ops...).Revision
	f.apply(createOn(tuplestore.Qualifier{ExpiresAt: 4}, viewer("1", "bob"))) // its expiry is postponed
	then := f.scan(f.newest(), everything)
	if err := store.Expire(f.ctx, at(2)); err != nil {
		f.Fatal(err)
	}
	for _, f := range []*fixture{f, other} {
		for _, r := range f.scan(f.newest(), everything) {
			if r.ExpiresAt != 0 && r.ExpiresAt <= 2 {
				f.Fatalf("%+v is still there", r)
			}
		}
	}
	f.same("tuples left", some/3+2, len(f.scan(f.newest(), everything)))
	f.same("the past", then, f.scan(f.at(before+1), everything))
	if !f.exists(f.newest(), lasting) || !f.exists(f.newest(), viewer("1", "bob")) {
		f.Error("what had not expired is gone")
	}
	newest := f.head().Revision
	if err := store.Expire(f.ctx, at(2)); err != nil || f.head().Revision != newest {
		f.Errorf("nothing to do: revision %d after %d, %v", f.head().Revision, newest, err)
	}
}

func (f *fixture) collect(store Collector, before time.Time) {
	f.Helper()
	if err := store.Collect(f.ctx, before, before); err != nil {
		f.Fatal(err)
	}
}

// kept compares the kept revisions with the model, and requires that reads of the others
// fail.
func (f *fixture) kept(g generator, states []state, schemas [][]byte, floor int) {
	f.Helper()
	for i, s := range states {
		snapshot := f.at(s.rev)
		if i < floor {
			_, findErr := snapshot.Find(f.ctx, tuplestore.Lookup{Tuples: []tuplestore.Tuple{g.tuple()}})
			_, listErr := snapshot.List(f.ctx, everything, nil, 1)
			_, _, schemaErr := snapshot.Schema(f.ctx)
			_, changesErr := f.store.Changes(f.ctx, f.tenant, s.rev, 1000)
			for _, err := range []error{findErr, listErr, schemaErr, changesErr} {
				if !errors.Is(err, tuplestore.ErrRevisionCollected) {
					f.Fatalf("revision %d below the floor %d: %v", s.rev, floor, err)
				}
			}
			continue
		}
		g.compare(f, s)
		document, _, err := snapshot.Schema(f.ctx)
		if err != nil || string(document) != string(schemas[i]) {
			f.Fatalf("schema at revision %d is %q (error %v), want %q", s.rev, document, err, schemas[i])
		}
		if commits := f.changes(s.rev, 1000); len(commits) != len(states)-1-i {
			f.Fatalf("%d commits after revision %d, want %d", len(commits), s.rev, len(states)-1-i)
		}
	}
}
