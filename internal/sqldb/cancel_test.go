package sqldb

import (
	"context"
	"testing"
	"time"
)

// Statements can be canceled at any moment: those that follow work, and see the newest state.
func TestCancel(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		count := func(ctx context.Context) (n int64, err error) {
			err = db.Snapshot(ctx, func(tx *Tx) error {
				return tx.QueryRow(ctx, `SELECT n FROM cancel_test WHERE id = 1`).Scan(&n)
			})
			return n, err
		}
		add := func(ctx context.Context) error {
			return db.Tx(ctx, func(tx *Tx) error {
				_, err := tx.Exec(ctx, `UPDATE cancel_test SET n = n + 1 WHERE id = 1`)
				return err
			})
		}
		exec(t, db, `CREATE TABLE cancel_test (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)`)
		exec(t, db, `INSERT INTO cancel_test VALUES (1, 0)`)
		least := int64(0) // more, if a commit was not acknowledged
		for i := range 1000 {
			ctx, stop := context.WithTimeout(t.Context(), time.Duration(i%300)*time.Microsecond)
			if add(ctx) == nil {
				least++
			}
			_, _ = count(ctx)
			stop()
			if n, err := count(t.Context()); err != nil || n < least {
				t.Fatalf("after round %d: %d, %v, want %d", i, n, err, least)
			}
			if err := add(t.Context()); err != nil {
				t.Fatalf("after round %d: %v", i, err)
			}
			least++
		}
	})
}
