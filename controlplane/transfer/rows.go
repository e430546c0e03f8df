package transfer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"stonetown/internal/sqldb"
)

// encoding is deterministic, so that equal rows have equal hashes.
var encoding, decoding = func() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err)
	}
	dec, err := cbor.DecOptions{
		IntDec: cbor.IntDecConvertSignedOrFail, DupMapKey: cbor.DupMapKeyEnforcedAPF,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return enc, dec
}()

// total is the number of rows and their hash.
type total struct {
	Rows int64  `cbor:"rows"`
	Hash []byte `cbor:"sha256"`
}

// sum adds up a total.
type sum struct {
	rows int64
	hash hash.Hash
}

func newSum() *sum { return &sum{hash: sha256.New()} }

func (s *sum) add(row []byte) {
	s.rows++
	s.hash.Write(row) // a row is self-delimiting
}

func (s *sum) total() total { return total{s.rows, s.hash.Sum(nil)} }

// read passes the rows of a tenant to a function, encoded. The function must not keep them.
func (t table) read(ctx context.Context, tx *sqldb.Tx, tenantID string, row func(encoded []byte) error) error {
	rows, err := tx.Query(ctx, t.selectRows(), t.of.Tenant(tenantID))
	if err != nil {
		return fmt.Errorf("table %s: %w", t.Name, err)
	}
	defer rows.Close()
	targets, values := t.targets()
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		found := values()
		for i, value := range found {
			if text, ok := value.(string); ok && !sqldb.IsText(text) {
				return fmt.Errorf("table %s: the column %s has a value that is no text", t.Name, t.Columns[i].Name)
			}
		}
		encoded, err := encoding.Marshal(found)
		if err == nil {
			err = row(encoded)
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("table %s: %w", t.Name, err)
	}
	return nil
}

// targets returns what a row is scanned into, and a function that returns its values.
func (t table) targets() (targets []any, values func() []any) {
	read := make([]func() any, len(t.Columns))
	targets = make([]any, len(t.Columns))
	for i, c := range t.Columns {
		switch c.Type {
		case sqldb.Text:
			targets[i], read[i] = nullable[string]()
		case sqldb.Integer:
			targets[i], read[i] = nullable[int64]()
		case sqldb.Boolean:
			targets[i], read[i] = nullable[bool]()
		case sqldb.Bytes:
			b := new([]byte)
			targets[i], read[i] = b, func() any { return sqldb.Blob(*b) }
		}
	}
	row := make([]any, len(t.Columns))
	return targets, func() []any {
		for i := range row {
			row[i] = read[i]()
		}
		return row
	}
}

// nullable returns the target of a column that may be NULL, and a function that returns its value.
func nullable[T any]() (target any, value func() any) {
	p := new(*T)
	return p, func() any {
		if *p == nil {
			return nil
		}
		return **p
	}
}

// decode returns the values of an encoded row, if they have the types of the columns.
func (t table) decode(encoded []byte) ([]any, error) {
	var row []any
	if err := decoding.Unmarshal(encoded, &row); err != nil || len(row) != len(t.Columns) {
		return nil, fmt.Errorf("table %s: %w", t.Name, ErrDamaged)
	}
	for i, c := range t.Columns {
		ok := row[i] == nil
		switch row[i].(type) {
		case string:
			ok = c.Type == sqldb.Text
		case int64:
			ok = c.Type == sqldb.Integer
		case bool:
			ok = c.Type == sqldb.Boolean
		case []byte:
			ok = c.Type == sqldb.Bytes
		}
		if !ok {
			return nil, fmt.Errorf("table %s: %w", t.Name, ErrDamaged)
		}
	}
	return row, nil
}

// writer writes the rows of a table, a batch at a time.
type writer struct {
	tx        *sqldb.Tx
	tenant    any    // as the table names it
	many, one string // statements for rowsAtOnce rows and for one
}

// rowsAtOnce is the number of rows of a statement, which takes a fraction of the time of as many
// statements.
const rowsAtOnce = 64

func (t table) writer(tx *sqldb.Tx, tenantID string) writer {
	return writer{tx, t.of.Tenant(tenantID), t.insertRows(rowsAtOnce), t.insertRows(1)}
}

func (w writer) write(ctx context.Context, rows [][]any) error {
	var b sqldb.Batch
	for ; len(rows) >= rowsAtOnce; rows = rows[rowsAtOnce:] {
		b.Queue(w.many, w.values(rows[:rowsAtOnce]), nil)
	}
	for _, row := range rows {
		b.Queue(w.one, w.values([][]any{row}), nil)
	}
	return w.tx.Send(ctx, &b)
}

func (w writer) values(rows [][]any) []any {
	return slices.Concat(append([][]any{{w.tenant}}, rows...)...)
}
