package sqlstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/readlease"
)

// knower writes through a store, and knows which relations of doc:OBJECT to ann exist.
type knower struct {
	*testing.T
	store  *Store
	exists map[string]bool
	at     tuplestore.Result // since when
}

// write changes a relation, and returns the error.
func (k *knower) write(op tuplestore.Op) error {
	k.Helper()
	w := tuplestore.Write{Ops: []tuplestore.Op{op}}
	if k.at.Epoch != "" {
		w.Known = &tuplestore.Known{Epoch: k.at.Epoch, Revision: k.at.Revision}
		if object := op.Tuple.Object.ID; k.exists[object] {
			w.Known.Facts = append(w.Known.Facts, tuplestore.Fact{Tuple: op.Tuple})
		}
	}
	result, err := k.store.Write(k.Context(), "t", w)
	if err == nil {
		k.at = result
		k.exists[op.Tuple.Object.ID] = op.Kind == tuplestore.Create
	}
	return err
}

func (k *knower) must(op tuplestore.Op) {
	k.Helper()
	if err := k.write(op); err != nil {
		k.Fatalf("%+v: %v", op, err)
	}
}

func newKnower(t *testing.T, s *Store) *knower {
	return &knower{T: t, store: s, exists: map[string]bool{}}
}

// A write whose caller knows what exists takes one round trip.
func TestKnownRoundTrips(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		k := newKnower(t, open(t, Config{DB: db}))
		k.must(op(tuplestore.Create, "0"))
		for i := range 3 { // the statements are prepared
			k.must(op(tuplestore.Create, fmt.Sprint("prepared ", i)))
			k.must(op(tuplestore.Delete, fmt.Sprint("prepared ", i)))
		}
		before, known := db.Stats().RoundTrips, k.store.asKnown.Load()
		for i := range 10 {
			k.must(op(tuplestore.Create, fmt.Sprint(i%5)))
			k.must(op(tuplestore.Delete, fmt.Sprint(i%5)))
		}
		trips, writes := db.Stats().RoundTrips-before, int64(20)
		if db.Dialect() == sqldb.SQLite {
			writes = 0 // SQLite has none
		}
		// doc:0 exists: to create it changes nothing, which takes a read more.
		if n := k.store.asKnown.Load() - known; n != 19 || trips > writes+5 {
			t.Errorf("%d round trips, %d of 20 writes were committed as known", trips, n)
		}
		if err := k.write(op(tuplestore.Delete, "none")); err == nil {
			t.Error("a relation was deleted that does not exist")
		}
	})
}

// What a caller knows is brought forward over the commits that other callers have made since.
func TestKnownIsBroughtForward(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url)})
		first := newKnower(t, s)
		first.must(op(tuplestore.Create, "1"))
		second := newKnower(t, s)
		second.at, second.exists["1"] = first.at, true

		second.must(op(tuplestore.Delete, "1"))
		second.must(op(tuplestore.Create, "2"))
		if err := first.write(op(tuplestore.Delete, "1")); err == nil {
			t.Error("a relation was deleted twice")
		}
		if err := first.write(op(tuplestore.CreateNew, "2")); err == nil {
			t.Error("a relation was created twice")
		}
		first.must(op(tuplestore.Delete, "2"))
		first.exists["1"] = false
		first.must(op(tuplestore.Create, "1"))
		if n := s.asKnown.Load(); n != 4 {
			t.Errorf("%d of 4 writes were committed as known", n)
		}
	})
}

// Where another process writes, too, what a process knows is not used for ever more groups, and
// does not decide a write.
func TestKnownBesideAnotherProcess(t *testing.T) {
	url := pgtest.URL(t)
	db := openDB(t, url)
	k, other := newKnower(t, open(t, Config{DB: db})), open(t, Config{DB: openDB(t, url)})
	k.must(op(tuplestore.Create, "1"))
	refused := 0
	const writes = 400
	for i := range writes {
		// The other store deletes a relation of which this one knows that it exists.
		k.must(op(tuplestore.Create, "1"))
		pause := pauseOf(k.store)
		w := tuplestore.Write{Ops: []tuplestore.Op{op(tuplestore.Delete, "1")}}
		if _, err := other.Write(t.Context(), "t", w); err != nil {
			t.Fatal(err)
		}
		if i%2 > 0 {
			if k.write(op(tuplestore.Delete, "1")) == nil {
				t.Fatal("a relation was deleted that another process had deleted")
			}
		} else if k.must(op(tuplestore.Create, "2")); i%4 > 0 {
			k.must(op(tuplestore.Delete, "2"))
		}
		if pauseOf(k.store) > pause {
			refused++
		}
	}
	if refused < 2 || refused > 10 {
		t.Errorf("of %d writes beside those of another process, %d were refused by the guard, want a few", writes, refused)
	}
}

func pauseOf(s *Store) int {
	s.recent.mu.Lock()
	defer s.recent.mu.Unlock()
	if t := s.recent.tenants["t"]; t != nil {
		return t.pause
	}
	return 0
}

// revoker counts the revocations that holders are told of.
type revoker struct {
	mu      sync.Mutex
	revoked int
}

func (r *revoker) Revoke(context.Context, Holder, string, readlease.RevocationID) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revoked++
	return true, nil
}

func (r *revoker) Release(Holder, string, readlease.RevocationID, tuplestore.Revision) {}

// A read lease that another process acquires after the last write is revoked by the next one,
// whatever its caller knows.
func TestKnownRevokesLeases(t *testing.T) {
	url := pgtest.URL(t)
	db := openDB(t, url)
	told := new(revoker)
	k := newKnower(t, open(t, Config{DB: db, Leases: told}))
	k.must(op(tuplestore.Create, "1"))
	k.must(op(tuplestore.Create, "2"))
	leases := LeaseRows{DB: db}
	if err := leases.Register(t.Context(), Holder{Node: "n", Address: "a", Lease: time.Minute}, ""); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := leases.Acquire(t.Context(), "t", "n"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for i := range 3 {
		k.must(op(tuplestore.Create, fmt.Sprint("under a lease ", i)))
		if told.revoked != i+1 {
			t.Errorf("%d revocations after %d writes", told.revoked, i+1)
		}
	}
	if n := k.store.asKnown.Load(); n != 1 {
		t.Errorf("%d writes were committed as known, want the one before the lease", n)
	}
}
