// Package samlprotocol has what the service providers and the identity providers of SAML 2.0 share:
// messages, and the proof of where they are from. It has no database, no HTTP handlers, and no
// users.
//
//	document    XML within limits, in which no two programs find different things
//	signature   enveloped signatures (SAML Core §5): [Sign], [Verify]
//	encryption  of assertions (XML Encryption 1.1): [Encrypt], [Decrypt]
//	binding     messages in the query of a URL or in a form (SAML Bindings §3.4, §3.5):
//	            [Outgoing], [Received]
//	envelope    the members of all messages, and their status (SAML Core §3.2)
//	logout      single logout (SAML Profiles §4.4), in which both sides do the same: [SingleLogout]
//	metadata    descriptors of keys and services (SAML Metadata §2.4)
//
// All data of a message must be read from the bytes that [Received.Open] or [Verify] returns: those
// whose digest was compared with that of the signature. A signature covers one element, and attacks
// place other elements where a program looks for the data.
//
// Errors are [*Error].
package samlprotocol

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"strings"
	"time"

	"github.com/crewjam/saml"
)

const (
	// Skew is the tolerance for the clock of the other side, in both directions.
	Skew = time.Minute
	// MaxDocument is the maximum size of a message or of metadata, in bytes of XML.
	MaxDocument = 256 << 10
	// MaxText is the maximum size of a name identifier, of an entity id, and of other
	// identifiers, in bytes.
	MaxText = 1024
	// Version is that of all messages and assertions.
	Version = "2.0"
)

// Key is a key pair: RSA, or ECDSA, which can only sign.
type Key struct {
	// Private also implements [crypto.Decrypter] for RSA.
	Private     crypto.Signer
	Certificate *x509.Certificate
}

// Signer returns the key that signs, which is the first of a list; nil: there is none.
func Signer(keys []Key) *Key {
	if len(keys) == 0 || keys[0].Private == nil || keys[0].Certificate == nil {
		return nil
	}
	return &keys[0]
}

// NewID returns the ID of a message: an NCName with 130 random bits (SAML Core §1.3.4).
func NewID() string { return "_" + rand.Text() }

// Instant returns a time as messages have it (SAML Core §1.3.3).
func Instant(at time.Time) time.Time { return at.UTC().Truncate(time.Millisecond) }

// ParseTime parses an xs:dateTime, and returns it in UTC.
func ParseTime(text string) (time.Time, error) {
	var at saml.RelaxedTime
	err := at.UnmarshalText([]byte(strings.TrimSpace(text)))
	return time.Time(at).UTC(), err
}

// SentWithin reports whether an instant is not in the future.
func SentWithin(at, now time.Time) bool { return !at.IsZero() && !at.After(now.Add(Skew)) }

// IsTrue reads an xs:boolean; another text is false.
func IsTrue(value string) bool { return value == "true" || value == "1" }
