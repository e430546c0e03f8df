package dpop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// NonceHeader is the header field with the nonce for the next proof.
const NonceHeader = "DPoP-Nonce"

// NonceInterval is the time after which there is a new nonce. A nonce is valid until the next one
// has been replaced, so for five to ten minutes.
const NonceInterval = 5 * time.Minute

// Nonces are the nonces of one server (RFC 9449 §8). They are a function of a key and the time, so
// that every process that has the key accepts those of the others, and nothing is stored. With them
// proofs cannot be made in advance, by a thief who can use the client's key for a moment, and do not
// depend on the client's clock alone.
type Nonces struct{ key []byte }

// NewNonces returns the nonces of a key of at least 32 random bytes, which has no other use.
func NewNonces(key []byte) *Nonces { return &Nonces{key} }

// At returns the nonce at a time: 22 characters.
func (n *Nonces) At(now time.Time) string { return n.of(interval(now)) }

// Valid reports whether a nonce is that of the present interval, of the one before, or of the next
// one, in which another process may be already.
func (n *Nonces) Valid(nonce string, now time.Time) bool {
	at, valid := interval(now), false
	for _, i := range []int64{at, at - 1, at + 1} {
		valid = hmac.Equal([]byte(nonce), []byte(n.of(i))) || valid
	}
	return valid
}

func interval(t time.Time) int64 { return t.Unix() / int64(NonceInterval.Seconds()) }

func (n *Nonces) of(interval int64) string {
	mac := hmac.New(sha256.New, n.key)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(interval)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}
