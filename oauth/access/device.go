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

// ErrUserCode is returned for a user code that no pending device authorization has.
var ErrUserCode = errors.New("the code is unknown or expired")

// Device is a stored device authorization (RFC 8628 §3.2).
type Device struct {
	hash, ClientID, Audience, ClientIP, GrantID string
	Scopes                                      []string
	Denied                                      bool
	Interval                                    time.Duration
	PolledAt, UsedAt, ExpiresAt                 time.Time
}

// AddDevice stores a new device authorization. It violates an index if another one has the same
// user code.
func (s *Store) AddDevice(ctx context.Context, tenant protocol.Tenant, deviceCode, userCode string, d Device) error {
	_, err := s.db.Exec(ctx, `
		INSERT INTO device_codes (tenant_id, hash, user_hash, client_id, scope, audience, client_ip, grant_id, denied, interval_s, polled_at, used_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, '', FALSE, $8, 0, 0, $9)`,
		tenant.ID, protocol.Hash(deviceCode), protocol.Hash(userCode), d.ClientID, strings.Join(d.Scopes, " "), d.Audience,
		d.ClientIP, int64(PollInterval/time.Second), d.ExpiresAt.UnixMicro())
	return err
}

// DeviceByUserCode finds a device authorization, pending or not, by its user code. It fails with
// [ErrUserCode].
func DeviceByUserCode(ctx context.Context, from storage.Querier, tenant protocol.Tenant, code string) (Device, error) {
	return selectDevice(ctx, from, tenant, "user_hash", protocol.Hash(code))
}

// AnswerDevice stores the answer of a user to a device authorization: the grant that it leads
// to, or, if grantID is empty, that the user denied it. It fails with [ErrUserCode] if another
// answer was first.
func AnswerDevice(ctx context.Context, tx *sqldb.Tx, tenant protocol.Tenant, d Device, grantID string) error {
	n, err := tx.Exec(ctx, `
		UPDATE device_codes SET grant_id = $3, denied = $4 WHERE tenant_id = $1 AND hash = $2 AND grant_id = '' AND NOT denied`,
		tenant.ID, d.hash, grantID, grantID == "")
	switch {
	case err != nil:
		return fmt.Errorf("answer device: %w", err)
	case n == 0:
		return ErrUserCode
	}
	return nil
}

// selectDevice finds a device authorization by the value of a column.
func selectDevice(ctx context.Context, from storage.Querier, tenant protocol.Tenant, column, hash string) (d Device, err error) {
	var scope string
	var interval, polled, used, expires int64
	err = from.QueryRow(ctx, `
		SELECT hash, client_id, scope, audience, client_ip, grant_id, denied, interval_s, polled_at, used_at, expires_at
		FROM device_codes WHERE tenant_id = $1 AND `+column+` = $2`, tenant.ID, hash).
		Scan(&d.hash, &d.ClientID, &scope, &d.Audience, &d.ClientIP, &d.GrantID, &d.Denied, &interval, &polled, &used, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return d, ErrUserCode
	}
	if err != nil {
		return d, fmt.Errorf("read device code: %w", err)
	}
	d.Scopes, d.Interval = strings.Fields(scope), time.Duration(interval)*time.Second
	d.PolledAt, d.UsedAt, d.ExpiresAt = sqldb.Instant(polled), sqldb.Instant(used), sqldb.Instant(expires)
	return d, nil
}

// DeviceByCode finds a device authorization, pending or not, by its device code. It fails with
// [ErrUserCode].
func (s *Store) DeviceByCode(ctx context.Context, tenant protocol.Tenant, code string) (Device, error) {
	return selectDevice(ctx, s.db, tenant, "hash", protocol.Hash(code))
}

// UseOfDevice is the use of a device code.
func (s *Store) UseOfDevice(tenant protocol.Tenant, d Device) Use {
	return Use{
		update: `UPDATE device_codes SET used_at = $3 WHERE tenant_id = $1 AND hash = $2 AND used_at = 0`,
		args:   []any{tenant.ID, d.hash, storage.Now(s.clock).UnixMicro()}, hash: d.hash,
	}
}

// NotePoll stores that a device has polled, and its interval from then on.
func (s *Store) NotePoll(ctx context.Context, tenant protocol.Tenant, d Device, interval time.Duration) error {
	_, err := s.db.Exec(ctx, `UPDATE device_codes SET polled_at = $3, interval_s = $4 WHERE tenant_id = $1 AND hash = $2`,
		tenant.ID, d.hash, storage.Now(s.clock).UnixMicro(), int64(interval/time.Second))
	if err != nil {
		return fmt.Errorf("note poll of device: %w", err)
	}
	return nil
}
