package samlkeys

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"stonetown/internal/rotation"
	"stonetown/internal/sqldb"
)

const (
	// insertKey writes the present state of a key. It violates an index if another key of the use
	// is active or next.
	insertKey = `
		INSERT INTO saml_keys (tenant_id, key_use, id, state, private_sealed, certificate, created_at, activated_at, retired_at, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (tenant_id, key_use, id) DO UPDATE SET state = excluded.state,
			activated_at = excluded.activated_at, retired_at = excluded.retired_at, due_at = excluded.due_at`
	deleteKey  = `DELETE FROM saml_keys WHERE tenant_id = $1 AND key_use = $2 AND id = $3`
	selectUse  = `SELECT id, state, private_sealed, certificate, created_at, activated_at, retired_at FROM saml_keys WHERE tenant_id = $1 AND key_use = $2 ORDER BY state, id`
	selectOwed = `SELECT tenant_id, key_use FROM saml_keys WHERE due_at <= $1`
)

func putKey(b *sqldb.Batch, tenantID string, k Key) {
	b.Queue(insertKey, []any{
		tenantID, string(k.Use), k.ID, string(k.State), k.sealed, k.Certificate.Raw,
		k.CreatedAt.UnixMicro(), sqldb.Micros(k.ActivatedAt), sqldb.Micros(k.RetiredAt), k.dueAt().UnixMicro(),
	}, nil)
}

// selectKeys reads the keys of a tenant for a use, the active one first.
func selectKeys(ctx context.Context, from rotation.Querier, of owner) (keys []Key, err error) {
	rows, err := from.Query(ctx, selectUse, of.tenantID, string(of.use))
	if err != nil {
		return nil, fmt.Errorf("read SAML keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		k := Key{Use: of.use}
		var der []byte
		var created, activated, retired int64
		if err := rows.Scan(&k.ID, (*string)(&k.State), &k.sealed, &der, &created, &activated, &retired); err != nil {
			return nil, fmt.Errorf("read SAML keys: %w", err)
		}
		if k.Certificate, err = x509.ParseCertificate(der); err != nil {
			return nil, fmt.Errorf("read SAML key %s: %w", k.ID, err)
		}
		k.CreatedAt, k.ActivatedAt, k.RetiredAt = sqldb.Instant(created), sqldb.Instant(activated), sqldb.Instant(retired)
		keys = append(keys, k)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read SAML keys: %w", err)
	}
	return keys, nil
}

// selectDue reads the owners of keys for which a step may be due.
func selectDue(ctx context.Context, db *sqldb.DB, now time.Time) (map[owner]bool, error) {
	rows, err := db.Query(ctx, selectOwed, now.UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("read due SAML keys: %w", err)
	}
	defer rows.Close()
	owners := map[owner]bool{}
	for rows.Next() {
		var of owner
		if err := rows.Scan(&of.tenantID, (*string)(&of.use)); err != nil {
			return nil, fmt.Errorf("read due SAML keys: %w", err)
		}
		owners[of] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read due SAML keys: %w", err)
	}
	return owners, nil
}
