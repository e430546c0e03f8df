// Package assertion verifies the assertions by which clients authenticate: JWTs that they sign
// for each request (private_key_jwt; RFC 7523 §2.2 and §3, OpenID Connect Core §9). Unlike a
// secret, the private key is never sent, and the server stores nothing that could be stolen.
//
// The package is pure: keys are passed as text, and the caller must refuse an [Assertion.ID]
// that was used before, until [Assertion.Expires].
//
// A signed JWT proves only that the key signed it at some time for some purpose. The rules
// require that it was for this purpose, now:
//
//	alg  an asymmetric one of [Algs], and that of the key
//	kid  selects among the client's own keys; without it, only one key may fit
//	typ  none, or that of a JWT for client authentication
//	iss  the client, as is sub
//	aud  this server under one of its names, and nothing else
//	exp  ahead by at most the lifetime that the caller accepts, and after iat by no more
//	jti  present
package assertion

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Type is the client_assertion_type of the assertions (RFC 7523 §2.2).
const Type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

const (
	// Skew is the tolerance for a client's clock that is ahead.
	Skew = 10 * time.Second

	maxSize = 16 << 10 // of an assertion, in bytes
	maxText = 1024     // of a name in it, in bytes
)

var base64url = base64.RawURLEncoding.Strict()

// types are the values of typ for this purpose (RFC 7519 §5.1); the last one is of
// draft-ietf-oauth-rfc7523bis. JWTs with others are access tokens, proofs or logout tokens.
var types = []string{"", "jwt", "client-authentication+jwt"}

// Algs are the supported signature algorithms. All others, such as none and the HMAC family,
// are refused.
var Algs = []string{"RS256", "PS256", "ES256", "EdDSA"}

var (
	// ErrInvalid is wrapped by every refusal of an assertion.
	ErrInvalid = errors.New("invalid client assertion")
	// ErrUnknownKey is returned for an assertion whose key is not one of the client's. It wraps
	// [ErrInvalid].
	ErrUnknownKey = refused("signed with a key that the client has not registered")
)

// Refusal is an [ErrInvalid] with the reason, which never quotes the assertion.
type Refusal struct {
	Reason string
	// Signed reports that the client has signed the assertion, so that the reason reveals
	// nothing to others.
	Signed bool
}

func refused(reason string) error { return &Refusal{Reason: reason} }

func (r *Refusal) Error() string { return ErrInvalid.Error() + ": " + r.Reason }

func (r *Refusal) Unwrap() error { return ErrInvalid }

// Assertion is a valid assertion.
type Assertion struct {
	ClientID string
	ID       string    // its jti, which may be used once
	Expires  time.Time // the time until which it could be used again
	Alg      string    // by which it was signed, one of [Algs]
	Audience string    // its aud; empty if that is a list
}

// claims are the claims of an assertion.
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  audience `json:"aud"`
	TokenID   string   `json:"jti"`
	Expires   *float64 `json:"exp"` // NumericDate may have a fraction (RFC 7519 §2)
	NotBefore *float64 `json:"nbf"`
	IssuedAt  *float64 `json:"iat"`
}

// audience is one string or an array on the wire (RFC 7519 §4.1.3).
type audience struct {
	names []string
	text  string // if it is one string
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *audience) UnmarshalJSON(b []byte) error {
	if jsontext.Value(b).Kind() == '"' {
		err := json.Unmarshal(b, &a.text)
		a.names = []string{a.text}
		return err
	}
	return json.Unmarshal(b, &a.names)
}

// ClientID returns the client that an assertion names. It verifies nothing.
func ClientID(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(token) > maxSize || len(parts) != 3 {
		return "", refused("not a signed JWT")
	}
	payload, err := base64url.DecodeString(parts[1])
	if err != nil {
		return "", refused("not a signed JWT")
	}
	c, err := read(payload)
	return c.Subject, err
}

// read reads claims strictly: no name twice, and every name as it is written.
func read(payload []byte) (c claims, err error) {
	if json.Unmarshal(payload, &c) != nil {
		return c, refused("the claims are not valid JSON")
	}
	for _, text := range []string{c.Issuer, c.Subject, c.TokenID} {
		if text == "" || len(text) > maxText {
			return c, refused("iss, sub or jti is missing or too long")
		}
	}
	return c, nil
}

// Verify verifies that an assertion of a client was signed by one of its keys, for a server
// with some names, and is valid now and for at most a time. Refusals are [*Refusal].
func Verify(token, clientID string, keys Keys, names []string, longest time.Duration, now time.Time) (Assertion, error) {
	payload, alg, err := open(token, keys)
	if err != nil {
		return Assertion{}, err
	}
	a, err := verified(payload, clientID, names, longest, now)
	a.Alg = alg
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		err = &Refusal{refusal.Reason, true}
	}
	return a, err
}

// verified reads the claims of an assertion whose signature is right, and verifies them.
func verified(payload []byte, clientID string, names []string, longest time.Duration, now time.Time) (Assertion, error) {
	c, err := read(payload)
	if err != nil {
		return Assertion{}, err
	}
	at := func(instant time.Time) float64 { return float64(instant.UnixMicro()) / 1e6 }
	tooLong := fmt.Sprintf("its lifetime is longer than %.0f seconds", longest.Seconds())
	switch {
	case c.Issuer != clientID || c.Subject != clientID:
		return Assertion{}, refused("iss and sub must be the client_id")
	case len(c.Audience.names) == 0 || slices.ContainsFunc(c.Audience.names, func(name string) bool { return !slices.Contains(names, name) }):
		// Another recipient could use an assertion here that is for both (RFC 7523bis).
		return Assertion{}, refused("aud must name only this server")
	case c.Expires == nil:
		return Assertion{}, refused("exp is missing")
	case *c.Expires <= at(now):
		return Assertion{}, refused("exp is in the past")
	case *c.Expires > at(now.Add(longest+Skew)):
		return Assertion{}, refused(tooLong)
	case c.NotBefore != nil && *c.NotBefore > at(now.Add(Skew)):
		return Assertion{}, refused("nbf is in the future")
	case c.IssuedAt != nil && *c.IssuedAt > at(now.Add(Skew)):
		return Assertion{}, refused("iat is in the future")
	case c.IssuedAt != nil && *c.Expires-*c.IssuedAt > (longest+Skew).Seconds():
		return Assertion{}, refused(tooLong)
	}
	return Assertion{ClientID: c.Subject, ID: c.TokenID, Expires: time.Unix(int64(math.Ceil(*c.Expires)), 0).UTC(), Audience: c.Audience.text}, nil
}

// open returns the payload of an assertion that was signed by one of some keys, and the algorithm.
func open(token string, keys Keys) (payload []byte, by string, err error) {
	payload, by, err = keys.Open(token, maxSize, Algs, types)
	if known, ok := refusals[err]; ok {
		err = known
	} else if err != nil {
		err = refused(err.Error())
	}
	return payload, by, err
}
