package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
)

const (
	version   = 1
	keyIDSize = 4
	headSize  = 1 + keyIDSize
	nonceSize = 12
	tagSize   = 16
)

// KeyID identifies a master key. It reveals nothing of it.
type KeyID [keyIDSize]byte

// String returns the id in hexadecimal.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// ParseKeyID is the inverse of [KeyID.String].
func ParseKeyID(text string) (id KeyID, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != keyIDSize {
		return id, fmt.Errorf("seal: %q is not the id of a key", text)
	}
	return KeyID(raw), nil
}

// Range returns the limits of all values that are sealed under the master key: low <= sealed < high,
// in the order of bytes.
func (id KeyID) Range() (low, high []byte) {
	low = append([]byte{version}, id[:]...)
	high = bytes.Clone(low)
	for i := len(high) - 1; ; i-- { // ends at the version at the latest, which is below 255
		high[i]++
		if high[i] != 0 {
			return low, high
		}
	}
}

// keyID returns the id in a sealed value; ok is false if the value is damaged.
func keyID(sealed []byte) (id KeyID, ok bool) {
	if len(sealed) < headSize+nonceSize+tagSize || sealed[0] != version {
		return id, false
	}
	return KeyID(sealed[1:headSize]), true
}

// TenantKey is the key of a tenant in one deployment. It opens what was sealed there for the
// tenant, and nothing of other tenants. It is safe for concurrent use.
type TenantKey struct {
	id   KeyID // of the master key
	raw  []byte
	aead cipher.AEAD
}

// NewTenantKey returns the key with the id and the bytes of another one.
func NewTenantKey(id KeyID, raw []byte) (*TenantKey, error) {
	if len(raw) != KeySize {
		return nil, fmt.Errorf("seal: key of a tenant has %d bytes, want %d", len(raw), KeySize)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return &TenantKey{id, bytes.Clone(raw), aead}, nil
}

// ID returns the id of the master key from which the key is derived.
func (k *TenantKey) ID() KeyID { return k.id }

// Bytes returns the secret itself, for an export.
func (k *TenantKey) Bytes() []byte { return bytes.Clone(k.raw) }

// String keeps the key out of logs and error messages.
func (k *TenantKey) String() string { return "seal.TenantKey(redacted)" }

// GoString does the same for %#v.
func (k *TenantKey) GoString() string { return k.String() }

func (k *TenantKey) seal(id string, plaintext []byte) []byte {
	sealed := make([]byte, headSize, headSize+len(plaintext)+k.aead.Overhead())
	sealed[0] = version
	copy(sealed[1:], k.id[:])
	return k.aead.Seal(sealed, nil, plaintext, []byte(id))
}

func (k *TenantKey) open(id string, sealed []byte) ([]byte, error) {
	plaintext, err := k.aead.Open(nil, nil, sealed[headSize:], []byte(id))
	if err != nil {
		return nil, ErrCorrupt
	}
	return plaintext, nil
}

// Tenant returns the key of a tenant in this deployment.
func (k *Key) Tenant(tenant string) *TenantKey {
	if key, ok := k.tenants.Get(tenant); ok {
		return key
	}
	key, err := NewTenantKey(k.id, derive(k.raw, "tenant "+tenant))
	if err != nil {
		panic(err) // only of another size
	}
	k.tenants.Add(tenant, key)
	return key
}

// ImportedKeys finds the keys of tenants that came from other deployments.
type ImportedKeys interface {
	// Keys returns the keys that a tenant had in other deployments, the first one's first; none
	// if it was created in this one.
	Keys(tenant string) ([]*TenantKey, error)
}

// WithImported returns the key for a deployment into which tenants were imported.
func (k *Key) WithImported(keys ImportedKeys) *Key {
	with := *k
	with.imported = keys
	return &with
}

// DeriveFor returns KeySize bytes for one purpose of a tenant other than sealing. They are always
// the same, also after the tenant has moved to another deployment. It fails if the keys of the
// tenant cannot be read.
func (k *Key) DeriveFor(tenant, purpose string) ([]byte, error) {
	keys, err := k.imported.Keys(tenant)
	if err != nil {
		return nil, fmt.Errorf("seal: keys of an imported tenant: %w", err)
	}
	if len(keys) > 0 {
		return derive(keys[0].raw, purpose), nil
	}
	return derive(k.Root().Tenant(tenant).raw, purpose), nil
}

// none is the [ImportedKeys] of a deployment in which all tenants were created.
type none struct{}

func (none) Keys(string) ([]*TenantKey, error) { return nil, nil }
