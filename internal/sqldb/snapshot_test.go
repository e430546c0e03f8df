package sqldb

import (
	"slices"
	"testing"
)

// A snapshot does not see what is written meanwhile, and cannot write.
func TestSnapshot(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 1)`)
		err := db.Snapshot(t.Context(), func(tx *Tx) error {
			for range 2 {
				var n int64
				if err := tx.QueryRow(t.Context(), `SELECT balance FROM accounts WHERE name = $1`, "a").Scan(&n); err != nil {
					return err
				}
				if n != 1 {
					t.Errorf("balance %d", n)
				}
				exec(t, db, `UPDATE accounts SET balance = 2`)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := balance(t, db, "a"); n != 2 {
			t.Errorf("balance %d afterwards", n)
		}
		err = db.Snapshot(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE accounts SET balance = 3`)
			return err
		})
		if err == nil {
			t.Error("a snapshot can write")
		}
	})
}

func TestColumns(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		exec(t, db, `CREATE TABLE things (id TEXT NOT NULL PRIMARY KEY, n BIGINT, yes BOOLEAN NOT NULL)`)
		got, err := db.Columns(t.Context(), "things")
		if want := []Column{{"id", Text, false}, {"n", Integer, true}, {"yes", Boolean, false}}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
		exec(t, db, `CREATE TABLE others (id TEXT NOT NULL PRIMARY KEY, at TIMESTAMP NOT NULL)`)
		if got, err := db.Columns(t.Context(), "others"); err == nil {
			t.Errorf("a type that the product does not use: %v", got)
		}
	})
}
