package client

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"stonetown/oauth/protocol"
)

// newSecret makes a client secret.
func newSecret() string { return protocol.NewToken("cs_") }

// secretHash is what is stored of a secret. All zero stands for none: no input
// is known to hash to it.
type secretHash [sha256.Size]byte

func hashSecret(secret string) secretHash { return sha256.Sum256([]byte(secret)) }

// secrets are the hashes of an application's live secrets.
type secrets struct {
	current           secretHash
	previous          secretHash
	previousExpiresAt time.Time
}

// match reports whether a presented secret is live at a time. It always does
// both comparisons, each in constant time, so that its duration tells neither
// how much of a guess is right nor whether a previous secret exists.
func (s secrets) match(presented string, now time.Time) bool {
	got := hashSecret(presented)
	current := subtle.ConstantTimeCompare(got[:], s.current[:])
	previous := subtle.ConstantTimeCompare(got[:], s.previous[:])
	if !now.Before(s.previousExpiresAt) {
		previous = 0
	}
	return current|previous == 1
}
