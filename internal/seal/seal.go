// Package seal encrypts what the database must hold but must not reveal: the
// private signing keys of tenants, and the secrets of other systems that the
// product has to present again and therefore cannot hash.
//
// A [Key] is the deployment's one master key, 32 random bytes in a file that is
// kept apart from the database, so that neither a copy of the database nor of
// the file is enough. Sealing is AES-256-GCM with a random nonce. The tenant
// and the id of the row that holds the ciphertext are authenticated with it: a
// sealed value that is moved to another row or another tenant does not open.
//
//	sealed = version (1) | key id (4) | nonce (12) | ciphertext | tag (16)
//
// The key id is derived from the key. It distinguishes a value that was sealed under another
// key, which is a mistake of the operator, from one that is damaged or was moved.
//
// Random 96-bit nonces are safe for 2^32 values under one key (NIST SP 800-38D
// §8.3), far beyond the few a tenant has.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// KeySize is the size of a master key in bytes.
const KeySize = 32

var (
	// ErrWrongKey is returned by Open for a value that was sealed under another
	// master key.
	ErrWrongKey = errors.New("seal: sealed under another master key")

	// ErrCorrupt is returned by Open for a value that is damaged, or that was
	// sealed for another tenant or row.
	ErrCorrupt = errors.New("seal: sealed value is damaged or belongs to another row")
)

const (
	version   = 1
	keyIDSize = 4
	headSize  = 1 + keyIDSize
)

// Key is a master key. It is safe for concurrent use.
type Key struct {
	raw  []byte
	aead cipher.AEAD
	head [headSize]byte // version and key id, in front of every sealed value
}

// NewKey makes a key of KeySize random bytes.
func NewKey(raw []byte) (*Key, error) {
	if len(raw) != KeySize {
		return nil, fmt.Errorf("seal: master key has %d bytes, want %d", len(raw), KeySize)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	k := &Key{aead: aead, raw: bytes.Clone(raw)}
	k.head[0] = version
	copy(k.head[1:], k.Derive("key id"))
	return k, nil
}

// Derive returns KeySize bytes for one purpose other than sealing, always the
// same ones (HKDF-Expand, RFC 5869 §2.3). Nothing can be learned from them about
// the master key or what it derives for another purpose.
func (k *Key) Derive(purpose string) []byte {
	derived, err := hkdf.Expand(sha256.New, k.raw, "stonetown "+purpose, KeySize)
	if err != nil {
		panic(err) // only of a length beyond what SHA-256 can expand to
	}
	return derived
}

// Seal encrypts plaintext for the row id of a tenant.
func (k *Key) Seal(tenant, id string, plaintext []byte) []byte {
	sealed := make([]byte, headSize, headSize+len(plaintext)+k.aead.Overhead())
	copy(sealed, k.head[:])
	return k.aead.Seal(sealed, nil, plaintext, associated(tenant, id))
}

// Open decrypts what Seal returned for the same tenant and id. It fails with
// [ErrWrongKey] or [ErrCorrupt].
func (k *Key) Open(tenant, id string, sealed []byte) ([]byte, error) {
	if len(sealed) < headSize+k.aead.Overhead() || sealed[0] != version {
		return nil, ErrCorrupt
	}
	if !bytes.Equal(sealed[:headSize], k.head[:]) {
		return nil, ErrWrongKey
	}
	plaintext, err := k.aead.Open(nil, nil, sealed[headSize:], associated(tenant, id))
	if err != nil {
		return nil, ErrCorrupt
	}
	return plaintext, nil
}

// String keeps the key out of logs and error messages.
func (k *Key) String() string { return "seal.Key(redacted)" }

// GoString does the same for %#v.
func (k *Key) GoString() string { return k.String() }

// associated is unambiguous because a tenant id never holds a vertical bar.
func associated(tenant, id string) []byte { return []byte(tenant + "|" + id) }
