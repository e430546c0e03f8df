package protocol

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// Hash returns the form in which a secret is stored: its SHA-256 in base64url. Secrets have
// 256 random bits, so a slower hash is not needed.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// NewToken returns a new secret: a prefix and 256 random bits in base64url.
func NewToken(prefix string) string {
	raw := make([]byte, 32)
	rand.Read(raw)
	return prefix + base64.RawURLEncoding.EncodeToString(raw)
}
