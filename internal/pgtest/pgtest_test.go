package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { Main(m) }

func TestURLIsAFreshDatabase(t *testing.T) {
	ctx := t.Context()
	for range 2 {
		conn := connect(t, URL(t))
		if _, err := conn.Exec(ctx, `CREATE TABLE t (a TEXT)`); err != nil {
			t.Fatal(err)
		}
		var bytewise bool
		if err := conn.QueryRow(ctx, `SELECT 'Z' < 'a'`).Scan(&bytewise); err != nil || !bytewise {
			t.Fatalf("bytewise comparison: %v, %v", bytewise, err)
		}
	}
}

func TestLatency(t *testing.T) {
	const d = 20 * time.Millisecond
	url, roundTrips := Latency(t, URL(t), d)
	conn := connect(t, url)
	ctx := t.Context()

	before, start := roundTrips(), time.Now()
	for range 3 {
		if _, err := conn.Exec(ctx, `SELECT 1`, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	if n := roundTrips() - before; n != 3 {
		t.Errorf("three statements made %d round trips", n)
	}
	if took := time.Since(start); took < 3*d {
		t.Errorf("three round trips took %v", took)
	}

	// A large answer pays for one round trip, not for each of its packets.
	before, start = roundTrips(), time.Now()
	var text string
	if err := conn.QueryRow(ctx, `SELECT repeat('x', 3000000)`, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
		t.Fatal(err)
	}
	if n := roundTrips() - before; n != 1 {
		t.Errorf("one statement made %d round trips", n)
	}
	if took := time.Since(start); took > 20*d {
		t.Errorf("one round trip took %v", took)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
