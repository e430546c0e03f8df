package session

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

const (
	// KnownFor is how long a device is known that was not signed in on.
	KnownFor = 180 * 24 * time.Hour
	// MostDevices is how many devices of a user are known; the one that was not signed in on
	// for the longest time makes room.
	MostDevices = 50
)

// Recognize queues that a session began on its device, in the transaction that begins it. It
// reports whether the user is known to have the device, and whether to have others.
//
// A device is known by what it calls itself, which anybody can say: that it is known proves
// nothing. That it is not is worth a word to the user.
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

// ForgetDevices queues that no device of a user is known any more.
func ForgetDevices(b *sqldb.Batch, tenantID, userID string) {
	b.Queue(`DELETE FROM known_devices WHERE tenant_id = $1 AND user_id = $2`, []any{tenantID, userID}, nil)
}

// Tidy forgets the devices that were not signed in on for too long.
func (s *Store) Tidy(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `DELETE FROM known_devices WHERE last_seen_at <= $1`, s.now().Add(-KnownFor).UnixMicro())
	return err
}
