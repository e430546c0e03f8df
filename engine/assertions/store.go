//go:build !js

package assertions

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the table of stored sets.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("assertions", migrations) }

// MaxSets is the number of sets that a tenant may store.
const MaxSets = 100

var (
	// ErrNotFound is returned for a set that is not stored.
	ErrNotFound = errors.New("no assertions of this name are stored")
	// ErrTooMany is returned if a tenant has [MaxSets].
	ErrTooMany = fmt.Errorf("a tenant has at most %d sets of assertions", MaxSets)
)

// Stored is a set of a tenant.
type Stored struct {
	Name                 string
	Document             []byte // the set as JSON, in the form of the API; empty in lists
	Assertions           int    // how many there are in it
	CreatedAt, UpdatedAt time.Time
}

// Store stores the sets of tenants. It is safe for concurrent use.
type Store struct{ db *sqldb.DB }

// NewStore returns the store in a database.
func NewStore(db *sqldb.DB) *Store { return &Store{db} }

// Put stores a set, with the event assertions.stored unless it is the stored one. created: there was
// none of this name. It fails with [ErrTooMany].
func (s *Store) Put(ctx context.Context, tenantID string, set Stored) (stored Stored, created bool, err error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		// The event is first: it locks the log, so that the puts of a tenant wait for each other.
		// If nothing changes, it is undone.
		var event sqldb.Batch
		eventlog.Append(&event, tenantID, setStored(ctx, set))
		if err := tx.Send(ctx, &event); err != nil {
			return err
		}
		before, err := one(ctx, tx, tenantID, set.Name)
		created = errors.Is(err, ErrNotFound)
		if err != nil && !created {
			return err
		}
		if stored = before; !created && string(before.Document) == string(set.Document) {
			return errUnchanged
		}
		stored = set
		stored.CreatedAt, stored.UpdatedAt = before.CreatedAt, now
		if created {
			stored.CreatedAt = now
		}
		if _, err := tx.Exec(ctx, `
			INSERT INTO assertion_sets (tenant_id, name, document, assertions, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (tenant_id, name) DO UPDATE
			SET document = excluded.document, assertions = excluded.assertions, updated_at = excluded.updated_at`,
			tenantID, set.Name, string(set.Document), int64(set.Assertions), now.UnixMicro(), now.UnixMicro()); err != nil {
			return err
		}
		var count int
		if err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM assertion_sets WHERE tenant_id = $1`, tenantID).Scan(&count); err != nil {
			return err
		}
		if count > MaxSets {
			return ErrTooMany
		}
		return nil
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return Stored{}, false, fmt.Errorf("store assertions: %w", err)
	}
	return stored, created, nil
}

// errUnchanged undoes a transaction that would change nothing.
var errUnchanged = errors.New("unchanged")

// Get reads a set. It fails with [ErrNotFound].
func (s *Store) Get(ctx context.Context, tenantID, name string) (Stored, error) {
	set, err := one(ctx, s.db, tenantID, name)
	if err != nil {
		return Stored{}, fmt.Errorf("read assertions: %w", err)
	}
	return set, nil
}

// List returns the sets of a tenant by name, without their documents.
func (s *Store) List(ctx context.Context, tenantID string) (sets []Stored, err error) {
	rows, err := s.db.Query(ctx, `
		SELECT name, '', assertions, created_at, updated_at FROM assertion_sets
		WHERE tenant_id = $1 ORDER BY name`, tenantID)
	if err != nil {
		return nil, fmt.Errorf("list assertions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		set, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("list assertions: %w", err)
		}
		sets = append(sets, set)
	}
	return sets, rows.Err()
}

// Delete deletes a set, with the event assertions.deleted. It fails with [ErrNotFound].
func (s *Store) Delete(ctx context.Context, tenantID, name string) error {
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM assertion_sets WHERE tenant_id = $1 AND name = $2`, tenantID, name)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, setDeleted(ctx, name))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("delete assertions: %w", err)
	}
	return nil
}

// querier is a database or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

func one(ctx context.Context, from querier, tenantID, name string) (Stored, error) {
	set, err := scan(from.QueryRow(ctx, `
		SELECT name, document, assertions, created_at, updated_at FROM assertion_sets
		WHERE tenant_id = $1 AND name = $2`, tenantID, name))
	if errors.Is(err, sqldb.ErrNoRows) {
		err = ErrNotFound
	}
	return set, err
}

func scan(row interface{ Scan(into ...any) error }) (set Stored, err error) {
	var document string
	var created, updated int64
	if err := row.Scan(&set.Name, &document, &set.Assertions, &created, &updated); err != nil {
		return Stored{}, err
	}
	set.Document = []byte(document)
	set.CreatedAt, set.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	return set, nil
}
