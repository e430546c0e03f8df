package sqldb

import (
	"context"
	"errors"

	"github.com/cockroachdb/cockroach-go/v2/crdb"
	crdbpgx "github.com/cockroachdb/cockroach-go/v2/crdb/crdbpgxv5"
	"github.com/jackc/pgx/v5"
)

// txFromSavepoint runs a transaction with CockroachDB's client-side retries: the savepoint
// cockroach_restart is set before fn, a transaction that conflicts with others returns to it
// and keeps its priority, and releasing it commits.
//
// It is for CockroachDB only. On PostgreSQL a transaction that returns to a savepoint keeps its
// snapshot, and so the conflict, and releasing a savepoint commits nothing.
func (pg *postgres) txFromSavepoint(ctx context.Context, fn func(*Tx) error) error {
	err := crdbpgx.ExecuteTx(ctx, pg.pool, serializable, func(tx pgx.Tx) error { return fn(&Tx{q: pgQuerier{tx}}) })
	if release, ok := errors.AsType[*crdb.AmbiguousCommitError](err); ok {
		// The library returns this error for every failed release that is not retryable. The
		// server has definitely rolled back for some of them, such as a statement that had
		// failed before.
		return commitError(release.Unwrap())
	}
	return err
}
