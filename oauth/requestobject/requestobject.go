// Package requestobject reads request objects: JWTs that have the parameters of an authorization
// request as claims and are signed by the client (JAR, RFC 9101), so that a browser cannot change
// them.
//
// The package is pure: keys are passed as they were read. The rules for a request object are:
//
//	alg  an asymmetric one of [Algs], and the registered one if there is one; none is refused
//	kid  selects among the client's own keys; without it, only one key may fit
//	typ  none, JWT or oauth-authz-req+jwt
//	iss  the client, as is client_id
//	aud  contains the issuer of this server
//	exp  ahead, by at most [Longest]; optional, unless the client is held to FAPI 2.0
//	nbf  not ahead, and at most [Longest] ago; as exp
//	sub  absent
//
// RFC 9101 §10.8 warns of the confusion of JWTs. A client assertion (RFC 7523) names the client in
// sub, so it is not a request object, and a request object without sub is not an assertion.
package requestobject

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/jwks"
	"stonetown/oauth/assertion"
)

// Parameter is the parameter of an authorization request with a request object.
const Parameter = "request"

const (
	// Longest bounds how long a request object is valid: from nbf to exp, and from now to exp.
	Longest = time.Hour
	// Skew is the tolerance for a client's clock that is ahead.
	Skew = assertion.Skew

	// MaxSize bounds a request object, in bytes.
	MaxSize = 24 << 10
)

// Algs are the supported signature algorithms.
var Algs = assertion.Algs

// types are the values of typ (RFC 9101 §10.8). JWTs with others are assertions, access tokens,
// proofs or logout tokens.
var types = []string{"", "jwt", "oauth-authz-req+jwt"}

// reserved are the claims of the JWT itself, which are not parameters.
var reserved = []string{"iss", "aud", "exp", "nbf", "iat", "jti", "sub"}

// ErrUnsigned is returned for an object with the algorithm none.
var ErrUnsigned = errors.New("request objects must be signed")

// Refusal is a refusal of a request object. Its reason quotes nothing of the object.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return "the request object is refused: " + r.Reason }

func refused(reason string) error { return &Refusal{reason} }

// Client is a client that signs request objects.
type Client struct {
	ID   string
	Keys jwks.Set
	Algs []string // which it may use, of [Algs]
	// Bounded requires nbf and exp (FAPI 2.0 Message Signing §5.3.1).
	Bounded bool
}

// Read returns the parameters of a client's request object for the server with an issuer. It fails
// with [ErrUnsigned], [jwks.ErrUnknown] if the key is none of the client's, or [*Refusal].
func Read(token string, by Client, issuer string, now time.Time) (url.Values, error) {
	payload, _, err := by.Keys.Open(token, MaxSize, by.Algs, types)
	switch {
	case errors.Is(err, jwks.ErrUnsigned):
		return nil, ErrUnsigned
	case errors.Is(err, jwks.ErrUnknown):
		return nil, err
	case err != nil:
		return nil, refused(err.Error())
	}
	var claims map[string]jsontext.Value
	if json.Unmarshal(payload, &claims) != nil || claims == nil {
		return nil, refused("the claims are not valid JSON")
	}
	if err := verify(claims, by, issuer, now); err != nil {
		return nil, err
	}
	return parameters(claims), nil
}

// verify applies the rules for the claims of the JWT itself (RFC 9101 §4 and §6.3).
func verify(claims map[string]jsontext.Value, by Client, issuer string, now time.Time) error {
	times := map[string]*float64{}
	for _, name := range []string{"exp", "nbf", "iat"} {
		value, given := claims[name]
		var at float64
		switch {
		case !given:
			continue
		case value.Kind() != '0' || json.Unmarshal(value, &at) != nil:
			return refused(name + " is not a number")
		}
		times[name] = &at
	}
	exp, nbf, iat := times["exp"], times["nbf"], times["iat"]
	at := func(instant time.Time) float64 { return float64(instant.UnixMicro()) / 1e6 }
	tooLong := fmt.Sprintf("it is valid for longer than %.0f seconds", Longest.Seconds())
	_, hasSub := claims["sub"]
	_, nested := claims[Parameter]
	_, linked := claims["request_uri"]
	switch {
	case !is(claims["iss"], by.ID):
		return refused("iss must be the client_id")
	case !is(claims["client_id"], by.ID):
		return refused("client_id must be that of the request")
	case !slices.Contains(texts(claims["aud"]), issuer):
		return refused("aud must contain the issuer")
	case hasSub:
		return refused("sub is that of a JWT for another purpose")
	case nested || linked:
		return refused("it must not contain request or request_uri")
	case by.Bounded && (exp == nil || nbf == nil):
		return refused("exp and nbf are required")
	case exp != nil && *exp <= at(now):
		return refused("exp is in the past")
	case exp != nil && *exp > at(now.Add(Longest+Skew)):
		return refused(tooLong)
	case nbf != nil && *nbf > at(now.Add(Skew)):
		return refused("nbf is in the future")
	case by.Bounded && *nbf < at(now.Add(-Longest-Skew)):
		return refused(fmt.Sprintf("nbf is more than %.0f seconds ago", Longest.Seconds()))
	case exp != nil && nbf != nil && *exp-*nbf > (Longest+Skew).Seconds():
		return refused(tooLong)
	case iat != nil && *iat > at(now.Add(Skew)):
		return refused("iat is in the future")
	}
	return nil
}

// parameters returns the claims that are parameters: a text as it is, the texts of a list as those
// of a repeated parameter, and any other value as JSON, which is what claims and
// authorization_details are outside a request object (OIDC Core §6.1, RFC 9396 §3). claims is an object
// there, so a text is refused as it would be outside.
func parameters(claims map[string]jsontext.Value) url.Values {
	params := url.Values{}
	for name, value := range claims {
		if slices.Contains(reserved, name) || value.Kind() == 'n' {
			continue
		}
		if name != "claims" {
			params[name] = texts(value)
		}
		if len(params[name]) == 0 {
			params[name] = []string{string(value)}
		}
	}
	return params
}

// texts returns the texts of a JSON string, or of an array of strings; nil: it is neither.
func texts(value jsontext.Value) []string {
	switch value.Kind() {
	case '"':
		var text string
		if json.Unmarshal(value, &text) != nil {
			return nil
		}
		return []string{text}
	case '[':
		var list []string
		if json.Unmarshal(value, &list) != nil {
			return nil
		}
		return list
	}
	return nil
}

// is reports whether a JSON value is one text.
func is(value jsontext.Value, text string) bool {
	return value.Kind() == '"' && slices.Equal(texts(value), []string{text})
}
