package federation

import (
	"bytes"
	"fmt"

	"stonetown/identity/federation/relyingparty"
	"stonetown/internal/seal"
)

// Secret is a secret of a connection. It is sealed in the database and in memory, except on the
// way in. The zero value is no secret.
type Secret struct {
	sealed []byte
	fresh  string // not sealed yet
}

// NewSecret returns a secret that replaces another; empty removes it.
func NewSecret(text string) Secret { return Secret{fresh: text} }

// IsSet reports whether there is a secret.
func (s Secret) IsSet() bool { return s.fresh != "" || len(s.sealed) > 0 }

// changes reports whether the secret was set or removed, compared with an earlier one.
func (s Secret) changes(before Secret) bool {
	return s.fresh != "" || !bytes.Equal(s.sealed, before.sealed)
}

// String keeps the secret out of logs and error messages.
func (s Secret) String() string { return "federation.Secret(redacted)" }

// GoString does the same for %#v.
func (s Secret) GoString() string { return s.String() }

// seal encrypts a fresh secret. The name of the secret is authenticated with the ids, so that
// no secret can take the place of another.
func (s *Secret) seal(key *seal.Key, c Connection, name string) {
	if s.fresh != "" {
		*s = Secret{sealed: key.Seal(c.TenantID, c.ID+" "+name, []byte(s.fresh))}
	}
}

func (s Secret) open(key *seal.Key, c Connection, name string) (string, error) {
	if len(s.sealed) == 0 {
		return s.fresh, nil
	}
	text, err := key.Open(c.TenantID, c.ID+" "+name, s.sealed)
	if err != nil {
		return "", fmt.Errorf("open %s of %s: %w", name, c.ID, err)
	}
	return string(text), nil
}

// The names of the secrets.
const (
	clientSecret = "client_secret"
	privateKey   = "private_key"
)

// Secrets are the secrets of a connection in clear; empty if they are not set.
type Secrets struct {
	Client   string
	AppleKey *relyingparty.AppleKey // nil: none
}

// Secrets decrypts the secrets of a connection.
func (r *Registry) Secrets(c Connection) (s Secrets, err error) {
	if s.Client, err = c.ClientSecret.open(r.seal, c, clientSecret); err != nil {
		return Secrets{}, err
	}
	text, err := c.PrivateKey.open(r.seal, c, privateKey)
	if err != nil || text == "" {
		return s, err
	}
	s.AppleKey, err = relyingparty.ParseAppleKey(c.TeamID, c.KeyID, text)
	return s, err
}
