package idempotency

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

var (
	faultSeed = flag.Uint64("fault-seed", 0, "seed of the faults; 0 draws one")
	faultKeys = flag.Int("fault-keys", 30, "how many keys are used while things go wrong")
)

// Whatever happens to the connections, no two requests under one key do the work,
// and a response that was stored is the one that all get.
func TestFaults(t *testing.T) {
	url := pgtest.URL(t)
	line := pgtest.NewFaulty(t, url)
	line.Delay = 30 * time.Millisecond
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: line.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context(), Migrations()); err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{DB: db, Seal: key, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	seed := *faultSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	line.Randomly(rand.New(rand.NewPCG(seed, 0)), 0.2, pgtest.CommitFaults, pgtest.AnyFaults)
	const requests = 6
	keys := *faultKeys
	done, stored := make([]atomic.Int64, keys), make([]atomic.Int64, keys)
	var wg sync.WaitGroup
	for k := range keys {
		r := request(fmt.Sprint("key ", k), "body")
		for i := range requests {
			wg.Go(func() {
				claim, again, err := s.Claim(t.Context(), r)
				switch {
				case err != nil: // in progress, or the database was out of reach
				case again != nil:
					if string(again.Body) != fmt.Sprint(k) {
						t.Errorf("key %d was answered %s", k, again.Body)
					}
				default:
					done[k].Add(1)
					time.Sleep(time.Duration(i) * time.Millisecond)
					if claim.Complete(t.Context(), Response{Status: 200, Body: fmt.Append(nil, k)}) == nil {
						stored[k].Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	line.Heal()
	completed := 0
	for k := range keys {
		if n := done[k].Load(); n > 1 {
			t.Errorf("key %d: done %d times", k, n)
		}
		claim, again, err := s.Claim(t.Context(), request(fmt.Sprint("key ", k), "body"))
		switch {
		case stored[k].Load() > 0:
			completed++
			if again == nil || string(again.Body) != fmt.Sprint(k) {
				t.Errorf("key %d: a stored response is gone: %v, %v", k, again, err)
			}
		case claim != nil && done[k].Load() > 0:
			t.Errorf("key %d is free again, although the work was done", k)
		case claim == nil && again == nil && !errors.Is(err, ErrInProgress):
			t.Errorf("key %d: %v", k, err)
		}
	}
	t.Logf("%s; %d of %d keys completed", line, completed, keys)
	if completed < keys/3 || len(line.Injected()) < 3 {
		t.Error("this shows too little")
	}
	if t.Failed() {
		t.Logf("repeat with -fault-seed=%d", seed)
	}
}
