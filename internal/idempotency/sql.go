package idempotency

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

// shards spread the index by expiry, so that new keys do not all land on its end.
const shards = 16

// collectAtOnce bounds one transaction of the collection.
const collectAtOnce = 500

type row struct {
	requestHash [32]byte
	commitID    string
	holder      string
	leaseUntil  int64
	status      int
	response    []byte
	expiresAt   int64
}

func (s *Store) insert(ctx context.Context, c *Claim, now time.Time) (bool, error) {
	n, err := s.db.Exec(ctx, `
		INSERT INTO idempotency_keys (tenant_id, scope_hash, request_hash, commit_id, holder, lease_until, status, response, shard, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9)
		ON CONFLICT (tenant_id, scope_hash) DO NOTHING`,
		c.request.Tenant, c.request.Scope[:], c.request.Hash[:], c.CommitID, c.holder, now.Add(s.lease).UnixMicro(),
		[]byte{}, int64(c.request.Scope[0]%shards), now.Add(Window).UnixMicro())
	return n == 1, err
}

func (s *Store) read(ctx context.Context, r Request) (row, error) {
	var have row
	var hash []byte
	err := s.db.QueryRow(ctx, `
		SELECT request_hash, commit_id, holder, lease_until, status, response, expires_at
		FROM idempotency_keys WHERE tenant_id = $1 AND scope_hash = $2`, r.Tenant, r.Scope[:]).
		Scan(&hash, &have.commitID, &have.holder, &have.leaseUntil, &have.status, &have.response, &have.expiresAt)
	if err == nil && copy(have.requestHash[:], hash) != len(have.requestHash) {
		return have, fmt.Errorf("stored hash is damaged")
	}
	return have, err
}

func (s *Store) takeOver(ctx context.Context, c *Claim, have row, now time.Time) (bool, error) {
	n, err := s.db.Exec(ctx, `
		UPDATE idempotency_keys SET holder = $3, lease_until = $4
		WHERE tenant_id = $1 AND scope_hash = $2 AND holder = $5 AND lease_until = $6 AND status = 0`,
		c.request.Tenant, c.request.Scope[:], c.holder, now.Add(s.lease).UnixMicro(), have.holder, have.leaseUntil)
	return n == 1, err
}

func (s *Store) complete(ctx context.Context, c *Claim, status int, sealed []byte) error {
	_, err := s.db.Exec(ctx, `
		UPDATE idempotency_keys SET status = $4, response = $5
		WHERE tenant_id = $1 AND scope_hash = $2 AND holder = $3`,
		c.request.Tenant, c.request.Scope[:], c.holder, int64(status), sealed)
	return err
}

func (s *Store) release(ctx context.Context, c *Claim) error {
	_, err := s.db.Exec(ctx, `
		UPDATE idempotency_keys SET lease_until = 0
		WHERE tenant_id = $1 AND scope_hash = $2 AND holder = $3 AND status = 0`,
		c.request.Tenant, c.request.Scope[:], c.holder)
	return err
}

func (s *Store) deleteExpired(ctx context.Context, r Request, now time.Time) error {
	_, err := s.db.Exec(ctx, `DELETE FROM idempotency_keys WHERE tenant_id = $1 AND scope_hash = $2 AND expires_at <= $3`,
		r.Tenant, r.Scope[:], now.UnixMicro())
	return err
}

// Collect deletes expired keys.
func (s *Store) Collect(ctx context.Context) error {
	for shard := range shards {
		for {
			var deleted int64
			err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
				var err error
				deleted, err = tx.Exec(ctx, `
					DELETE FROM idempotency_keys WHERE (tenant_id, scope_hash) IN (
						SELECT tenant_id, scope_hash FROM idempotency_keys
						WHERE shard = $1 AND expires_at <= $2 ORDER BY expires_at LIMIT $3)`,
					int64(shard), s.clock().UnixMicro(), int64(collectAtOnce))
				return err
			})
			if err != nil {
				return err
			}
			if deleted < collectAtOnce {
				break
			}
		}
	}
	return nil
}
