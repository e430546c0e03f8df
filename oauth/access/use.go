package access

import (
	"errors"

	"stonetown/internal/sqldb"
)

// ErrUsed is returned by a transaction that consumes a code or token that another request has
// consumed before.
var ErrUsed = errors.New("the code or token was used concurrently")

// useOnce queues the update that consumes one row. If it matches no row, because another
// request was first, the transaction fails with ErrUsed.
func useOnce(b *sqldb.Batch, update string, args ...any) {
	b.Queue(update+` RETURNING 1`, args, func(rows *sqldb.Rows) error {
		if rows.Next() || rows.Err() != nil {
			return rows.Err()
		}
		return ErrUsed
	})
}
