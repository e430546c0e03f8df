package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"stonetown/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// onEach runs a test on a fresh database of each kind at hand.
func onEach(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Run("sqlite", func(t *testing.T) {
		test(t, open(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db")))
	})
	t.Run("postgres", func(t *testing.T) { test(t, open(t, pgtest.URL(t))) })
}

func open(t *testing.T, url string) *DB {
	t.Helper()
	db, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func accounts(t *testing.T, db *DB) {
	t.Helper()
	dir, err := fs.Sub(os.DirFS("testdata"), "migrations")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context(), Migrations{"test", dir}); err != nil {
		t.Fatal(err)
	}
}

func exec(t *testing.T, db *DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func balance(t *testing.T, db *DB, name string) (n int64) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT balance FROM accounts WHERE name = $1`, name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestQueries(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		ctx := t.Context()
		// Placeholders go by number, not by appearance; quotes are left alone.
		exec(t, db, `INSERT INTO accounts (balance, name) VALUES ($2, $1)`, "a$1", int64(7))
		var name, quoted string
		if err := db.QueryRow(ctx, `SELECT name, '$1' FROM accounts WHERE balance = $1`, int64(7)).Scan(&name, &quoted); err != nil {
			t.Fatal(err)
		}
		if name != "a$1" || quoted != "$1" {
			t.Errorf("got %q, %q", name, quoted)
		}
		if err := db.QueryRow(ctx, `SELECT name FROM accounts WHERE name = 'none'`).Scan(&name); !errors.Is(err, ErrNoRows) {
			t.Errorf("no row: %v", err)
		}
		_, err := db.Exec(ctx, `INSERT INTO accounts (name, balance) VALUES ($1, 0)`, "a$1")
		if !IsUniqueViolation(err) {
			t.Errorf("duplicate key: %v", err)
		}
		n, err := db.Exec(ctx, `UPDATE accounts SET balance = 8`)
		if err != nil || n != 1 {
			t.Errorf("updated %d, %v", n, err)
		}
	})
}

// The numbers of arguments decide, in whichever order they appear.
func TestArgumentsInAnyOrder(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		for query, want := range map[string]string{
			`SELECT $1 || $2 || $3 || $2 || $1`:                                "abcba",
			`SELECT $3 || $1 || $2`:                                            "cab",
			`SELECT $1 || '$2' || $3 || $2 || $3`:                              "a$2cbc",
			`SELECT $2 || $3 || $1 || $10 || $4 || $5 || $6 || $7 || $8 || $9`: "bcajdefghi",
		} {
			args := []any{"a", "b", "c"}
			if strings.Contains(query, "$10") {
				args = append(args, "d", "e", "f", "g", "h", "i", "j")
			}
			var got string
			if err := db.QueryRow(t.Context(), query, args...).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %q, %v, want %q", query, got, err, want)
			}
		}
	})
}

func TestTxRollsBack(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		ctx := t.Context()
		exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`)
		boom := errors.New("boom")
		err := db.Tx(ctx, func(tx *Tx) error {
			if _, err := tx.Exec(ctx, `UPDATE accounts SET balance = 2`); err != nil {
				return err
			}
			return boom
		})
		if !errors.Is(err, boom) {
			t.Errorf("error: %v", err)
		}
		// A failed statement ends the transaction even if its error is ignored.
		err = db.Tx(ctx, func(tx *Tx) error {
			if _, err := tx.Exec(ctx, `UPDATE accounts SET balance = 3`); err != nil {
				return err
			}
			_, _ = tx.Exec(ctx, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`)
			return nil
		})
		if err == nil {
			t.Error("a transaction with a failed statement was committed")
		}
		if n := balance(t, db, "a"); n != 1 {
			t.Errorf("balance %d", n)
		}
	})
}

func TestTxIsSerializable(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		ctx := t.Context()
		exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 0), ('b', 0)`)
		// Each transaction reads both rows and writes one: write skew, unless
		// serializable.
		var wg sync.WaitGroup
		const writers, each = 6, 10
		for i := range writers {
			wg.Go(func() {
				for range each {
					err := db.Tx(ctx, func(tx *Tx) error {
						var sum int64
						if err := tx.QueryRow(ctx, `SELECT CAST(SUM(balance) AS BIGINT) FROM accounts`).Scan(&sum); err != nil {
							return err
						}
						_, err := tx.Exec(ctx, `UPDATE accounts SET balance = $1 - (SELECT balance FROM accounts WHERE name <> $2) WHERE name = $2`,
							sum+1, string(rune('a'+i%2)))
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if sum := balance(t, db, "a") + balance(t, db, "b"); sum != writers*each {
			t.Errorf("%d increments were kept of %d", sum, writers*each)
		}
	})
}

func TestTxRollsBackOnPanic(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		func() {
			defer func() { _ = recover() }()
			_ = db.Tx(t.Context(), func(tx *Tx) error {
				if _, err := tx.Exec(t.Context(), `INSERT INTO accounts (name, balance) VALUES ('a', 0)`); err != nil {
					t.Fatal(err)
				}
				panic("boom")
			})
		}()
		exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`)
	})
}

func TestPipeline(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		ctx := t.Context()
		transfer := func() error {
			var first, last Batch
			var got int64
			first.Queue(`INSERT INTO accounts (name, balance) VALUES ($1, $2)`, []any{"a", int64(1)}, nil)
			first.Queue(`UPDATE accounts SET balance = balance + 1 WHERE name = $1 RETURNING balance`, []any{"a"}, func(rows *Rows) error {
				for rows.Next() {
					if err := rows.Scan(&got); err != nil {
						return err
					}
				}
				return nil
			})
			p, err := db.Pipeline(ctx, &first)
			if err != nil {
				return err
			}
			defer p.Rollback()
			if got != 2 {
				t.Errorf("balance in the transaction: %d", got)
			}
			if _, err := p.Exec(ctx, `UPDATE accounts SET balance = balance * 10`); err != nil {
				return err
			}
			last.Queue(`UPDATE accounts SET balance = balance + $1`, []any{int64(3)}, nil)
			return p.Commit(ctx, &last)
		}
		if err := transfer(); err != nil {
			t.Fatal(err)
		}
		if n := balance(t, db, "a"); n != 23 {
			t.Errorf("balance %d", n)
		}
		if err := transfer(); !IsUniqueViolation(err) {
			t.Errorf("second time: %v", err)
		}
		var last Batch
		last.Queue(`INSERT INTO accounts (name, balance) VALUES ('b', 1)`, nil, nil)
		last.Queue(`INSERT INTO accounts (name, balance) VALUES ('b', 1)`, nil, nil)
		p, err := db.Pipeline(ctx, &Batch{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Commit(ctx, &last); !IsUniqueViolation(err) {
			t.Errorf("commit after a failed statement: %v", err)
		}
		if err := db.QueryRow(ctx, `SELECT balance FROM accounts WHERE name = 'b'`).Scan(new(int64)); !errors.Is(err, ErrNoRows) {
			t.Errorf("a failed commit left its row: %v", err)
		}
	})
}

func TestPipelineMakesTwoRoundTrips(t *testing.T) {
	proxied, roundTrips := pgtest.Latency(t, pgtest.URL(t), 0)
	db := open(t, proxied)
	accounts(t, db)
	ctx := t.Context()
	exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 0)`)
	increment := func() {
		var first, last Batch
		first.Queue(`UPDATE accounts SET balance = balance + 1 WHERE name = $1`, []any{"a"}, nil)
		first.Queue(`SELECT name FROM accounts`, nil, nil)
		p, err := db.Pipeline(ctx, &first)
		if err != nil {
			t.Fatal(err)
		}
		last.Queue(`UPDATE accounts SET balance = balance + 1 WHERE name = $1`, []any{"a"}, nil)
		if err := p.Commit(ctx, &last); err != nil {
			t.Fatal(err)
		}
	}
	increment() // prepares the statements
	before, counted := roundTrips(), db.Stats().RoundTrips
	increment()
	if n := roundTrips() - before; n != 2 {
		t.Errorf("%d round trips on the wire", n)
	}
	if n := db.Stats().RoundTrips - counted; n != 2 {
		t.Errorf("%d round trips counted", n)
	}
}

// What the last batch writes depends on the rows of the first. An error leaves nothing of both.
func TestReadCommitted(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		ctx := t.Context()
		exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`)
		// spend takes 1 from a, if it has as much, and then adds it to another account.
		spend := func(to string) (spent bool, err error) {
			err = db.ReadCommitted(ctx, func(b *Batch) {
				b.Queue(`UPDATE accounts SET balance = balance - 1 WHERE name = 'a' AND balance > 0 RETURNING 1`, nil, func(rows *Rows) error {
					spent = rows.Next()
					return rows.Err()
				})
			}, func(b *Batch) {
				if spent {
					b.Queue(`INSERT INTO accounts (name, balance) VALUES ($1, 1)`, []any{to}, nil)
				}
			})
			return spent, err
		}
		if _, err := spend("a"); !IsUniqueViolation(err) || balance(t, db, "a") != 1 {
			t.Errorf("a last batch that fails: %v", err)
		}
		var wg sync.WaitGroup
		var wins atomic.Int64
		for n := range 16 {
			wg.Go(func() {
				spent, err := spend(fmt.Sprint("b", n))
				if err != nil {
					t.Error(err)
				}
				if spent {
					wins.Add(1)
				}
			})
		}
		wg.Wait()
		var total int64
		if err := db.QueryRow(ctx, `SELECT CAST(SUM(balance) AS BIGINT) FROM accounts`).Scan(&total); err != nil || total != 1 || wins.Load() != 1 {
			t.Errorf("%d of 16 were first, the sum is %d, %v", wins.Load(), total, err)
		}
		none := func(*Batch) {}
		insert := func(b *Batch) { b.Queue(`INSERT INTO accounts (name, balance) VALUES ('c', 5)`, nil, nil) }
		if err := db.ReadCommitted(ctx, none, insert); err != nil || balance(t, db, "c") != 5 {
			t.Errorf("without a first batch: %v", err)
		}
		again := func(b *Batch) {
			b.Queue(`UPDATE accounts SET balance = 6 WHERE name = 'c'`, nil, nil)
			insert(b)
		}
		if err := db.ReadCommitted(ctx, none, again); !IsUniqueViolation(err) || balance(t, db, "c") != 5 {
			t.Errorf("without a first batch, a statement that fails: %v", err)
		}
	})
}

// On PostgreSQL, a transaction that travels in one batch has no BEGIN and no COMMIT. It is one nevertheless:
// an error at its end undoes it, and its isolation is not the default of the database.
func TestTransactionInOneBatch(t *testing.T) {
	url := pgtest.URL(t)
	exec(t, open(t, url), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END $$`)
	db := open(t, url)
	ctx := t.Context()
	accounts(t, db)
	exec(t, db, `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused at the end' USING ERRCODE = '23514'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON accounts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	none := func(*Batch) {}
	err := db.ReadCommitted(ctx, none, func(b *Batch) {
		b.Queue(`INSERT INTO accounts (name, balance) VALUES ('a', 1)`, nil, nil)
		b.Queue(`UPDATE accounts SET balance = 2`, nil, nil)
	})
	var ambiguous *AmbiguousCommitError
	if err == nil || errors.As(err, &ambiguous) || !strings.Contains(err.Error(), "refused at the end") {
		t.Errorf("a trigger at the end: %v", err)
	}
	var n int
	if err := db.QueryRow(ctx, `SELECT COUNT(*) FROM accounts`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}

	isolation := ""
	err = db.ReadCommitted(ctx, none, func(b *Batch) {
		b.Queue(`SELECT current_setting('transaction_isolation')`, nil, func(rows *Rows) error {
			if rows.Next() {
				return rows.Scan(&isolation)
			}
			return nil
		})
	})
	if err != nil || isolation != "read committed" {
		t.Errorf("isolation %q, %v", isolation, err)
	}
}

// A transaction that the database rolled back because of others is run again, with batches that
// are made again.
func TestReadCommittedRetries(t *testing.T) {
	f := pgtest.NewFaulty(t, pgtest.URL(t))
	db := open(t, f.URL)
	accounts(t, db)
	exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 0)`)
	increment := func(b *Batch) { b.Queue(`UPDATE accounts SET balance = balance + 1 WHERE name = 'a'`, nil, nil) }
	injected := 0
	for want, first := range []func(*Batch){increment, func(*Batch) {}} {
		for _, commits := range []bool{false, true} {
			if want == 1 && !commits {
				continue // there is one batch
			}
			before := balance(t, db, "a")
			f.Next(commits, pgtest.SerializationFailure)
			if err := db.ReadCommitted(t.Context(), first, increment); err != nil {
				t.Fatal(err)
			}
			if n := balance(t, db, "a") - before; n != int64(2-want) {
				t.Errorf("applied %d increments", n)
			}
			if injected++; f.Injected()[pgtest.SerializationFailure] != injected {
				t.Errorf("%d failures were injected, want %d", f.Injected()[pgtest.SerializationFailure], injected)
			}
		}
	}
}

func TestReadCommittedRoundTrips(t *testing.T) {
	db := open(t, pgtest.URL(t))
	accounts(t, db)
	exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 0)`)
	increment := func(b *Batch) { b.Queue(`UPDATE accounts SET balance = balance + 1 WHERE name = 'a'`, nil, nil) }
	for want, first := range map[int64]func(*Batch){2: increment, 1: func(*Batch) {}} {
		least := int64(100) // the first time prepares the statement
		for range 3 {
			before := db.Stats().RoundTrips
			if err := db.ReadCommitted(t.Context(), first, increment); err != nil {
				t.Fatal(err)
			}
			least = min(least, db.Stats().RoundTrips-before)
		}
		if least != want {
			t.Errorf("%d round trips, want %d", least, want)
		}
	}
}

func TestMigrate(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		// Processes that start at the same time.
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { accounts(t, db) })
		}
		wg.Wait()
		accounts(t, db)
		var got string
		sql := `SELECT array_to_string(reloptions, ',') FROM pg_class WHERE relname = 'accounts'`
		want := "fillfactor=50"
		if db.Dialect() == SQLite {
			sql, want = `SELECT sql FROM sqlite_schema WHERE name = 'accounts'`, "WITHOUT ROWID"
		}
		if err := db.QueryRow(t.Context(), sql).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	})
}

// Tables that have their newest versions take one statement, whatever the number of owners. A
// newer version is applied.
func TestMigrateNewest(t *testing.T) {
	const create = "-- +goose NO TRANSACTION\n-- +goose Up\nCREATE TABLE IF NOT EXISTS %s (id BIGINT PRIMARY KEY);"
	file := func(table string) *fstest.MapFile { return &fstest.MapFile{Data: fmt.Appendf(nil, create, table)} }
	onEach(t, func(t *testing.T, db *DB) {
		first := Migrations{"first", fstest.MapFS{"00001_a.sql": file("first_a"), "00002_b.sql": file("first_b")}}
		second := Migrations{"second", fstest.MapFS{"00001_a.sql": file("second_a")}}
		migrate := func(all ...Migrations) (statements int64) {
			t.Helper()
			before := db.Stats().Statements
			if err := db.Migrate(t.Context(), all...); err != nil {
				t.Fatal(err)
			}
			return db.Stats().Statements - before
		}
		exists := func(table string) bool {
			_, err := db.Exec(t.Context(), "DELETE FROM "+table)
			return err == nil
		}
		migrate(first)
		migrate(first, second)
		if !exists("first_b") || !exists("second_a") {
			t.Error("a table is missing")
		}
		if n := migrate(first, second); n != 1 {
			t.Errorf("%d statements, want 1", n)
		}
		second.FS.(fstest.MapFS)["00002_b.sql"] = file("second_b")
		if migrate(first, second); !exists("second_b") {
			t.Error("the newest version was not applied")
		}
	})
}

// An older release leaves tables that a newer one has extended as they are, and refuses those of a
// later generation, before it changes anything.
func TestMigrateNewer(t *testing.T) {
	const create = "-- +goose NO TRANSACTION\n-- +goose Up\nCREATE TABLE IF NOT EXISTS %s (id BIGINT PRIMARY KEY);"
	file := func(table string) *fstest.MapFile { return &fstest.MapFile{Data: fmt.Appendf(nil, create, table)} }
	onEach(t, func(t *testing.T, db *DB) {
		old := Migrations{"first", fstest.MapFS{"00001_a.sql": file("a")}}
		extended := Migrations{"first", fstest.MapFS{"00001_a.sql": file("a"), "00002_b.sql": file("b")}}
		changed := Migrations{"first", fstest.MapFS{"00001_a.sql": file("a"), "00002_b.sql": file("b"), "01000_c.sql": file("c")}}
		other := Migrations{"other", fstest.MapFS{"00001_d.sql": file("d")}}
		migrate := func(m ...Migrations) {
			t.Helper()
			if err := db.Migrate(t.Context(), m...); err != nil {
				t.Error(err)
			}
		}
		migrate(extended)
		migrate(old)
		migrate(changed)
		for _, m := range [][]Migrations{{old, other}, {other, extended}} {
			err := db.Migrate(t.Context(), m...)
			if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "first has version 1000") {
				t.Errorf("a release that does not know the generation: %v", err)
			}
		}
		if _, err := db.Exec(t.Context(), "DELETE FROM d"); err == nil {
			t.Error("a release that was refused has created a table")
		}
		migrate(changed, other)
		if _, err := db.Exec(t.Context(), "DELETE FROM d"); err != nil {
			t.Error(err)
		}
	})
}

// A read-only connection reads the commits of the owner and cannot write.
func TestReadOnly(t *testing.T) {
	for name, url := range map[string]string{"sqlite": "sqlite://" + filepath.Join(t.TempDir(), "test.db"), "postgres": pgtest.URL(t)} {
		t.Run(name, func(t *testing.T) {
			owner := open(t, url)
			accounts(t, owner)
			reader, err := Open(t.Context(), Config{URL: url, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			exec(t, owner, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`)
			if n := balance(t, reader, "a"); n != 1 {
				t.Errorf("balance %d", n)
			}
			const sql = `UPDATE accounts SET balance = 2`
			if _, err := reader.Exec(t.Context(), sql); err == nil {
				t.Error("a statement wrote")
			}
			err = reader.Tx(t.Context(), func(tx *Tx) error { _, err := tx.Exec(t.Context(), sql); return err })
			if err == nil {
				t.Error("a transaction wrote")
			}
			if name == "sqlite" {
				if err := reader.Migrate(t.Context(), Migrations{}); !errors.Is(err, errReadOnly) {
					t.Errorf("migrate: %v", err)
				}
			}
			exec(t, owner, sql)
			if n := balance(t, reader, "a"); n != 2 {
				t.Errorf("balance %d", n)
			}
		})
	}
	missing := "sqlite://" + filepath.Join(t.TempDir(), "missing.db")
	if _, err := Open(t.Context(), Config{URL: missing, ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite://" + filepath.Join(dir, "test.db")
	open(t, url)
	for _, tc := range []struct{ url, want string }{
		{url, "in use by another process"},
		{"sqlite:", "a SQLite URL is"},
		{"mysql://localhost/x", `unknown scheme "mysql"`},
		{"postgres://u:secret@\x7f", "malformed"},
	} {
		db, err := Open(t.Context(), Config{URL: tc.url})
		if err == nil {
			_ = db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", tc.url, err)
		}
	}
}

func TestSQLiteIsDurableAndReopens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space?#%.db")
	url := "sqlite://" + strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23", " ", "%20").Replace(path)
	db, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	accounts(t, db)
	exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`)
	var synchronous, readOnly int
	if err := db.Tx(t.Context(), func(tx *Tx) error {
		return tx.QueryRow(t.Context(), `PRAGMA synchronous`).Scan(&synchronous)
	}); err != nil || synchronous != 2 {
		t.Errorf("synchronous is %d, %v; want 2 (FULL)", synchronous, err)
	}
	if err := db.QueryRow(t.Context(), `PRAGMA query_only`).Scan(&readOnly); err != nil || readOnly != 1 {
		t.Errorf("query_only of readers is %d, %v", readOnly, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log was not folded into the file: %v", err)
	}
	if n := balance(t, open(t, url), "a"); n != 1 {
		t.Errorf("balance %d", n)
	}
}

func TestSQLiteCancellation(t *testing.T) {
	db := open(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"))
	accounts(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Tx(ctx, func(tx *Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`); err != nil {
			return err
		}
		time.AfterFunc(20*time.Millisecond, cancel)
		// Interrupted, SQLite rolls the whole transaction back.
		_, _ = tx.Exec(ctx, `INSERT INTO accounts (name, balance)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT 'n' || i, 0 FROM n`)
		_, err := tx.Exec(t.Context(), `INSERT INTO accounts (name, balance) VALUES ('b', 1)`)
		return err
	})
	if err == nil {
		t.Fatal("the transaction went on after an interruption")
	}
	// Nothing is left of it, and the writer is free.
	exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 5)`)
	var n int
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM accounts`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}
