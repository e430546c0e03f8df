package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"github.com/fxamacker/cbor/v2"
)

const (
	format        = "stonetown tenant"
	formatVersion = 1

	// A block has at most this many rows, and ends with the row by which it has this many bytes.
	blockRows  = 256
	blockBytes = 256 << 10
)

// header is the first item of an archive.
type header struct {
	Format     string  `cbor:"format"`
	Version    int     `cbor:"version"`
	Product    string  `cbor:"product"`     // the version that made the archive
	ExportedAt int64   `cbor:"exported_at"` // microseconds since 1970
	Tenant     tenant  `cbor:"tenant"`
	Keys       []key   `cbor:"keys"` // the first one's first
	Tables     []table `cbor:"tables"`
}

type tenant struct {
	ID          string            `cbor:"id"`
	Slug        string            `cbor:"slug"`
	Name        string            `cbor:"name"`
	BaseURL     string            `cbor:"base_url"`
	Environment string            `cbor:"environment"`
	RateLimits  map[string]string `cbor:"rate_limits"`
	Branding    string            `cbor:"branding,omitempty"`
}

// key is a [seal.TenantKey].
type key struct {
	ID     string `cbor:"id"`
	Secret []byte `cbor:"secret"`
}

// block is an item after the header: rows of the current table, its end, or the end of the archive.
type block struct {
	Rows  []cbor.RawMessage `cbor:"rows,omitempty"`
	Total *total            `cbor:"total,omitempty"`
	End   bool              `cbor:"end,omitempty"`
}

// archiveWriter writes an archive.
type archiveWriter struct {
	encrypted io.WriteCloser
	items     *cbor.Encoder
	rows      []cbor.RawMessage // of the block that is being filled
	size      int
	sum       *sum // of the table
}

func newArchive(w io.Writer, h header, recipients []age.Recipient) (*archiveWriter, error) {
	encrypted, err := age.Encrypt(w, recipients...)
	if err != nil {
		return nil, fmt.Errorf("encrypt archive: %w", err)
	}
	a := &archiveWriter{encrypted: encrypted, items: encoding.NewEncoder(encrypted), sum: newSum()}
	return a, a.items.Encode(h)
}

// row adds a row to the table.
func (a *archiveWriter) row(encoded []byte) error {
	a.sum.add(encoded)
	a.rows = append(a.rows, bytes.Clone(encoded))
	if a.size += len(encoded); len(a.rows) < blockRows && a.size < blockBytes {
		return nil
	}
	return a.flush()
}

func (a *archiveWriter) flush() error {
	if len(a.rows) == 0 {
		return nil
	}
	err := a.items.Encode(block{Rows: a.rows})
	a.rows, a.size = a.rows[:0], 0
	return err
}

// endTable ends the table and returns the number of its rows.
func (a *archiveWriter) endTable() (rows int64, err error) {
	if err := a.flush(); err != nil {
		return 0, err
	}
	t := a.sum.total()
	a.sum = newSum()
	return t.Rows, a.items.Encode(block{Total: &t})
}

// close ends the archive.
func (a *archiveWriter) close() error {
	if err := a.items.Encode(block{End: true}); err != nil {
		return err
	}
	return a.encrypted.Close()
}

// archiveReader reads an archive.
type archiveReader struct {
	header
	items *cbor.Decoder
}

func openArchive(r io.Reader, identities []age.Identity) (*archiveReader, error) {
	decrypted, err := age.Decrypt(r, identities...)
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		return nil, ErrWrongSecret
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotArchive, err)
	}
	a := &archiveReader{items: decoding.NewDecoder(decrypted)}
	// The version comes first: the header of another one may have other members.
	var first cbor.RawMessage
	if err := a.next(&first); err != nil {
		return nil, err
	}
	var preface struct {
		Format  string `cbor:"format"`
		Version int    `cbor:"version"`
	}
	if err := cbor.Unmarshal(first, &preface); err != nil || preface.Format != format {
		return nil, ErrNotArchive
	}
	if preface.Version != formatVersion {
		return nil, fmt.Errorf("the archive has the format version %d; this version of the product reads %d", preface.Version, formatVersion)
	}
	if err := decoding.Unmarshal(first, &a.header); err != nil {
		return nil, ErrDamaged
	}
	return a, nil
}

// next reads an item.
func (a *archiveReader) next(item any) error {
	if err := a.items.Decode(item); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// table passes the rows of the current table to a function, a block at a time, and returns its
// total, which it has verified.
func (a *archiveReader) table(t table, write func(rows [][]any) error) (total, error) {
	s := newSum()
	for {
		var b block
		if err := a.next(&b); err != nil {
			return total{}, err
		}
		if b.Total != nil {
			if got := s.total(); got.Rows != b.Total.Rows || !bytes.Equal(got.Hash, b.Total.Hash) {
				return total{}, fmt.Errorf("table %s: %w", t.Name, ErrDamaged)
			}
			return *b.Total, nil
		}
		if b.End || len(b.Rows) == 0 || len(b.Rows) > blockRows {
			return total{}, ErrDamaged
		}
		rows := make([][]any, len(b.Rows))
		for i, encoded := range b.Rows {
			s.add(encoded)
			var err error
			if rows[i], err = t.decode(encoded); err != nil {
				return total{}, err
			}
		}
		if err := write(rows); err != nil {
			return total{}, fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
}

// end reads the end of the archive, which also authenticates that nothing follows.
func (a *archiveReader) end() error {
	var b block
	if err := a.next(&b); err != nil {
		return err
	}
	if !b.End {
		return ErrDamaged
	}
	if err := a.items.Decode(&b); !errors.Is(err, io.EOF) {
		return ErrDamaged
	}
	return nil
}
