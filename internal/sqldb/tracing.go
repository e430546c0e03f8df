package sqldb

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"stonetown/internal/tracing"
)

// traced is a backend that records a span for each statement, batch and transaction, if
// the context has a span that is recorded. Statements of a transaction are children of its
// span, also if they run with another context. Spans follow OpenTelemetry's semantic conventions
// for databases, without the text of statements and their values.
type traced struct {
	backend
	reading, writing tracedQuerier
}

func newTraced(b backend) *traced {
	system := [...]string{SQLite: "sqlite", Postgres: "postgresql", Cockroach: "cockroachdb"}[b.dialect()]
	return &traced{b, tracedQuerier{querier: b.reads(), system: system}, tracedQuerier{querier: b.writes(), system: system}}
}

func (t *traced) reads() querier  { return &t.reading }
func (t *traced) writes() querier { return &t.writing }

func (t *traced) tx(ctx context.Context, fn func(*Tx) error) error {
	_, span := tracing.StartClient(ctx, "transaction")
	if !span.IsRecorded() {
		return t.backend.tx(ctx, fn)
	}
	span.String("db.system.name", t.reading.system)
	attempts := 0
	err := t.backend.tx(ctx, func(tx *Tx) error {
		attempts++
		within := *tx
		within.q = &tracedQuerier{tx.q, t.reading.system, span}
		return fn(&within)
	})
	span.Int("stonetown.attempts", attempts)
	endSQL(span, err)
	return err
}

func (t *traced) pipeline(ctx context.Context, first *Batch) (pipeline, error) {
	_, span := tracing.StartClient(ctx, "transaction")
	if !span.IsRecorded() {
		return t.backend.pipeline(ctx, first)
	}
	span.String("db.system.name", t.reading.system)
	q := tracedQuerier{system: t.reading.system, transaction: span}
	var begin tracing.Span
	if first != nil {
		begin = q.startBatch(ctx, "BEGIN", first)
	}
	p, err := t.backend.pipeline(ctx, first)
	endSQL(begin, err)
	if err != nil {
		endSQL(span, err)
		return nil, err
	}
	q.querier = p
	return &tracedPipeline{q, p}, nil
}

type tracedPipeline struct {
	tracedQuerier
	p pipeline
}

func (p *tracedPipeline) insertMany(ctx context.Context, table string, columns []CopyColumn) error {
	span := p.start(ctx, "COPY INTO "+table)
	err := p.p.insertMany(ctx, table, columns)
	endSQL(span, err)
	return err
}

func (p *tracedPipeline) commit(ctx context.Context, last *Batch) error {
	span := p.startBatch(ctx, "COMMIT", last)
	err := p.p.commit(ctx, last)
	endSQL(span, err)
	endSQL(p.transaction, err)
	return err
}

func (p *tracedPipeline) rollback() {
	p.p.rollback()
	p.transaction.Bool("stonetown.rolled_back", true) // unless it has ended
	p.transaction.End(nil)
}

// tracedQuerier is a querier with spans.
type tracedQuerier struct {
	querier
	system      string
	transaction tracing.Span // the parent of its spans; zero: that in the context is
}

func (q *tracedQuerier) query(ctx context.Context, sql string, args []any) (*Rows, error) {
	span := q.start(ctx, sql)
	rows, err := q.querier.query(ctx, sql, args)
	if !span.IsRecorded() {
		return rows, err
	}
	if err != nil {
		endSQL(span, err)
		return nil, err
	}
	closeRows := rows.close
	rows.close = func() error {
		err := closeRows()
		endSQL(span, err)
		return err
	}
	return rows, nil
}

func (q *tracedQuerier) exec(ctx context.Context, sql string, args []any) (int64, error) {
	span := q.start(ctx, sql)
	n, err := q.querier.exec(ctx, sql, args)
	endSQL(span, err)
	return n, err
}

func (q *tracedQuerier) send(ctx context.Context, b *Batch) error {
	span := q.startBatch(ctx, "BATCH", b)
	err := q.querier.send(ctx, b)
	endSQL(span, err)
	return err
}

func (q *tracedQuerier) start(ctx context.Context, sql string) tracing.Span {
	_, span := tracing.StartClient(q.transaction.In(ctx), "statement")
	if span.IsRecorded() {
		operation, table := summarize(sql)
		span.Name(strings.TrimSpace(operation + " " + table))
		span.String("db.system.name", q.system)
		span.String("db.operation.name", operation)
		span.String("db.collection.name", table)
	}
	return span
}

// maxSummary bounds the summary of a batch, in bytes, as the conventions do.
const maxSummary = 255

func (q *tracedQuerier) startBatch(ctx context.Context, name string, b *Batch) tracing.Span {
	_, span := tracing.StartClient(q.transaction.In(ctx), name)
	if span.IsRecorded() {
		span.String("db.system.name", q.system)
		span.String("db.operation.name", name)
		span.Int("db.operation.batch.size", b.Len())
		summary, last := "", ""
		for _, it := range b.items {
			operation, table := summarize(it.sql)
			next := strings.TrimSpace(operation + " " + table)
			if next == last {
				continue
			}
			if last = next; len(summary)+len(next)+2 > maxSummary {
				break
			}
			summary = strings.TrimPrefix(summary+"; "+next, "; ")
		}
		span.String("db.query.summary", summary)
	}
	return span
}

// summarize returns the first word of a statement and the first table that it names.
func summarize(sql string) (operation, table string) {
	before := ""
	for word := range strings.FieldsSeq(sql) {
		if operation == "" {
			operation = word
		}
		switch before {
		case "FROM", "JOIN", "INTO", "UPDATE":
			name := word
			if end := strings.IndexFunc(word, isNotOfName); end >= 0 {
				name = word[:end]
			}
			isCall := len(name) < len(word) && word[len(name)] == '(' && before != "INTO"
			if name != "" && !isCall {
				return operation, name
			}
		}
		before = word
	}
	return operation, ""
}

func isNotOfName(r rune) bool {
	return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
}

// endSQL ends a span. Of the database's own errors it records the code.
func endSQL(span tracing.Span, err error) {
	if err != nil && span.IsRecorded() {
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
			span.String("db.response.status_code", pgErr.Code)
		}
	}
	span.End(err)
}
