// Package assertion verifies how a client proves who it is with a key of its own: a JWT
// that it signs for each request (private_key_jwt; RFC 7523 §2.2 and §3, OpenID Connect
// Core §9). Unlike a secret, what proves it is never sent, and the server has nothing that
// could be stolen from it.
//
// The package is pure: keys come in as text, and what has to be remembered (that an
// assertion is used once) goes out as [Assertion.ID] and [Assertion.Expires].
//
// A signed JWT proves no more than that somebody signed it, some time, for some purpose.
// That it was this client, now, and for this is what the rest of the rules says:
//
//	alg  an asymmetric one of [Algs], and that of the key
//	kid  chooses among the client's own keys; without it, only one key may fit
//	typ  none, or one of a JWT that authenticates a client
//	iss  the client, as is sub
//	aud  this server under one of its names, and nobody else
//	exp  at most [MaxLifetime] ahead, and behind iat
//	jti  there
package assertion

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// Type is the client_assertion_type of such assertions (RFC 7523 §2.2).
const Type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

const (
	// MaxLifetime is the longest that an assertion can be good.
	MaxLifetime = 5 * time.Minute
	// Skew is how far the client's clock may be ahead of ours.
	Skew = 10 * time.Second

	maxSize = 16 << 10 // of an assertion, in bytes
	maxText = 1024     // of a name in it, in bytes
)

// types are those that a JWT for the purpose may have (RFC 7519 §5.1); the last is of
// draft-ietf-oauth-rfc7523bis. Others are access tokens, proofs, logout tokens.
var types = []string{"", "jwt", "client-authentication+jwt"}

// Algs are the algorithms that assertions may be signed with. What is not listed here, none
// and the HMAC family among it, proves nothing.
var Algs = []string{"RS256", "PS256", "ES256", "EdDSA"}

var (
	// ErrInvalid is wrapped by every refusal of an assertion.
	ErrInvalid = errors.New("invalid client assertion")
	// ErrUnknownKey is returned for an assertion whose key is not among those of the client.
	// It is [ErrInvalid], too.
	ErrUnknownKey = refused("signed with a key that the client has not registered")
)

// refusal is an [ErrInvalid] that says what is wrong. It never quotes the assertion.
type refusal struct{ reason string }

func refused(reason string) error { return &refusal{reason} }

func (r *refusal) Error() string { return ErrInvalid.Error() + ": " + r.reason }

func (r *refusal) Unwrap() error { return ErrInvalid }

// Assertion is what a client has proved.
type Assertion struct {
	ClientID string
	ID       string    // its jti: it may be used once
	Expires  time.Time // until when it could be used again
}

// claims are those of an assertion, as they are in it.
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  audience `json:"aud"`
	TokenID   string   `json:"jti"`
	Expires   *float64 `json:"exp"` // NumericDate may have a fraction (RFC 7519 §2)
	NotBefore *float64 `json:"nbf"`
	IssuedAt  *float64 `json:"iat"`
}

// audience is one, or a list of several (RFC 7519 §4.1.3).
type audience []string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *audience) UnmarshalJSON(b []byte) error {
	if jsontext.Value(b).Kind() == '"' {
		*a = audience{""}
		return json.Unmarshal(b, &(*a)[0])
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// ClientID is whom an assertion claims to be from. Nothing of that is proved.
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

// Verify checks that a client signed an assertion for a server that has some names, with
// one of the client's keys, and that its time is now. Refusals wrap [ErrInvalid]; it is for
// the caller to find out whether it was used before.
func Verify(token, clientID string, keys Keys, names []string, now time.Time) (Assertion, error) {
	payload, err := open(token, keys)
	if err != nil {
		return Assertion{}, err
	}
	c, err := read(payload)
	if err != nil {
		return Assertion{}, err
	}
	at := func(instant time.Time) float64 { return float64(instant.UnixMicro()) / 1e6 }
	switch {
	case c.Issuer != clientID || c.Subject != clientID:
		return Assertion{}, refused("iss and sub must be the client's id")
	case len(c.Audience) == 0 || slices.ContainsFunc(c.Audience, func(name string) bool { return !slices.Contains(names, name) }):
		// An assertion that is for others, too, they could use here (RFC 7523bis).
		return Assertion{}, refused("aud must name only this server")
	case c.Expires == nil:
		return Assertion{}, refused("exp is missing")
	case *c.Expires <= at(now):
		return Assertion{}, refused("exp is in the past")
	case *c.Expires > at(now.Add(MaxLifetime+Skew)):
		return Assertion{}, refused("its lifetime is too long")
	case c.NotBefore != nil && *c.NotBefore > at(now.Add(Skew)):
		return Assertion{}, refused("nbf is in the future")
	case c.IssuedAt != nil && *c.IssuedAt > at(now.Add(Skew)):
		return Assertion{}, refused("iat is in the future")
	case c.IssuedAt != nil && *c.Expires-*c.IssuedAt > (MaxLifetime+Skew).Seconds():
		return Assertion{}, refused("its lifetime is too long")
	}
	return Assertion{c.Subject, c.TokenID, time.Unix(int64(math.Ceil(*c.Expires)), 0).UTC()}, nil
}

// open returns what a JWT says that one of some keys has signed. Of the header it goes by
// alg and kid; keys, and where there might be some (jwk, jku, x5c, x5u), are not looked at.
func open(token string, keys Keys) ([]byte, error) {
	if len(token) > maxSize {
		return nil, refused("it is too large")
	}
	message, err := jws.ParseString(token, jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 {
		return nil, refused("not a signed JWT")
	}
	header := message.Signatures()[0].ProtectedHeaders()
	if header.Has(jws.CriticalKey) { // nothing critical is understood here (RFC 7515 §4.1.11)
		return nil, refused("crit is not supported")
	}
	typ, _ := header.Type()
	if !slices.Contains(types, strings.TrimPrefix(strings.ToLower(typ), "application/")) {
		return nil, refused("typ is not that of a client assertion")
	}
	alg, _ := header.Algorithm()
	if !slices.Contains(Algs, alg.String()) {
		return nil, refused("alg is not supported")
	}
	kid, _ := header.KeyID()
	key, err := keys.choose(kid, alg.String())
	if err != nil {
		return nil, err
	}
	payload, err := jws.Verify([]byte(token), jws.WithKey(alg, key), jws.WithCompact())
	if err != nil {
		return nil, refused("the signature is wrong")
	}
	return payload, nil
}
