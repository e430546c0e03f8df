package api_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// TestOneConnection runs all scenarios with one database connection. Code in a transaction
// must use its connection for all reads: a read on another connection would not see the
// transaction's writes, and concurrent transactions that each need a second connection would
// deadlock. With one connection such a read fails at its deadline, and so does the scenario.
func TestOneConnection(t *testing.T) {
	w := newWorldOn(t, sqldb.Config{URL: pgtest.URL(t), MaxConns: 1}, nil)
	for _, name := range slices.Sorted(maps.Keys(scenarios)) { // the order of TestConformance
		t.Run(name, func(t *testing.T) {
			scenarios[name](t, w, w.tenant(t, strings.ReplaceAll(name, "_", "-")))
		})
	}
}

// TestOneConnectionFindsCallsBesideTransactions makes sure that the test above can fail.
func TestOneConnectionFindsCallsBesideTransactions(t *testing.T) {
	w := newWorldOn(t, sqldb.Config{URL: pgtest.URL(t), MaxConns: 1}, nil)
	c := w.tenant(t, "beside")
	define(t, c)
	tenant := mustTenant(t, w, c)
	document := tuplestore.Object{Type: "document", ID: "d"}
	ann := tuplestore.Subject{Type: "user", ID: "ann"}
	for name, call := range map[string]func(ctx context.Context) error{
		"query": func(ctx context.Context) error { return w.db.QueryRow(ctx, `SELECT 1`).Scan(new(int)) },
		"transaction": func(ctx context.Context) error {
			return w.db.Tx(ctx, func(*sqldb.Tx) error { return nil })
		},
		"check": func(ctx context.Context) error {
			_, err := w.engine.Check(ctx, tenant, engine.CheckRequest{Subject: ann, Queries: []engine.Query{{Resource: document, Action: "viewer"}}})
			return err
		},
		"write": func(ctx context.Context) error {
			_, err := w.engine.Write(ctx, tenant, engine.WriteRequest{Ops: []engine.WriteOp{{Resource: document, Relation: "viewer", Subject: ann}}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := call(t.Context()); err != nil {
				t.Fatalf("by itself: %v", err)
			}
			err := w.db.Tx(t.Context(), func(*sqldb.Tx) error {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				return call(ctx)
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("beside a transaction: %v", err)
			}
		})
	}
}
