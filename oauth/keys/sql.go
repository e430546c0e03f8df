package keys

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/rotation"
	"stonetown/internal/sqldb"
)

const (
	selectTenantKeys = `
		SELECT kid, alg, state, created_at, activated_at, retired_at, removed_at, due_at, private_sealed FROM signing_keys
		WHERE tenant_id = $1 ORDER BY alg, state, created_at DESC, kid`

	// The condition on the state is that of the index signing_keys_active.
	countActive = `SELECT COUNT(*) FROM signing_keys WHERE tenant_id = $1 AND alg = $2 AND state = 'active'`

	selectDueKeys = `
		SELECT tenant_id, kid, due_at FROM signing_keys
		WHERE due_at <= $1 AND (due_at, kid) > ($2, $3) ORDER BY due_at, kid LIMIT $4`

	deleteRecords = `DELETE FROM signing_keys WHERE due_at > 0 AND due_at <= $1 AND state = 'removed'`
)

// putKey queues the present state of a key. It violates an index if another key of the
// algorithm is active or next.
func putKey(b *sqldb.Batch, tenantID string, k Key) {
	b.Queue(`
		INSERT INTO signing_keys (tenant_id, kid, alg, state, private_sealed, created_at, activated_at, retired_at, removed_at, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (tenant_id, kid) DO UPDATE SET state = excluded.state, private_sealed = excluded.private_sealed,
			activated_at = excluded.activated_at, retired_at = excluded.retired_at, removed_at = excluded.removed_at, due_at = excluded.due_at`,
		[]any{
			tenantID, k.KID, string(k.Alg), string(k.State), k.sealed, k.CreatedAt.UnixMicro(), sqldb.Micros(k.ActivatedAt), sqldb.Micros(k.RetiredAt),
			sqldb.Micros(k.RemovedAt), k.dueAt.UnixMicro(),
		}, nil)
}

// selectKeys reads the keys of a tenant by algorithm, the active one first.
func selectKeys(ctx context.Context, from rotation.Querier, tenantID string) (keys []Key, err error) {
	rows, err := from.Query(ctx, selectTenantKeys, tenantID)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k Key
		var created, activated, retired, removed, due int64
		if err := rows.Scan(&k.KID, (*string)(&k.Alg), (*string)(&k.State), &created, &activated, &retired, &removed, &due, &k.sealed); err != nil {
			return nil, fmt.Errorf("read signing keys: %w", err)
		}
		k.CreatedAt, k.ActivatedAt, k.RetiredAt = sqldb.Instant(created), sqldb.Instant(activated), sqldb.Instant(retired)
		k.RemovedAt, k.dueAt = sqldb.Instant(removed), sqldb.Instant(due)
		keys = append(keys, k)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return keys, nil
}

// hasActive reports whether a tenant has an active key of an algorithm.
func hasActive(ctx context.Context, tx *sqldb.Tx, tenantID string, alg Alg) (bool, error) {
	var n int64
	err := tx.QueryRow(ctx, countActive, tenantID, string(alg)).Scan(&n)
	return n > 0, err
}

// dueKey is a key of which a step is due.
type dueKey struct {
	tenantID, kid string
	due           int64 // microseconds since 1970
}

// selectDue reads the first keys after another one of which a step is due, the longest overdue
// first. Those of older versions of the product have no time yet.
func selectDue(ctx context.Context, db *sqldb.DB, now time.Time, after dueKey) (page []dueKey, err error) {
	rows, err := db.Query(ctx, selectDueKeys, now.UnixMicro(), after.due, after.kid, rotatedAtOnce)
	if err != nil {
		return nil, fmt.Errorf("read due signing keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var key dueKey
		if err := rows.Scan(&key.tenantID, &key.kid, &key.due); err != nil {
			return nil, fmt.Errorf("read due signing keys: %w", err)
		}
		page = append(page, key)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read due signing keys: %w", err)
	}
	return page, nil
}

// DeleteRecords deletes the removed keys that have been listed for [RecordedFor].
func (s *Service) DeleteRecords(ctx context.Context) error {
	if _, err := s.db.Exec(ctx, deleteRecords, s.clock().UnixMicro()); err != nil {
		return fmt.Errorf("delete removed signing keys: %w", err)
	}
	return nil
}
