package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// expiryActor is the actor of the deletion of expired tuples.
const expiryActor = "expiry"

// Expire deletes the tuples that had expired at an instant. That changes no answer, because
// expired tuples do not hold. They are deleted by ordinary writes, so the history does not
// change, and a tuple whose expiry was postponed meanwhile stays. Several processes may run
// it concurrently.
func (s *Store) Expire(ctx context.Context, before time.Time) error {
	return s.eachTenant(ctx, selectExpiring, func(tenant string) error {
		for {
			ops, err := s.expired(ctx, tenant, before.UnixMicro())
			if err != nil {
				return fmt.Errorf("expire: %w", err)
			}
			if len(ops) == 0 {
				return nil
			}
			_, err = s.Write(ctx, tenant, tuplestore.Write{Actor: expiryActor, Ops: ops})
			if _, busy := errors.AsType[*tuplestore.BusyError](err); busy {
				return nil // other writes take precedence; the next run continues
			}
			if err != nil {
				return fmt.Errorf("expire: %w", err)
			}
		}
	}, before.UnixMicro())
}

// expired returns ops that delete the tuples that expired first.
func (s *Store) expired(ctx context.Context, tenant string, before int64) ([]tuplestore.Op, error) {
	sql, st := s.findExpired(tenant, before)
	rows, err := s.DB.Query(ctx, sql, st.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ops []tuplestore.Op
	for rows.Next() {
		var k keyParts
		if err := rows.Scan(&k[0], &k[1], &k[2], &k[3]); err != nil {
			return nil, err
		}
		ops = append(ops, tuplestore.Op{Kind: tuplestore.Expire, Tuple: tuple(k), Qualifier: tuplestore.Qualifier{ExpiresAt: before}})
	}
	return ops, rows.Err()
}

func (s *Store) findExpired(tenant string, before int64) (string, *statement) {
	st := &statement{dialect: s.DB.Dialect(), args: []any{sqldb.TenantNumber(tenant), before, int64(collectAtOnce)}}
	return fmt.Sprintf(`SELECT %s FROM %s WHERE t.tenant_number = $1 AND t.expires_at <> 0 AND t.expires_at <= $2 ORDER BY t.expires_at LIMIT $3`,
		keyList("t."), st.table(live, "by_expiry")), st
}
