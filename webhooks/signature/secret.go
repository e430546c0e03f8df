package signature

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
)

const (
	prefix  = "whsec_"
	keySize = 32 // bytes
)

// ErrSecret is returned by [ParseSecret] for a text that is not a signing secret. It does not
// contain the text.
var ErrSecret = errors.New("not a signing secret: whsec_ and 32 bytes in standard base64")

// Secret is the signing secret of a subscription: 32 random bytes. Its displayed form, which
// the receiver configures, is whsec_ followed by the bytes in standard base64. The zero value
// is no secret.
//
// A Secret is printed and logged without its value. It is immutable and safe for concurrent
// use.
type Secret struct {
	// keys is a function because package fmt calls no methods of unexported fields: of a
	// struct with an unexported Secret it would print the bytes, even behind a pointer. It
	// prints a function as an address.
	keys func() *keys
}

// keys has the HMAC keys of both forms, so that none is decoded for each delivery.
type keys struct {
	text []byte // the displayed form: the key of the X-Service form
	raw  []byte // the decoded bytes: the key of the Standard Webhooks form
}

// NewSecret returns a random secret.
func NewSecret() Secret {
	raw := make([]byte, keySize)
	rand.Read(raw) // never fails
	return newSecret(raw)
}

// ParseSecret reads the displayed form of a secret. It fails with [ErrSecret].
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, prefix)
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	// The decoder ignores line breaks; the displayed form is the key of one of the signatures
	// and must be the only text for its bytes.
	if !ok || err != nil || len(raw) != keySize || len(encoded) != base64.StdEncoding.EncodedLen(keySize) {
		return Secret{}, ErrSecret
	}
	return newSecret(raw), nil
}

func newSecret(raw []byte) Secret {
	k := &keys{text: []byte(prefix + base64.StdEncoding.EncodeToString(raw)), raw: raw}
	return Secret{func() *keys { return k }}
}

// IsZero reports whether s is the zero value, which is no secret.
func (s Secret) IsZero() bool { return s.keys == nil }

// Text returns the displayed form, which only the receiver may get. It is empty for
// the zero value.
func (s Secret) Text() string {
	if s.IsZero() {
		return ""
	}
	return string(s.keys().text)
}

const redacted = prefix + "[redacted]"

// String returns a text without the secret.
func (s Secret) String() string { return redacted }

// GoString returns a text without the secret.
func (s Secret) GoString() string { return redacted }

// LogValue returns a text without the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
