// Package rotation changes a short list of rows, such as the keys of a tenant, by steps that are a
// function of the rows and the time. Every process may take the steps that are due: they are
// written if the rows are still those for which they were planned, and otherwise planned again. So
// no process leads, and two that do so at once take each step once.
package rotation

import (
	"context"
	"errors"
	"reflect"
	"time"

	"stonetown/internal/sqldb"
)

// Querier is a database or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}

// Rows are rows that rotate together. All fields are required.
type Rows[R any] struct {
	DB    *sqldb.DB
	Clock func() time.Time
	// Read reads all rows, in an order that depends on them only.
	Read func(ctx context.Context, from Querier) ([]R, error)
	// Plan returns the rows that change at a time, as they are afterwards; none: there is nothing
	// to do. It may take long, because no transaction waits for it.
	Plan func(rows []R, now time.Time) (changed []R, err error)
	// Write queues the changed rows. It may violate a constraint if other changes were made at the
	// same time.
	Write func(b *sqldb.Batch, before, changed []R, now time.Time)
}

// errChanged is the error of a transaction whose rows were changed since they were read.
var errChanged = errors.New("the rows were changed concurrently")

// Advance takes the steps that are due and returns the rows afterwards. changed reports whether
// there were any.
func (r Rows[R]) Advance(ctx context.Context) (after []R, changed bool, err error) {
	for {
		before, err := r.Read(ctx, r.DB)
		if err != nil {
			return nil, false, err
		}
		now := r.Clock().UTC().Truncate(time.Microsecond)
		changes, err := r.Plan(before, now)
		if err != nil {
			return nil, false, err
		}
		if len(changes) == 0 {
			return before, false, nil
		}
		err = r.DB.Tx(ctx, func(tx *sqldb.Tx) error {
			again, err := r.Read(ctx, tx)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(before, again) {
				return errChanged
			}
			var b sqldb.Batch
			r.Write(&b, before, changes, now)
			return tx.Send(ctx, &b)
		})
		switch {
		case err == nil:
			after, err = r.Read(ctx, r.DB)
			return after, true, err
		case !errors.Is(err, errChanged) && !sqldb.IsUniqueViolation(err):
			return nil, false, err
		}
	}
}
