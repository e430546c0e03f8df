package sqldb

import (
	"errors"
	"testing"
	"time"

	"stonetown/internal/pgtest"
)

// A driver must not repeat a statement that may have been executed. It has happened with
// statements without arguments when a connection dropped after the execution.
func TestNothingIsRunTwice(t *testing.T) {
	url := pgtest.URL(t)
	direct := open(t, url)
	exec(t, direct, `CREATE TABLE runs (what TEXT NOT NULL)`)
	line := pgtest.NewFaulty(t, url)
	line.Delay = 40 * time.Millisecond
	db := open(t, line.URL)
	const insert = `INSERT INTO runs VALUES ('x')`
	count := func() (n int64) {
		t.Helper()
		if err := direct.QueryRow(t.Context(), `SELECT COUNT(*) FROM runs`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, run := range map[string]func() error{
		"a statement": func() error { _, err := db.Exec(t.Context(), insert); return err },
		"a transaction": func() error {
			return db.Tx(t.Context(), func(tx *Tx) error { _, err := tx.Exec(t.Context(), insert); return err })
		},
		"a transaction in one batch": func() error {
			return db.ReadCommitted(t.Context(), func(*Batch) {}, func(b *Batch) { b.Queue(insert, nil, nil) })
		},
		"a pipeline": func() error {
			var first, last Batch
			p, err := db.Pipeline(t.Context(), &first)
			if err != nil {
				return err
			}
			last.Queue(insert, nil, nil)
			return p.Commit(t.Context(), &last)
		},
	} {
		for commits, faults := range map[bool][]pgtest.Fault{true: pgtest.CommitFaults, false: pgtest.AnyFaults} {
			if !commits && (name == "a statement" || name == "a transaction in one batch") {
				continue // every batch commits
			}
			for _, fault := range faults {
				for err := run(); err != nil; err = run() { // until the connection is a good one
					if !IsUnavailable(err) {
						t.Fatal(err)
					}
				}
				before, injected := count(), line.Injected()[fault]
				line.Next(commits, fault)
				err := run()
				line.Heal()
				time.Sleep(2 * line.Delay) // delayed messages have arrived
				n := count() - before
				if line.Injected()[fault] != injected+1 {
					t.Errorf("%s, %s, commit %t: was not injected", name, fault, commits)
				}
				ambiguous := (*AmbiguousCommitError)(nil)
				switch {
				case n > 1:
					t.Errorf("%s, %s, commit %t: done %d times", name, fault, commits, n)
				case err == nil && n != 1:
					t.Errorf("%s, %s, commit %t: acknowledged and not there", name, fault, commits)
				case err != nil && n == 1 && name != "a statement" && !errors.As(err, &ambiguous):
					t.Errorf("%s, %s, commit %t: there, although %v", name, fault, commits, err)
				}
			}
		}
	}
}
