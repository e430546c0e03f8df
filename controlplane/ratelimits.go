package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
)

// The stored form of a tenant's limits, apart from the model so that renaming a
// Go field never changes what lies in a database.
type (
	storedPolicy struct {
		IP     storedLimit `json:"ip"`
		Caller storedLimit `json:"caller"`
	}
	storedLimit struct {
		Requests int   `json:"requests"`
		WindowS  int64 `json:"window_s"`
	}
)

// SetRateLimits replaces the limits of a tenant's own. Families that are not
// among them have those of the deployment. It fails with [ErrTenantNotFound], or
// with an error for a person if a limit cannot be kept.
func (d *Directory) SetRateLimits(ctx context.Context, tx *sqldb.Tx, tenantID string, policies ratelimit.Policies) error {
	stored := map[ratelimit.Family]storedPolicy{}
	for family, p := range policies {
		if !family.Known() || family == ratelimit.None {
			return fmt.Errorf("unknown family %q", family)
		}
		if err := errors.Join(p.IP.Validate(), p.Caller.Validate()); err != nil {
			return fmt.Errorf("family %q: %w", family, err)
		}
		stored[family] = storedPolicy{storeLimit(p.IP), storeLimit(p.Caller)}
	}
	text, err := json.Marshal(stored)
	if err == nil {
		err = updateRateLimits(ctx, tx, tenantID, string(text))
	}
	if err != nil {
		return fmt.Errorf("set rate limits of tenant %s: %w", tenantID, err)
	}
	d.cache.Purge()
	return nil
}

func storeLimit(l ratelimit.Limit) storedLimit {
	return storedLimit{l.Requests, int64(l.Window / time.Second)}
}

func loadRateLimits(text string) (ratelimit.Policies, error) {
	if text == "" {
		return nil, nil
	}
	var stored map[ratelimit.Family]storedPolicy
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("decode rate limits: %w", err)
	}
	policies := ratelimit.Policies{}
	for family, p := range stored {
		policies[family] = ratelimit.Policy{IP: p.IP.load(), Caller: p.Caller.load()}
	}
	return policies, nil
}

func (l storedLimit) load() ratelimit.Limit {
	return ratelimit.Limit{Requests: l.Requests, Window: time.Duration(l.WindowS) * time.Second}
}
