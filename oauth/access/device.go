package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// PollInterval is the interval at which a device may poll, and the increment of the interval
// after a request that came too soon (RFC 8628 §3.5).
const PollInterval = 5 * time.Second

// ErrUserCode is returned for a code that no waiting device has.
var ErrUserCode = errors.New("the code is unknown or expired")

// Device is what is kept of one that waits.
type Device struct {
	Hash, ClientID, Audience, ClientIP, GrantID string
	Scopes                                      []string
	Denied                                      bool
	Interval                                    time.Duration
	PolledAt, UsedAt, ExpiresAt                 time.Time
}

// SelectDevice finds a device by the hash of one of its codes, waiting or not. It fails
// with [ErrUserCode].
func SelectDevice(ctx context.Context, from storage.Querier, tenant protocol.Tenant, column, hash string) (d Device, err error) {
	var scope string
	var interval, polled, used, expires int64
	err = from.QueryRow(ctx, `
		SELECT hash, client_id, scope, audience, client_ip, grant_id, denied, interval_s, polled_at, used_at, expires_at
		FROM device_codes WHERE tenant_id = $1 AND `+column+` = $2`, tenant.ID, hash).
		Scan(&d.Hash, &d.ClientID, &scope, &d.Audience, &d.ClientIP, &d.GrantID, &d.Denied, &interval, &polled, &used, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return d, ErrUserCode
	}
	if err != nil {
		return d, fmt.Errorf("read device code: %w", err)
	}
	d.Scopes, d.Interval = strings.Fields(scope), time.Duration(interval)*time.Second
	d.PolledAt, d.UsedAt, d.ExpiresAt = storage.Time(polled), storage.Time(used), storage.Time(expires)
	return d, nil
}
