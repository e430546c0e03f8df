package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
)

// UpdateRateLimits changes the limits of a tenant: those in set are set, and those in clear are
// the deployment's again. It returns the result. with runs in the same transaction; it may run
// more than once, and runs also if nothing differs. UpdateRateLimits fails with
// [ErrTenantNotFound], or as with does.
func (d *Directory) UpdateRateLimits(ctx context.Context, tenantID string, set ratelimit.Limits, clear []ratelimit.Counted,
	with func(ctx context.Context, tx *sqldb.Tx, before, after ratelimit.Limits) error,
) (after ratelimit.Limits, err error) {
	err = d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		t, err := selectTenantByID(ctx, tx, tenantID)
		if err != nil {
			return err
		}
		after = ratelimit.Limits{}
		maps.Copy(after, t.RateLimits)
		for _, counted := range clear {
			delete(after, counted)
		}
		maps.Copy(after, set)
		if !maps.Equal(after, t.RateLimits) {
			text, err := json.Marshal(after.Text())
			if err != nil {
				return err
			}
			if err := advance(ctx, tx); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, updateRateLimits, tenantID, string(text)); err != nil {
				return err
			}
		}
		return with(ctx, tx, t.RateLimits, after)
	})
	if err != nil {
		return nil, fmt.Errorf("update rate limits: %w", err)
	}
	d.lease.End()
	return after, nil
}

func loadRateLimits(text string) (ratelimit.Limits, error) {
	if text == "" {
		return nil, nil
	}
	var stored map[string]string
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("decode rate limits: %w", err)
	}
	return ratelimit.ParseLimits(stored)
}
