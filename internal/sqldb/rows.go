package sqldb

import (
	"database/sql"
	"errors"
)

// ErrNoRows is returned by [Row.Scan] if the statement had no row.
var ErrNoRows = sql.ErrNoRows

// cursor is the common part of the rows of pgx and database/sql.
type cursor interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
}

// Rows is the answer to a query, read row by row. It is not safe for
// concurrent use. Within a transaction, close it before the next statement.
type Rows struct {
	cursor
	close func() error // may be called again
	fail  func(error)  // called with the first error; may be nil
}

// Next moves to the next row; after the last one it closes the rows.
func (r *Rows) Next() bool {
	if r.cursor.Next() {
		return true
	}
	r.failed(r.cursor.Err())
	return false
}

// Err returns the error that ended the rows early. Call it after Next returned false.
func (r *Rows) Err() error { return r.cursor.Err() }

// Close ends the rows; it may be called more than once. A caller that read to the end and
// called Err can ignore its error.
func (r *Rows) Close() error {
	err := r.close()
	r.failed(err)
	return err
}

func (r *Rows) failed(err error) {
	if err != nil && r.fail != nil {
		r.fail(err)
	}
}

// First returns the first row. It closes the rows when it is scanned.
func (r *Rows) First() *Row { return newRow(r, nil) }

// Row is the first row of a query.
type Row struct {
	rows *Rows
	err  error
}

func newRow(rows *Rows, err error) *Row { return &Row{rows, err} }

// Scan copies the columns into dest. It fails with [ErrNoRows] when there is
// no row.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	if !r.rows.Next() {
		if err := errors.Join(r.rows.Err(), r.rows.Close()); err != nil {
			return err
		}
		return ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return errors.Join(err, r.rows.Close())
	}
	return r.rows.Close()
}

// Texts returns the first column of all rows, which it closes. It accepts the results of a
// query, including the error.
func Texts(rows *Rows, err error) (texts []string, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, rows.Err()
}
