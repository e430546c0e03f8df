package keys

import (
	"context"
	"fmt"

	"stonetown/internal/rotation"
	"stonetown/internal/sqldb"
)

// putKey queues the present state of a key. It violates an index if another key of the
// algorithm is active or next.
func putKey(b *sqldb.Batch, tenantID string, k Key) {
	b.Queue(`
		INSERT INTO signing_keys (tenant_id, kid, alg, state, private_sealed, created_at, activated_at, retired_at, removed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (tenant_id, kid) DO UPDATE SET state = excluded.state, private_sealed = excluded.private_sealed,
			activated_at = excluded.activated_at, retired_at = excluded.retired_at, removed_at = excluded.removed_at`,
		[]any{tenantID, k.KID, string(k.Alg), string(k.State), k.sealed, k.CreatedAt.UnixMicro(), sqldb.Micros(k.ActivatedAt), sqldb.Micros(k.RetiredAt), sqldb.Micros(k.RemovedAt)}, nil)
}

// keyColumns are all columns except the private key.
const keyColumns = `kid, alg, state, created_at, activated_at, retired_at, removed_at`

func scanKey(rows *sqldb.Rows, k *Key, others ...any) error {
	var created, activated, retired, removed int64
	err := rows.Scan(append([]any{&k.KID, (*string)(&k.Alg), (*string)(&k.State), &created, &activated, &retired, &removed}, others...)...)
	k.CreatedAt, k.ActivatedAt, k.RetiredAt, k.RemovedAt = sqldb.Instant(created), sqldb.Instant(activated), sqldb.Instant(retired), sqldb.Instant(removed)
	return err
}

// selectKeys reads the keys of a tenant by algorithm, the active one first.
func selectKeys(ctx context.Context, from rotation.Querier, tenantID string) (keys []Key, err error) {
	rows, err := from.Query(ctx, `SELECT `+keyColumns+`, private_sealed FROM signing_keys WHERE tenant_id = $1 ORDER BY alg, state, created_at DESC, kid`, tenantID)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k Key
		if err := scanKey(rows, &k, &k.sealed); err != nil {
			return nil, fmt.Errorf("read signing keys: %w", err)
		}
		keys = append(keys, k)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return keys, nil
}

// selectLivingKeys reads the keys of all tenants that are not removed, without the private
// keys.
func selectLivingKeys(ctx context.Context, db *sqldb.DB) (byTenant map[string][]Key, err error) {
	rows, err := db.Query(ctx, `SELECT `+keyColumns+`, tenant_id FROM signing_keys WHERE state <> 'removed'`)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	defer rows.Close()
	byTenant = map[string][]Key{}
	for rows.Next() {
		var k Key
		var tenantID string
		if err := scanKey(rows, &k, &tenantID); err != nil {
			return nil, fmt.Errorf("read signing keys: %w", err)
		}
		byTenant[tenantID] = append(byTenant[tenantID], k)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return byTenant, nil
}
