package sqldb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/pgtest"
)

// heard collects the notices of a topic. It is safe for concurrent use.
type heard struct {
	mu   sync.Mutex
	keys []string
}

func listen(db *DB, topic string) *heard {
	h := new(heard)
	db.OnNotice(topic, func(key string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.keys = append(h.keys, key)
	})
	return h
}

// want compares the notices since the last call.
func (h *heard) want(t *testing.T, what string, keys ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff(keys, h.keys); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
	h.keys = nil
}

// insertion returns a batch that inserts an account and notifies of keys.
func insertion(name string, keys ...string) *Batch {
	b := new(Batch)
	b.Queue(`INSERT INTO accounts (name, balance) VALUES ($1, 0)`, []any{name}, nil)
	for _, key := range keys {
		b.Notify("topic", key)
	}
	return b
}

func TestNotices(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		ctx := t.Context()
		tx := func(fails error, batches ...*Batch) error {
			return db.Tx(ctx, func(tx *Tx) error {
				for _, b := range batches {
					if err := tx.Send(ctx, b); err != nil {
						return err
					}
				}
				return fails
			})
		}
		if err := tx(nil, insertion("unheard", "k")); err != nil {
			t.Fatal(err)
		}
		h, again, other := listen(db, "topic"), listen(db, "topic"), listen(db, "other")

		committed := false
		db.OnNotice("topic", func(string) {
			committed = db.QueryRow(ctx, `SELECT balance FROM accounts WHERE name = 'a'`).Scan(new(int64)) == nil
		})
		if err := tx(nil, insertion("a", "k2", "k1", "k2"), insertion("b", "k1", "k3")); err != nil {
			t.Fatal(err)
		}
		h.want(t, "each key once", "k1", "k2", "k3")
		again.want(t, "a second listener", "k1", "k2", "k3")
		other.want(t, "another topic")
		if !committed {
			t.Error("the notice came before the commit")
		}

		boom := errors.New("boom")
		if err := tx(boom, insertion("c", "k")); !errors.Is(err, boom) {
			t.Fatal(err)
		}
		h.want(t, "rolled back")
		if err := tx(nil, insertion("c", "k"), insertion("a", "k")); !IsUniqueViolation(err) {
			t.Fatal(err)
		}
		h.want(t, "a failed statement")

		mixed := insertion("c", "k")
		mixed.Notify("other", "o")
		pipeline := func(last *Batch) error {
			p, err := db.Pipeline(ctx, mixed)
			if err != nil {
				return err
			}
			defer p.Rollback()
			if err := p.Send(ctx, insertion("d", "k", "sent")); err != nil {
				return err
			}
			if last == nil {
				return nil
			}
			return p.Commit(ctx, last)
		}
		if err := pipeline(nil); err != nil {
			t.Fatal(err)
		}
		h.want(t, "a pipeline that is rolled back")
		if err := pipeline(insertion("a", "k")); !IsUniqueViolation(err) {
			t.Fatal(err)
		}
		h.want(t, "a pipeline whose last statement fails")
		other.want(t, "neither of another topic")
		if err := pipeline(insertion("e", "k", "last")); err != nil {
			t.Fatal(err)
		}
		h.want(t, "a pipeline", "k", "last", "sent")
		other.want(t, "of another topic", "o")

		b := new(Batch)
		b.Queue(`SELECT name FROM accounts`, nil, nil)
		b.Notify("topic", "k")
		if err := db.Send(ctx, b); err != nil {
			t.Fatal(err)
		}
		h.want(t, "outside of a transaction")
	})
}

// Only the last attempt of a transaction counts, on PostgreSQL and, with savepoints, on
// CockroachDB.
func TestNoticesOfRetries(t *testing.T) {
	for _, savepoint := range []bool{false, true} {
		db, _, line := retrying(t)
		db.backend.(*traced).backend.(*postgres).savepoint = savepoint
		h := listen(db, "topic")
		for _, atCommit := range []bool{false, true} {
			attempts := 0
			err := db.Tx(t.Context(), func(tx *Tx) error {
				attempts++
				b := insertion(fmt.Sprintf("%t", atCommit), fmt.Sprintf("attempt %d", attempts))
				if attempts > 1 {
					return tx.Send(t.Context(), b)
				}
				if !atCommit {
					line.Next(false, pgtest.SerializationFailure)
				}
				err := tx.Send(t.Context(), b)
				if atCommit {
					line.Next(true, pgtest.SerializationFailure)
				}
				return err
			})
			if err != nil || attempts != 2 {
				t.Fatalf("%d attempts, %v", attempts, err)
			}
			h.want(t, fmt.Sprintf("savepoint %t, commit %t", savepoint, atCommit), "attempt 2")
		}
	}
}

// Every commit that was applied delivers its notices, and so does one whose outcome is unknown.
func TestNoticesOfFaults(t *testing.T) {
	db, direct, line := retrying(t)
	db.backend.(*traced).backend.(*postgres).savepoint = false
	h := listen(db, "topic")
	for name, run := range map[string]func(ctx context.Context, b *Batch) error{
		"transaction": func(ctx context.Context, b *Batch) error {
			return db.Tx(ctx, func(tx *Tx) error { return tx.Send(ctx, b) })
		},
		"pipeline": func(ctx context.Context, b *Batch) error {
			p, err := db.Pipeline(ctx, &Batch{})
			if err != nil {
				return err
			}
			return p.Commit(ctx, b)
		},
	} {
		for _, fault := range pgtest.CommitFaults {
			account := fmt.Sprintf("%s, %s", name, fault)
			for run(t.Context(), &Batch{}) != nil { // until the connection is a good one
			}
			h.want(t, "nothing")
			line.Next(true, fault)
			err := run(t.Context(), insertion(account, account))
			line.Heal()
			applied := direct.QueryRow(t.Context(), `SELECT balance FROM accounts WHERE name = $1`, account).Scan(new(int64)) == nil
			ambiguous := (*AmbiguousCommitError)(nil)
			switch {
			case err == nil || errors.As(err, &ambiguous):
				h.want(t, account, account)
			case applied:
				t.Errorf("%s: applied, although %v", account, err)
			default:
				h.want(t, account)
			}
		}
	}
	if n := line.Injected(); len(n) != len(pgtest.CommitFaults) {
		t.Errorf("injected: %v", n)
	}
}

// Listeners may be added while others receive notices.
func TestListenersAreAddedConcurrently(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				h := listen(db, fmt.Sprint(i))
				b := insertion(fmt.Sprint(i))
				b.Notify(fmt.Sprint(i), "k")
				if err := db.Tx(t.Context(), func(tx *Tx) error { return tx.Send(t.Context(), b) }); err != nil {
					t.Error(err)
				}
				h.want(t, "its own", "k")
			})
		}
		wg.Wait()
	})
}
