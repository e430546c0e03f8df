package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	createNumbers = `CREATE TABLE numbers (n BIGINT NOT NULL CHECK (n >= 0))`
	insertNumber  = `INSERT INTO numbers (n) VALUES ($1)`
	selectNumbers = `SELECT n FROM numbers ORDER BY n`

	timeout = 10 * time.Second
	bad     = -1 // a change that no transaction can commit
)

// world commits numbers to a table. Its transactions can be replaced.
type world struct {
	*Committer[int]
	t  *testing.T
	db *sqldb.DB // nil: nothing is stored
	// tx runs the n-th transaction, from 1; nil: it commits.
	tx func(ctx context.Context, n int, commit func() error) error

	mu           sync.Mutex
	transactions int
	groups       [][]int // that were queued
}

func newWorld(t *testing.T, db *sqldb.DB) *world {
	w := &world{t: t, db: db}
	w.Committer = New(db, timeout, func(b *sqldb.Batch, changes []int) {
		w.mu.Lock()
		w.groups = append(w.groups, changes)
		w.mu.Unlock()
		for _, n := range changes {
			b.Queue(insertNumber, []any{int64(n)}, nil)
		}
	})
	w.Committer.db = w
	return w
}

// Tx implements transactor.
func (w *world) Tx(ctx context.Context, fn func(*sqldb.Tx) error) error {
	w.mu.Lock()
	w.transactions++
	n := w.transactions
	w.mu.Unlock()
	commit := func() error {
		if w.db == nil {
			return nil
		}
		return w.db.Tx(ctx, fn)
	}
	if w.tx == nil {
		return commit()
	}
	return w.tx(ctx, n, commit)
}

// ReadCommitted implements transactor.
func (w *world) ReadCommitted(ctx context.Context, first, last func(*sqldb.Batch)) error {
	return w.db.ReadCommitted(ctx, first, last)
}

// commitBehind commits changes that arrive one after another during the first transaction,
// which commits the number 0. It returns the error of each change.
func (w *world) commitBehind(changes ...int) []error {
	w.t.Helper()
	tx, release, begun := w.tx, make(chan struct{}), make(chan struct{})
	w.tx = func(ctx context.Context, n int, commit func() error) error {
		switch {
		case n == 1:
			close(begun)
			<-release
			return commit()
		case tx != nil:
			return tx(ctx, n, commit)
		}
		return commit()
	}
	var calls sync.WaitGroup
	calls.Go(func() {
		if err := w.Commit(w.t.Context(), 0); err != nil {
			w.t.Errorf("the first change: %v", err)
		}
	})
	<-begun
	errs := make([]error, len(changes))
	for i, n := range changes {
		calls.Go(func() { errs[i] = w.Commit(w.t.Context(), n) })
		for waits := 0; waits <= i; time.Sleep(time.Microsecond) {
			w.Committer.mu.Lock()
			waits = len(w.waiting)
			w.Committer.mu.Unlock()
		}
	}
	close(release)
	calls.Wait()
	return errs
}

// stored returns the numbers of the table.
func stored(t *testing.T, db *sqldb.DB) (found []int) {
	t.Helper()
	rows, err := db.Query(t.Context(), selectNumbers)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		found = append(found, int(n))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// sequence returns the numbers below n.
func sequence(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func openDB(t *testing.T, url string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// everywhere runs a test on every kind of database.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t, url(t))
			if _, err := db.Exec(t.Context(), createNumbers); err != nil {
				t.Fatal(err)
			}
			test(t, newWorld(t, db))
		})
	}
}

// Changes that arrive during a commit are committed by the next one, in their order and up to a
// number.
func TestSharedCommits(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const n = maxGroup + 20
		all := sequence(1 + n)
		if err := errors.Join(w.commitBehind(all[1:]...)...); err != nil {
			t.Fatal(err)
		}
		want := [][]int{{0}, all[1 : 1+maxGroup], all[1+maxGroup:]}
		if !slices.EqualFunc(w.groups, want, slices.Equal) {
			t.Errorf("groups: %v", w.groups)
		}
		if got := stored(t, w.db); !slices.Equal(got, all) {
			t.Errorf("stored: %v", got)
		}
		if err := w.Commit(t.Context(), n+1); err != nil || w.transactions != 4 {
			t.Errorf("afterwards: %v, %d transactions", err, w.transactions)
		}
	})
}

// A change that turns out to be void has no effect, also not on the others of its group.
func TestVoidChanges(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		type change struct {
			n    int64
			void bool
		}
		if _, err := w.db.Exec(t.Context(), `CREATE TABLE once (n BIGINT PRIMARY KEY, used BOOLEAN NOT NULL)`); err != nil {
			t.Fatal(err)
		}
		for n := range int64(20) {
			if _, err := w.db.Exec(t.Context(), `INSERT INTO once (n, used) VALUES ($1, FALSE)`, n); err != nil {
				t.Fatal(err)
			}
		}
		committer := NewReadCommitted(w.db, timeout, func(b *sqldb.Batch, changes []*change) {
			for _, c := range changes {
				b.Queue(`UPDATE once SET used = TRUE WHERE n = $1 AND NOT used RETURNING 1`, []any{c.n}, func(rows *sqldb.Rows) error {
					c.void = !rows.Next()
					return rows.Err()
				})
			}
		}, func(b *sqldb.Batch, changes []*change) {
			for _, c := range changes {
				if !c.void {
					b.Queue(insertNumber, []any{c.n}, nil)
				}
			}
		})
		var calls sync.WaitGroup
		var void atomic.Int64
		for i := range int64(60) {
			calls.Go(func() {
				c := &change{n: i % 20}
				if err := committer.Commit(t.Context(), c); err != nil {
					t.Error(err)
				} else if c.void {
					void.Add(1)
				}
			})
		}
		calls.Wait()
		if got := stored(t, w.db); !slices.Equal(got, sequence(20)) || void.Load() != 40 {
			t.Errorf("stored: %v, %d void changes", got, void.Load())
		}
	})
}

// A change that cannot be committed fails alone.
func TestOneFails(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		changes := []int{1, 2, bad, 3, 4}
		for i, err := range w.commitBehind(changes...) {
			if (err != nil) != (changes[i] == bad) {
				t.Errorf("change %d: %v", changes[i], err)
			}
		}
		if got := stored(t, w.db); !slices.Equal(got, sequence(5)) {
			t.Errorf("stored: %v", got)
		}
		before := w.transactions
		if err := w.Commit(t.Context(), bad); err == nil || w.transactions != before+1 {
			t.Errorf("a group of one: %v, after %d transactions", err, w.transactions-before)
		}
	})
}

// A group whose commit has an unknown outcome is not repeated: it may have been applied.
func TestAmbiguousCommit(t *testing.T) {
	for name, cause := range map[string]error{"dropped": io.ErrUnexpectedEOF, "reported": &pgconn.PgError{Code: "40003"}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				w.tx = func(_ context.Context, n int, commit func() error) error {
					if err := commit(); err != nil || n != 2 {
						return err
					}
					return &sqldb.AmbiguousCommitError{Err: cause} // it was applied
				}
				for _, err := range w.commitBehind(1, 2, 3) {
					if !isAmbiguous(err) {
						t.Error(err)
					}
				}
				if got := stored(t, w.db); !slices.Equal(got, sequence(4)) {
					t.Errorf("stored: %v", got)
				}
			})
		})
	}
}

// A group whose connection broke before the commit is repeated once, and not change by change.
func TestUnavailable(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.tx = func(_ context.Context, n int, commit func() error) error {
			if n == 2 {
				return io.ErrUnexpectedEOF
			}
			return commit()
		}
		if err := errors.Join(w.commitBehind(1, 2, 3)...); err != nil || w.transactions != 3 {
			t.Errorf("%v after %d transactions", err, w.transactions)
		}
		if got := stored(t, w.db); !slices.Equal(got, sequence(4)) {
			t.Errorf("stored: %v", got)
		}
	})
}

// If the database fails whatever the changes are, they are not committed one at a time.
func TestDatabaseFails(t *testing.T) {
	for cause, transactions := range map[error]int{io.ErrUnexpectedEOF: 3, &pgconn.PgError{Code: "53100"}: 2} {
		w := newWorld(t, nil)
		w.tx = func(context.Context, int, func() error) error { return cause }
		for _, err := range w.commitBehind(1, 2, 3) {
			if !errors.Is(err, cause) {
				t.Error(err)
			}
		}
		if w.transactions != transactions {
			t.Errorf("%v: %d transactions", cause, w.transactions)
		}
	}
}

// A database that does not respond delays all changes of a group by one timeout.
func TestStalled(t *testing.T) {
	for name, c := range map[string]struct {
		of           error // of the transaction with the group; nil: it stalls
		transactions int
	}{
		"the group":                 {nil, 2},
		"the changes one at a time": {errors.New("a change cannot be committed"), 2 + 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.tx = func(ctx context.Context, n int, _ func() error) error {
					if n == 2 && c.of != nil {
						return c.of
					}
					<-ctx.Done()
					return fmt.Errorf("write: %w", ctx.Err())
				}
				began := time.Now()
				for _, err := range w.commitBehind(sequence(100)...) {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
				if took := time.Since(began).Round(time.Second); took != timeout || w.transactions != c.transactions {
					t.Errorf("%d transactions, %v", w.transactions, took)
				}
			})
		})
	}
}

// A caller whose context ends does not wait, and other changes are committed.
func TestCanceled(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.tx = func(ctx context.Context, _ int, commit func() error) error {
			if ctx.Err() != nil {
				t.Error("the transaction ends with the context of a caller")
			}
			return commit()
		}
		if err := w.Commit(ctx, 1); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := w.Commit(t.Context(), 2); err != nil {
			t.Error(err)
		}
		if got := stored(t, w.db); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("stored: %v", got)
		}
	})
}

// However connections break, no change is stored twice, and what is stored is what the callers
// were told.
func TestFaults(t *testing.T) {
	url := pgtest.URL(t)
	direct := openDB(t, url)
	if _, err := direct.Exec(t.Context(), createNumbers); err != nil {
		t.Fatal(err)
	}
	proxy := pgtest.NewFaulty(t, url)
	proxy.Delay = 20 * time.Millisecond
	w := newWorld(t, openDB(t, proxy.URL))
	proxy.Randomly(rand.New(rand.NewPCG(1, 2)), 0.2, pgtest.CommitFaults, pgtest.AnyFaults)
	const callers, each = 8, 40
	errs := make([]error, callers*each)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				n := caller*each + i
				errs[n] = w.Commit(t.Context(), n)
			}
		})
	}
	wg.Wait()
	proxy.Heal()
	time.Sleep(5 * proxy.Delay) // delayed commits have arrived
	times := map[int]int{}
	for _, n := range stored(t, direct) {
		times[n]++
	}
	failed, ambiguous := 0, 0
	for n, err := range errs {
		switch {
		case err == nil && times[n] != 1, isAmbiguous(err) && times[n] > 1, err != nil && !isAmbiguous(err) && times[n] != 0:
			t.Errorf("%d is stored %d times: %v", n, times[n], err)
		case isAmbiguous(err):
			ambiguous++
		case err != nil:
			failed++
		}
	}
	t.Logf("%d changes in %d transactions; %d failed, %d with an unknown outcome; faults: %v", len(errs), w.transactions, failed, ambiguous, proxy.Injected())
	if ambiguous == 0 || w.transactions >= len(errs) {
		t.Error("the faults do not suffice")
	}
}
