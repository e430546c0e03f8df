package sqldb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Snapshot runs fn once in a transaction that only reads, in which every statement reads the
// database as it was at the first one. Writers go on meanwhile; their versions of rows, and on
// SQLite the write-ahead log, are kept until it ends. On CockroachDB it can fail because of
// concurrent writes; [IsRetryable] then invites the caller to repeat it.
func (db *DB) Snapshot(ctx context.Context, fn func(*Tx) error) error {
	return db.backend.snapshot(ctx, func(tx *Tx) error {
		tx.dialect = db.Dialect()
		return fn(tx)
	})
}

func (pg *postgres) snapshot(ctx context.Context, fn func(*Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	if pg.cockroach {
		options.IsoLevel = pgx.Serializable
	}
	return pgx.BeginTxFunc(ctx, pg.pool, options, func(tx pgx.Tx) error { return fn(&Tx{q: pgQuerier{tx}}) })
}

func (l *lite) snapshot(ctx context.Context, fn func(*Tx) error) (err error) {
	tx, err := l.readers.BeginTx(ctx, nil) // deferred; connections of this pool only read
	if err != nil {
		return err
	}
	q := newLiteQuerier(tx, l.st)
	defer func() { err = errors.Join(err, q.close(), tx.Rollback()) }()
	return fn(&Tx{q: q})
}
