// Package seal encrypts what the database must hold but must not reveal: the
// private signing keys of tenants, and the secrets of other systems that the
// product has to present again and therefore cannot hash.
//
// A [Key] is the deployment's master key, 32 random bytes in a file that is
// kept apart from the database, so that neither a copy of the database nor of
// the file is enough. Every tenant has a key of its own, which is derived from it
// ([TenantKey]). Sealing is AES-256-GCM under the key of the tenant, with a random
// nonce. The id of the row that holds the ciphertext is authenticated with it: a
// sealed value that is moved to another row or another tenant does not open.
//
//	sealed = version (1) | key id (4) | nonce (12) | ciphertext | tag (16)
//
// The key id is derived from the master key. It distinguishes a value that was sealed under
// another key, which is a mistake of the operator, from one that is damaged or was moved.
//
// While the master key is rotated (internal/masterkey), a process has several: the first one seals,
// and all of them open ([Key.WithOthers]). Values that are
// derived ([Key.Derive], [Key.DeriveFor]) must not change, so they derive from the root of the
// deployment, a key that stays the same ([Key.WithRoot]).
//
// A tenant that came from another deployment brings the key that it had there. Its old values
// carry the key id of that deployment, and open with that key ([ImportedKeys]); new ones are sealed
// under the key of this deployment, as those of any tenant.
//
// Random 96-bit nonces are safe for 2^32 values under one key (NIST SP 800-38D
// §8.3), far beyond the few a tenant has.
package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"
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

// Key is a master key. It is safe for concurrent use.
type Key struct {
	raw      []byte
	id       KeyID
	tenants  *lru.Cache[string, *TenantKey]
	others   []*Key // which open as well
	root     *Key   // of derived values; nil: this key
	imported ImportedKeys
}

// cachedTenants bounds the keys of tenants in memory, of about 1 kB each.
const cachedTenants = 4096

// NewKey makes a key of KeySize random bytes.
func NewKey(raw []byte) (*Key, error) {
	if len(raw) != KeySize {
		return nil, fmt.Errorf("seal: master key has %d bytes, want %d", len(raw), KeySize)
	}
	tenants, err := lru.New[string, *TenantKey](cachedTenants)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	k := &Key{raw: bytes.Clone(raw), tenants: tenants, imported: none{}}
	copy(k.id[:], derive(k.raw, "key id"))
	return k, nil
}

// ID returns the id of the key.
func (k *Key) ID() KeyID { return k.id }

// Bytes returns the secret itself.
func (k *Key) Bytes() []byte { return bytes.Clone(k.raw) }

// WithOthers returns the key that also opens what was sealed under other keys of the deployment.
func (k *Key) WithOthers(others ...*Key) *Key {
	with := *k
	with.others = others
	return &with
}

// Others returns the keys of [Key.WithOthers].
func (k *Key) Others() []*Key { return k.others }

// WithRoot returns the key whose derived values depend on another one, the root.
func (k *Key) WithRoot(root *Key) *Key {
	with := *k
	with.root = root
	return &with
}

// Root returns the key on which derived values depend: that of [Key.WithRoot], or else the key
// itself.
func (k *Key) Root() *Key {
	if k.root != nil {
		return k.root
	}
	return k
}

// Derive returns KeySize bytes for one purpose of the deployment other than sealing, always the
// same ones. For those of a tenant there is [Key.DeriveFor].
func (k *Key) Derive(purpose string) []byte { return derive(k.Root().raw, purpose) }

// derive returns KeySize bytes, of which nothing can be learned about the key or what it derives
// for another purpose (HKDF-Expand, RFC 5869 §2.3).
func derive(key []byte, purpose string) []byte {
	derived, err := hkdf.Expand(sha256.New, key, "stonetown "+purpose, KeySize)
	if err != nil {
		panic(err) // only of a length beyond what SHA-256 can expand to
	}
	return derived
}

// Seal encrypts plaintext for the row id of a tenant.
func (k *Key) Seal(tenant, id string, plaintext []byte) []byte {
	return k.Tenant(tenant).seal(id, plaintext)
}

// Open decrypts what Seal returned for the same tenant and id, in this deployment or in one from
// which the tenant came. It fails with [ErrWrongKey] or [ErrCorrupt], or if the keys of the tenant
// cannot be read.
func (k *Key) Open(tenant, id string, sealed []byte) ([]byte, error) {
	of, ok := keyID(sealed)
	if !ok {
		return nil, ErrCorrupt
	}
	if of == k.id {
		return k.Tenant(tenant).open(id, sealed)
	}
	for _, other := range k.others {
		if of == other.id {
			return other.Tenant(tenant).open(id, sealed)
		}
	}
	keys, err := k.imported.Keys(tenant)
	if err != nil {
		return nil, fmt.Errorf("seal: keys of an imported tenant: %w", err)
	}
	for _, key := range keys {
		if key.id == of {
			return key.open(id, sealed)
		}
	}
	return nil, ErrWrongKey
}

// String keeps the key out of logs and error messages.
func (k *Key) String() string { return "seal.Key(redacted)" }

// GoString does the same for %#v.
func (k *Key) GoString() string { return k.String() }
