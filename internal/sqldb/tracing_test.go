package sqldb

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"stonetown/internal/tracing/otlp"
)

func TestSummaries(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT a FROM users WHERE a = 'FROM x'":                                   "SELECT users",
		"\n\t\tINSERT INTO events(tenant_id) VALUES ($1)":                          "INSERT events",
		"INSERT INTO tenant_heads (a) VALUES ($1) ON CONFLICT DO UPDATE SET a = 1": "INSERT tenant_heads",
		"UPDATE users SET a = $1 WHERE b IN (SELECT b FROM groups)":                "UPDATE users",
		"DELETE FROM users": "DELETE users",
		"SELECT 1 FROM unnest($2::text[]) k JOIN tuples r ON r.a = k.a": "SELECT tuples",
		"SELECT 1 FROM json_each(?2) k CROSS JOIN tuples":               "SELECT tuples",
		"SELECT * FROM (SELECT a FROM users) u":                         "SELECT users",
		"WITH p AS (SELECT a FROM users) SELECT 1":                      "WITH users",
		"SELECT 'Z' < 'a'": "SELECT ",
		"":                 " ",
	} {
		operation, table := summarize(sql)
		if got := operation + " " + table; got != want {
			t.Errorf("%q: %q, want %q", sql, got, want)
		}
	}
}

// exported keeps spans as text: the name, the parent's name and the attributes.
type exported struct{ spans []sdktrace.ReadOnlySpan }

func (e *exported) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.spans = append(e.spans, spans...)
	return nil
}

func (e *exported) Shutdown(context.Context) error { return nil }

func (e *exported) text() []string {
	names := map[string]string{}
	for _, s := range e.spans {
		names[s.SpanContext().SpanID().String()] = s.Name()
	}
	var list []string
	for _, s := range e.spans {
		text := names[s.Parent().SpanID().String()] + " > " + s.Name()
		for _, a := range s.Attributes() {
			if a.Key != "db.system.name" && a.Key != "http.request.method" {
				text += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
			}
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

func TestSpans(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		accounts(t, db)
		e := new(exported)
		tracer, err := otlp.New(otlp.Config{Exporter: e, Sample: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, root := tracer.Request(t.Context(), httptest.NewRequest("GET", "/", nil))
		insert := `INSERT INTO accounts (name, balance) VALUES ($1, $2)`
		if _, err := db.Exec(ctx, insert, "hunter2", int64(1)); err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec(ctx, insert, "hunter2", int64(1))
		if !IsUniqueViolation(err) {
			t.Fatal(err)
		}
		var n int64
		if err := db.QueryRow(ctx, `SELECT balance FROM accounts WHERE name = $1`, "hunter2").Scan(&n); err != nil {
			t.Fatal(err)
		}
		err = db.Tx(ctx, func(tx *Tx) error {
			var b Batch
			b.Queue(insert, []any{"b", int64(2)}, nil)
			b.Queue(insert, []any{"c", int64(2)}, nil)
			b.Queue(`SELECT balance FROM accounts`, nil, func(rows *Rows) error { return nil })
			return tx.Send(ctx, &b)
		})
		if err != nil {
			t.Fatal(err)
		}
		failed := errors.New("hunter2 is not allowed")
		if err := db.Tx(ctx, func(tx *Tx) error { return failed }); !errors.Is(err, failed) {
			t.Fatal(err)
		}
		// A child of the transaction's span, also with another context.
		var first, last Batch
		first.Queue(`SELECT balance FROM accounts`, nil, nil)
		p, err := db.Pipeline(ctx, &first)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Exec(t.Context(), `DELETE FROM accounts`); err != nil {
			t.Fatal(err)
		}
		last.Queue(insert, []any{"d", int64(4)}, nil)
		if err := p.Commit(t.Context(), &last); err != nil {
			t.Fatal(err)
		}
		p.Rollback()
		if p, err = db.Pipeline(ctx, &Batch{}); err != nil {
			t.Fatal(err)
		}
		p.Rollback()
		// Without a trace nothing is recorded.
		if _, err := db.Exec(t.Context(), `DELETE FROM accounts`); err != nil {
			t.Fatal(err)
		}
		root.End(nil)
		tracer.Close()

		violated := map[Dialect]string{SQLite: " error.type=*sqlite.Error", Postgres: " db.response.status_code=23505 error.type=*pgconn.PgError", Cockroach: " db.response.status_code=23505 error.type=*pgconn.PgError"}[db.Dialect()]
		want := []string{
			" > GET",
			"GET > INSERT accounts db.operation.name=INSERT db.collection.name=accounts",
			"GET > INSERT accounts db.operation.name=INSERT db.collection.name=accounts" + violated,
			"GET > SELECT accounts db.operation.name=SELECT db.collection.name=accounts",
			"GET > transaction",
			"GET > transaction stonetown.attempts=1",
			"GET > transaction stonetown.attempts=1 error.type=*errors.errorString",
			"GET > transaction stonetown.rolled_back=true",
			"transaction > BATCH db.operation.name=BATCH db.operation.batch.size=3 db.query.summary=INSERT accounts; SELECT accounts",
			"transaction > BEGIN db.operation.name=BEGIN db.operation.batch.size=0",
			"transaction > BEGIN db.operation.name=BEGIN db.operation.batch.size=1 db.query.summary=SELECT accounts",
			"transaction > COMMIT db.operation.name=COMMIT db.operation.batch.size=1 db.query.summary=INSERT accounts",
			"transaction > DELETE accounts db.operation.name=DELETE db.collection.name=accounts",
		}
		got := e.text()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if strings.Contains(fmt.Sprint(got), "hunter2") {
			t.Error("a value is in a span")
		}
	})
}
