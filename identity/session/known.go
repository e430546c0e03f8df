package session

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

const (
	// KnownFor is how long a device is known after its last sign-in.
	KnownFor = 180 * 24 * time.Hour
	// MostDevices is the maximum number of known devices of a user. A further one replaces
	// the device whose last sign-in is the oldest.
	MostDevices = 50
)

// Recognize queues, in the transaction that begins a session, that its device is known from now
// on. It reports whether the user has used the device recently, and whether other ones.
//
// A device is identified by its user agent, which any client can send. That a device is known
// therefore proves nothing; that it is unknown is a reason to notify the user.
func (s *Store) Recognize(ctx context.Context, tx *sqldb.Tx, b *sqldb.Batch, session Session) (known, others bool, err error) {
	now := s.now()
	devices, err := selectDevices(ctx, tx, session.TenantID, session.UserID, now.Add(-KnownFor))
	if err != nil {
		return false, false, fmt.Errorf("recognize device: %w", err)
	}
	this := session.Device.Fingerprint()
	kept := 1
	for _, device := range devices {
		if device == this {
			known = true
			continue
		}
		if others = true; kept == MostDevices {
			forgetDevice(b, session.TenantID, session.UserID, device)
			continue
		}
		kept++
	}
	seeDevice(b, session.TenantID, session.UserID, this, now)
	return known, others, nil
}

// Knows is [Store.Recognize] before a sign-in, without effects.
func (s *Store) Knows(ctx context.Context, tenantID, userID string, d Device) (known, others bool, err error) {
	devices, err := selectDevices(ctx, s.db, tenantID, userID, s.now().Add(-KnownFor))
	if err != nil {
		return false, false, fmt.Errorf("recognize device: %w", err)
	}
	this := d.Fingerprint()
	for _, device := range devices {
		known, others = known || device == this, others || device != this
	}
	return known, others, nil
}

// ForgetDevices queues the deletion of the known devices of a user.
func ForgetDevices(b *sqldb.Batch, tenantID, userID string) {
	b.Queue(`DELETE FROM known_devices WHERE tenant_id = $1 AND user_id = $2`, []any{tenantID, userID}, nil)
}

// DeleteForgotten deletes the devices whose last sign-in is older than [KnownFor].
func (s *Store) DeleteForgotten(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `DELETE FROM known_devices WHERE last_seen_at <= $1`, s.now().Add(-KnownFor).UnixMicro())
	return err
}
