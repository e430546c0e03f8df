package idempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// clock is a time that tests set.
type clock struct{ µs atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMicro(c.µs.Load()) }
func (c *clock) advance(d time.Duration) { c.µs.Add(d.Microseconds()) }

// everywhere runs a test on every database; open gives a store on it, as another
// process would have.
func everywhere(t *testing.T, test func(t *testing.T, c *clock, open func() *Store)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(t.Context(), Migrations()); err != nil {
				t.Fatal(err)
			}
			key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
			if err != nil {
				t.Fatal(err)
			}
			c := new(clock)
			c.µs.Store(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).UnixMicro())
			test(t, c, func() *Store {
				s, err := New(Config{DB: db, Seal: key, Clock: c.now, Lease: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				return s
			})
		})
	}
}

func request(scope, body string) Request {
	return Request{Tenant: "tnt_a", Scope: sha256.Sum256([]byte(scope)), Hash: sha256.Sum256([]byte(body))}
}

var answer = Response{Status: 201, Header: map[string][]string{"Location": {"/x"}}, Body: []byte(`{"secret":"cs_1"}`)}

func claim(t *testing.T, s *Store, r Request) *Claim {
	t.Helper()
	c, again, err := s.Claim(t.Context(), r)
	if err != nil || again != nil || c == nil || c.CommitID == "" {
		t.Fatalf("claim: %v, %v, %v", c, again, err)
	}
	return c
}

func TestLifeOfAKey(t *testing.T) {
	everywhere(t, func(t *testing.T, clock *clock, open func() *Store) {
		s := open()
		r := request("ann POST /x key", "body")
		first := claim(t, s, r)
		if _, _, err := open().Claim(t.Context(), r); !errors.Is(err, ErrInProgress) {
			t.Errorf("while it is under way: %v", err)
		}
		if _, _, err := s.Claim(t.Context(), request("ann POST /x key", "other")); !errors.Is(err, ErrReused) {
			t.Errorf("another body: %v", err)
		}
		claim(t, s, request("bob POST /x key", "body")) // another scope
		elsewhere := r
		elsewhere.Tenant = "tnt_b"
		claim(t, s, elsewhere)

		if err := first.Complete(t.Context(), answer); err != nil {
			t.Fatal(err)
		}
		_, again, err := open().Claim(t.Context(), r)
		if err != nil || again == nil || !reflect.DeepEqual(*again, answer) {
			t.Errorf("replay: %+v, %v", again, err)
		}
		if _, _, err := s.Claim(t.Context(), request("ann POST /x key", "other")); !errors.Is(err, ErrReused) {
			t.Errorf("another body after the response: %v", err)
		}
		var stored []byte
		if err := s.db.QueryRow(t.Context(), `SELECT response FROM idempotency_keys WHERE status <> 0`).Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(stored, []byte("cs_1")) {
			t.Error("the response is stored in clear")
		}

		clock.advance(Window - time.Second)
		if _, again, err := s.Claim(t.Context(), r); err != nil || again == nil {
			t.Errorf("just before its time is over: %v, %v", again, err)
		}
		clock.advance(time.Second)
		if fresh := claim(t, s, request("ann POST /x key", "other")); fresh.CommitID == first.CommitID {
			t.Error("a new life has the old commit id")
		}
	})
}

// A claim that passes from a holder that died or released it keeps its commit id.
func TestTakingOver(t *testing.T) {
	everywhere(t, func(t *testing.T, clock *clock, open func() *Store) {
		s := open()
		r := request("scope", "body")
		dead := claim(t, s, r)
		clock.advance(time.Minute)
		heir := claim(t, s, r)
		if heir.CommitID != dead.CommitID {
			t.Error("the commit id changed")
		}
		if err := dead.Complete(t.Context(), Response{Status: 500}); err != nil { // it was only slow
			t.Fatal(err)
		}
		if _, _, err := s.Claim(t.Context(), r); !errors.Is(err, ErrInProgress) {
			t.Errorf("after the first holder came back: %v", err)
		}
		if err := heir.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := claim(t, s, r)
		if next.CommitID != dead.CommitID {
			t.Error("the commit id changed")
		}
		if err := next.Complete(t.Context(), answer); err != nil {
			t.Fatal(err)
		}
	})
}

// Of fifty that race for a key, in two processes, one gets it.
func TestRace(t *testing.T) {
	everywhere(t, func(t *testing.T, clock *clock, open func() *Store) {
		stores := []*Store{open(), open()}
		for round := range 5 {
			r := request(fmt.Sprint("scope", round), "body")
			race := func() (won int64, commitID string) {
				var n atomic.Int64
				var winner atomic.Pointer[Claim]
				var wg sync.WaitGroup
				for i := range 50 {
					wg.Go(func() {
						c, _, err := stores[i%2].Claim(context.Background(), r)
						switch {
						case err == nil && c != nil:
							n.Add(1)
							winner.Store(c)
						case !errors.Is(err, ErrInProgress):
							t.Errorf("%v", err)
						}
					})
				}
				wg.Wait()
				if winner.Load() == nil {
					t.Fatal("no request got the claim")
				}
				return n.Load(), winner.Load().CommitID
			}
			won, first := race()
			clock.advance(time.Minute)
			again, second := race()
			if won != 1 || again != 1 || first != second {
				t.Errorf("%d and %d claims, commit ids %s and %s", won, again, first, second)
			}
		}
	})
}

func TestCollect(t *testing.T) {
	everywhere(t, func(t *testing.T, clock *clock, open func() *Store) {
		s := open()
		for i := range 3 * collectAtOnce / 2 {
			r := request(fmt.Sprint(i), "body")
			r.Scope[0] = 0 // all in one shard
			claim(t, s, r)
		}
		clock.advance(time.Hour)
		claim(t, s, request("late", "body"))
		clock.advance(Window - time.Hour)
		if err := s.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := s.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM idempotency_keys`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left != 1 {
			t.Errorf("%d keys are left, want 1", left)
		}
	})
}
