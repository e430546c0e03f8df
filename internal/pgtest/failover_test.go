package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// What was committed is there after a crash, and on the standby that takes over.
func TestFailover(t *testing.T) {
	ctx := t.Context()
	primary := Own(t)
	insert := func(s *Server, want int) {
		t.Helper()
		conn, err := pgx.Connect(ctx, s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		var n int
		if _, err := conn.Exec(ctx, `INSERT INTO t VALUES (1)`); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(ctx, `SELECT COUNT(*) FROM t`).Scan(&n); err != nil || n != want {
			t.Fatalf("%d rows, %v, want %d", n, err, want)
		}
	}
	if err := primary.exec(ctx, `CREATE TABLE t (a INT)`); err != nil {
		t.Fatal(err)
	}
	insert(primary, 1)
	if err := primary.Crash(ctx); err != nil {
		t.Fatal(err)
	}
	insert(primary, 2)
	for round := range 2 {
		standby, err := primary.Standby(ctx)
		if err != nil {
			t.Fatal(err)
		}
		insert(primary, 3+2*round)
		if err := primary.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := standby.Promote(ctx); err != nil {
			t.Fatal(err)
		}
		insert(standby, 4+2*round)
		primary = standby
	}
	if err := primary.Stop(); err != nil {
		t.Fatal(err)
	}
}
