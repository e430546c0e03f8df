// Package transfer moves a tenant with everything it has to another deployment, which may have
// another kind of database and another master key.
//
// [Export] writes an archive and [Import] reads one, both as a stream. An archive is a file of age
// (age-encryption.org/v1), encrypted for a passphrase or a public key and authenticated, with a
// sequence of CBOR items (RFC 8742):
//
//	header                    the format, the product, the tenant, its keys, the columns of each table
//	rows … total              of each table: blocks of rows, then their number and SHA-256
//	end
//
// The rows are found by the catalog of the database: they are those of every table with a column
// tenant_id, less the few tables that describe the deployment (tables.go). They are written in the
// order of the primary key and without the tenant, and are hashed in the deterministic encoding
// of RFC 8949 §4.2, so the hash depends neither on the database nor on the deployment.
//
// An export reads one snapshot. An import is one transaction: it writes the rows, reads them back,
// compares their number and hash, and commits last, so an import that fails or is interrupted
// leaves nothing and can be repeated.
//
// Values that are sealed or derived remain valid, because the archive contains the keys of the
// tenant, of which the deployments share no other ([seal.TenantKey]). A new epoch begins for
// consistency tokens, as after a restore.
package transfer

import (
	"errors"
	"fmt"

	"stonetown/internal/seal"
)

var (
	// ErrNotArchive is returned for a file that is not an archive of a tenant.
	ErrNotArchive = errors.New("this is not an archive of a tenant")
	// ErrWrongSecret is returned if the passphrase or the private key does not open the archive.
	ErrWrongSecret = errors.New("the archive is encrypted for another passphrase or key")
	// ErrDamaged is returned for an archive that was changed or is incomplete.
	ErrDamaged = errors.New("the archive is damaged or incomplete")
)

// SchemaError is returned if an archive does not have the tables of this deployment.
type SchemaError struct {
	Made, Here string // the versions of the product
	Difference string // the first one
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the tables of the archive, made by version %s, are not those of this deployment, version %s: %s; use the same version on both sides", e.Made, e.Here, e.Difference)
}

// VerifyError is returned if the rows in the database are not those that were exported. Nothing is
// imported.
type VerifyError struct {
	Table     string
	Want, Got int64 // rows; if they are equal, the hash differs
}

func (e *VerifyError) Error() string {
	if e.Want == e.Got {
		return fmt.Sprintf("table %s: the %d rows that were written differ from those that were exported", e.Table, e.Got)
	}
	return fmt.Sprintf("table %s: %d rows were exported, %d were written", e.Table, e.Want, e.Got)
}

// Summary describes a completed export or import.
type Summary struct {
	Tables int // that have rows
	Rows   int64
}

func (s *Summary) add(rows int64) {
	s.Rows += rows
	if rows > 0 {
		s.Tables++
	}
}

// keyring are the keys of one tenant.
type keyring []*seal.TenantKey

// Keys implements [seal.ImportedKeys].
func (k keyring) Keys(string) ([]*seal.TenantKey, error) { return k, nil }
