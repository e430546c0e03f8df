package protocol

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// Hash is what is kept of a secret.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// NewToken makes a secret: a prefix and 256 random bits in base64url.
func NewToken(prefix string) string {
	raw := make([]byte, 32)
	rand.Read(raw)
	return prefix + base64.RawURLEncoding.EncodeToString(raw)
}
