package client

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"stonetown/oauth/protocol"
)

// newSecret returns a new client secret.
func newSecret() string { return protocol.NewToken("cs_") }

// secretHash is the SHA-256 of a secret. The zero value means that there is none: no input is
// known to hash to it.
type secretHash [sha256.Size]byte

func hashSecret(secret string) secretHash { return sha256.Sum256([]byte(secret)) }

// secrets are the hashes of the valid secrets of an application.
type secrets struct {
	current           secretHash
	previous          secretHash
	previousExpiresAt time.Time
}

// match reports whether a secret is valid at a time. It always makes both comparisons, each in
// constant time, so response timing reveals neither how much of a guess is right nor whether
// there is a previous secret.
func (s secrets) match(presented string, now time.Time) bool {
	got := hashSecret(presented)
	current := subtle.ConstantTimeCompare(got[:], s.current[:])
	previous := subtle.ConstantTimeCompare(got[:], s.previous[:])
	if !now.Before(s.previousExpiresAt) {
		previous = 0
	}
	return current|previous == 1
}
