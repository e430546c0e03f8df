// Package tenantkeys stores the keys that imported tenants had in other deployments, so that
// what was sealed there, or derived from these keys, remains valid ([seal.ImportedKeys]).
//
// The keys are sealed under the master key of this deployment. A tenant is imported in one
// transaction with its keys, and they never change, so a process reads them once.
package tenantkeys

import (
	"context"
	"embed"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's table.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("tenantkeys", migrations) }

const (
	// cacheSize bounds the tenants whose keys, of which most have none, are in memory.
	cacheSize = 16384
	// readTimeout bounds the time of reading the keys of a tenant.
	readTimeout = 5 * time.Second
)

// Store is the [seal.ImportedKeys] of a deployment. It is safe for concurrent use.
//
// It has a connection of its own, which is opened when it is first used: values are opened within
// transactions, and these may hold all connections of the pool.
type Store struct {
	master *seal.Key
	config sqldb.Config
	cache  *lru.Cache[string, []*seal.TenantKey]

	mu sync.Mutex
	db *sqldb.DB // nil before its first use
}

// New returns the store in a database, whose table is [Migrations]. It must be closed.
func New(master *seal.Key, database sqldb.Config) (*Store, error) {
	cache, err := lru.New[string, []*seal.TenantKey](cacheSize)
	if err != nil {
		return nil, fmt.Errorf("tenantkeys: %w", err)
	}
	database.MaxConns, database.ReadOnly = 1, true
	return &Store{master: master, config: database, cache: cache}, nil
}

// Close closes the connection of the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// Keys implements [seal.ImportedKeys].
func (s *Store) Keys(tenantID string) ([]*seal.TenantKey, error) {
	if keys, ok := s.cache.Get(tenantID); ok {
		return keys, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	db, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := Read(ctx, db, s.master, tenantID)
	if err == nil {
		s.cache.Add(tenantID, keys)
	}
	return keys, err
}

func (s *Store) open(ctx context.Context) (_ *sqldb.DB, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		s.db, err = sqldb.Open(ctx, s.config)
	}
	return s.db, err
}

// Read returns the keys of a tenant as [seal.ImportedKeys] does.
func Read(ctx context.Context, q interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}, master *seal.Key, tenantID string,
) (keys []*seal.TenantKey, err error) {
	rows, err := q.Query(ctx, `SELECT key_id, sealed FROM tenant_keys WHERE tenant_id = $1 ORDER BY position`, tenantID)
	if err != nil {
		return nil, fmt.Errorf("read tenant keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var keyID string
		var sealed []byte
		if err := rows.Scan(&keyID, &sealed); err != nil {
			return nil, fmt.Errorf("read tenant keys: %w", err)
		}
		key, err := openKey(master, tenantID, keyID, sealed)
		if err != nil {
			return nil, fmt.Errorf("read tenant keys: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, rows.Err()
}

func openKey(master *seal.Key, tenantID, keyID string, sealed []byte) (*seal.TenantKey, error) {
	id, err := seal.ParseKeyID(keyID)
	if err != nil {
		return nil, err
	}
	raw, err := master.Open(tenantID, sealedID(keyID), sealed)
	if err != nil {
		return nil, err
	}
	return seal.NewTenantKey(id, raw)
}

// Add queues that a tenant, which is imported in the same transaction, had these keys.
func Add(b *sqldb.Batch, master *seal.Key, tenantID string, keys []*seal.TenantKey) {
	for position, key := range keys {
		id := key.ID().String()
		b.Queue(`INSERT INTO tenant_keys (tenant_id, position, key_id, sealed) VALUES ($1, $2, $3, $4)`,
			[]any{tenantID, position, id, master.Seal(tenantID, sealedID(id), key.Bytes())}, nil)
	}
}

func sealedID(keyID string) string { return "tenant key " + keyID }
