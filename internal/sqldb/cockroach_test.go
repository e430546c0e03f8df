package sqldb

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"stonetown/internal/pgtest"
)

// retrying returns a database whose transactions are retried as on CockroachDB, with the proxy
// to it and a direct connection. PostgreSQL accepts the same savepoint, but its release does
// not commit, so a fault at the COMMIT that follows has no meaning.
func retrying(t *testing.T) (db, direct *DB, line *pgtest.Faulty) {
	t.Helper()
	url := pgtest.URL(t)
	direct = open(t, url)
	accounts(t, direct)
	exec(t, direct, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`)
	line = pgtest.NewFaulty(t, url)
	db = open(t, line.URL)
	db.backend.(*traced).backend.(*postgres).savepoint = true
	return db, direct, line
}

func TestSavepointTx(t *testing.T) {
	db, direct, line := retrying(t)
	ctx := t.Context()
	for _, tc := range []struct {
		name          string
		before, after func() // the statement
		fails         error
		runs          int
		statements    int64 // BEGIN, SAVEPOINT, UPDATE, RELEASE, COMMIT, and what retries add
		balance       int64 // 1 before
	}{
		{name: "commits", runs: 1, statements: 5, balance: 2},
		{name: "retries after a statement", before: func() { line.Next(false, pgtest.SerializationFailure) }, runs: 2, statements: 7, balance: 2},
		{name: "retries after the release", after: func() { line.Next(true, pgtest.SerializationFailure) }, runs: 2, statements: 8, balance: 2},
		{name: "rolls back on an error", runs: 1, statements: 4, balance: 1, fails: errors.New("boom")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			exec(t, direct, `UPDATE accounts SET balance = 1`)
			runs, before := 0, db.Stats().Statements
			err := db.Tx(ctx, func(tx *Tx) error {
				runs++
				if tc.before != nil && runs == 1 {
					tc.before()
				}
				if _, err := tx.Exec(ctx, `UPDATE accounts SET balance = balance + $1`, int64(1)); err != nil {
					return err
				}
				if tc.after != nil && runs == 1 {
					tc.after()
				}
				return tc.fails
			})
			if !errors.Is(err, tc.fails) {
				t.Errorf("error: %v", err)
			}
			if runs != tc.runs {
				t.Errorf("run %d times, want %d", runs, tc.runs)
			}
			if n := db.Stats().Statements - before; n != tc.statements {
				t.Errorf("%d statements, want %d", n, tc.statements)
			}
			if n := balance(t, direct, "a"); n != tc.balance {
				t.Errorf("balance %d, want %d", n, tc.balance)
			}
		})
	}
}

// A release whose answer is lost may have committed; one that the server refused has not.
func TestSavepointTxKnowsWhatIsAmbiguous(t *testing.T) {
	db, _, line := retrying(t)
	ctx := t.Context()
	ambiguous := (*AmbiguousCommitError)(nil)
	for _, fault := range []pgtest.Fault{pgtest.Dropped, pgtest.Unanswered, pgtest.AdminShutdown, pgtest.CommitUnknown, pgtest.CommitLost} {
		err := db.Tx(ctx, func(tx *Tx) error {
			_, err := tx.Exec(ctx, `UPDATE accounts SET balance = balance + $1`, int64(1))
			line.Next(true, fault)
			return err
		})
		if !errors.As(err, &ambiguous) {
			t.Errorf("%s: %v", fault, err)
		}
		line.Heal()
	}
	err := db.Tx(ctx, func(tx *Tx) error {
		_, _ = tx.Exec(ctx, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`)
		return nil
	})
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if errors.As(err, &ambiguous) || !ok || refused.Code != "25P02" { // in_failed_sql_transaction
		t.Errorf("after a failed statement: %v", err)
	}
}
