package sqldb

import "context"

// Tx is an open transaction. It runs one statement at a time and is not safe for concurrent
// use.
type Tx struct {
	q       querier
	dialect Dialect
	notices []notice // of the batches sent
}

// Query runs a statement and returns its rows, which the caller closes before
// the next statement.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (*Rows, error) {
	return tx.q.query(ctx, sql, args)
}

// QueryRow runs a statement and returns its first row.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) *Row {
	return newRow(tx.Query(ctx, sql, args...))
}

// Exec runs a statement and returns how many rows it wrote.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (rowsAffected int64, err error) {
	return tx.q.exec(ctx, sql, args)
}

// Send runs the statements of b in order, in one round trip.
func (tx *Tx) Send(ctx context.Context, b *Batch) error {
	b.complete(tx.dialect)
	tx.notices = append(tx.notices, b.notices...)
	return tx.q.send(ctx, b)
}

// Tx runs fn in a serializable transaction and commits it if fn returns nil.
// If it conflicts with others, the transaction is rolled back and fn runs
// again from its beginning, so fn must have effects only through tx. PostgreSQL
// then gets a new transaction, CockroachDB the same one from a savepoint
// (github.com/cockroachdb/cockroach-go). On SQLite, which has one writer, fn runs
// once.
//
// The error is fn's own, the database's, or an [*AmbiguousCommitError].
func (db *DB) Tx(ctx context.Context, fn func(*Tx) error) error {
	var last *Tx // of the attempt that ran last
	err := db.backend.tx(ctx, func(tx *Tx) error {
		last, tx.dialect = tx, db.Dialect()
		return fn(tx)
	})
	if last != nil {
		db.listeners.deliver(last.notices, err)
	}
	return err
}
