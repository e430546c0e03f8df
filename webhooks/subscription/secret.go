package subscription

import (
	"fmt"
	"time"

	"stonetown/internal/seal"
	"stonetown/webhooks/signature"
)

// The time for which the previous secret signs deliveries as well, after a rotation.
const (
	DefaultPreviousTTL = 24 * time.Hour
	MaxPreviousTTL     = 7 * 24 * time.Hour
)

// rotate gives the subscription a new secret. The present one becomes the previous one until an
// instant; at the zero time there is none.
func (s *Subscription) rotate(key *seal.Key, secret signature.Secret, previousUntil time.Time) {
	s.previous, s.PreviousExpiresAt = nil, previousUntil
	if !previousUntil.IsZero() {
		s.previous = s.secret
	}
	s.secret = key.Seal(s.TenantID, s.ID, []byte(secret.Text()))
}

// Secrets returns the secrets that sign a delivery at an instant; previous is zero unless it is
// valid.
func (s *Subscription) Secrets(key *seal.Key, now time.Time) (current, previous signature.Secret, err error) {
	if current, err = s.open(key, s.secret); err != nil {
		return current, previous, err
	}
	if len(s.previous) > 0 && now.Before(s.PreviousExpiresAt) {
		previous, err = s.open(key, s.previous)
	}
	return current, previous, err
}

func (s *Subscription) open(key *seal.Key, sealed []byte) (signature.Secret, error) {
	text, err := key.Open(s.TenantID, s.ID, sealed)
	if err != nil {
		return signature.Secret{}, fmt.Errorf("open secret of %s: %w", s.ID, err)
	}
	return signature.ParseSecret(string(text))
}
