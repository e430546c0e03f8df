package sqldb

import (
	"context"
	"slices"
)

// Batch is a list of statements that travel together: one round trip on a
// server, one after another on SQLite.
type Batch struct {
	items      []batchItem
	collectors map[any]Collector
	keys       []any // of collectors, in order of their first use
	collected  int
	notices    []notice
}

type batchItem struct {
	sql  string
	args []any
	scan func(*Rows) error
}

// Queue adds a statement. scan, if not nil, is called with its rows; it need
// not close them. If a statement or scan fails, those after it are not run.
func (b *Batch) Queue(sql string, args []any, scan func(*Rows) error) {
	b.items = append(b.items, batchItem{sql, args, scan})
}

// QueueFirst is Queue of a statement that comes before those that are queued.
func (b *Batch) QueueFirst(sql string, args []any, scan func(*Rows) error) {
	b.items = slices.Insert(b.items, 0, batchItem{sql, args, scan})
}

// Len is the number of statements queued and of calls of Collect.
func (b *Batch) Len() int { return len(b.items) + b.collected }

// read passes the rows of one item to its scan function.
func (it batchItem) read(rows *Rows) error {
	var err error
	if it.scan != nil {
		err = it.scan(rows)
	}
	closeErr := rows.Close()
	if err == nil {
		err = rows.Err()
	}
	if err == nil {
		err = closeErr
	}
	return err
}

// pipeline is a transaction of either backend.
type pipeline interface {
	querier
	insertMany(ctx context.Context, table string, columns []CopyColumn) error
	commit(ctx context.Context, last *Batch) error
	rollback()
}

// Pipeline is a READ COMMITTED transaction without round trips of its own. It
// ends with Commit or Rollback, one of which must be called. On SQLite, a cancellation does not
// interrupt a statement: the next one fails.
type Pipeline struct {
	*Tx
	p  pipeline
	db *DB
}

// Pipeline begins a transaction; BEGIN travels with the statements of first. If first is nil, the
// transaction has the statements of Commit only, and BEGIN travels with them if the database needs it.
// It is never retried: see [IsRetryable] for errors that invite the caller to.
func (db *DB) Pipeline(ctx context.Context, first *Batch) (*Pipeline, error) {
	var notices []notice
	if first != nil {
		first.complete(db.Dialect())
		notices = slices.Clone(first.notices)
	}
	p, err := db.backend.pipeline(ctx, first)
	if err != nil {
		return nil, err
	}
	return &Pipeline{&Tx{q: p, dialect: db.Dialect(), notices: notices}, p, db}, nil
}

// InsertMany inserts many rows, which takes a round trip of its own. On PostgreSQL it copies them
// (COPY FROM STDIN), which takes three quarters of the time of an INSERT; on other databases it
// fails. CockroachDB copies within transactions, too, but Stonetown has not been run on it.
func (p *Pipeline) InsertMany(ctx context.Context, table string, columns []CopyColumn) error {
	return p.p.insertMany(ctx, table, columns)
}

// Commit runs the statements of last and commits in the same round trip. If
// the outcome is unknown the error is an [*AmbiguousCommitError]; any other
// error means that nothing was applied.
func (p *Pipeline) Commit(ctx context.Context, last *Batch) error {
	last.complete(p.db.Dialect())
	err := p.p.commit(ctx, last)
	p.db.listeners.deliver(append(p.notices, last.notices...), err)
	return err
}

// ReadCommitted runs two batches in a transaction at READ COMMITTED. BEGIN travels with the
// first and COMMIT with the last, which can depend on the rows of the first; if the first has no
// statements, all travel at once. If the database rolls the transaction back because of others,
// both are made and run again. Errors are those of [Pipeline.Commit].
func (db *DB) ReadCommitted(ctx context.Context, first, last func(*Batch)) error {
	return retried(ctx, func() error {
		var b Batch
		first(&b)
		begin := &b
		if b.Len() == 0 {
			begin = nil
		}
		p, err := db.Pipeline(ctx, begin)
		if err != nil {
			return err
		}
		defer p.Rollback()
		b = Batch{}
		last(&b)
		return p.Commit(ctx, &b)
	})
}

// Rollback ends the transaction without effect. After Commit it does nothing.
func (p *Pipeline) Rollback() { p.p.rollback() }
