package assertion

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

var base64url = base64.RawURLEncoding.Strict()

// MaxKeys bounds the keys of a client.
const MaxKeys = 20

// The bounds of RSA keys, in bits: shorter keys are weak, longer ones slow.
const (
	minRSA = 2048
	maxRSA = 8192
)

// Keys are the public keys of a client that can verify assertions.
type Keys []key

type key struct {
	id     string // kid; may be empty
	public crypto.PublicKey
	algs   []string // the algorithms of the key
}

// secretMembers are the members of private and symmetric keys (RFC 7518 §6).
var secretMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// ParseKeys reads a JWK set (RFC 7517 §5) of 1 to [MaxKeys] keys, all of which must be able to
// verify assertions. Its errors do not quote keys.
func ParseKeys(set []byte) (Keys, error) {
	texts, err := split(set)
	if err != nil {
		return nil, err
	}
	if len(texts) == 0 || len(texts) > MaxKeys {
		return nil, fmt.Errorf("must have 1 to %d keys", MaxKeys)
	}
	var keys Keys
	for i, text := range texts {
		k, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("key %d %w", i+1, err)
		}
		if k.id == "" && len(texts) > 1 {
			return nil, fmt.Errorf("key %d has no kid; each of several keys needs one", i+1)
		}
		if slices.ContainsFunc(keys, func(other key) bool { return other.id == k.id }) {
			return nil, fmt.Errorf("key %d has the same kid as another key", i+1)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// UsableKeys reads a JWK set that a client publishes, and returns those of its keys that can
// verify assertions (RFC 7517 §5).
func UsableKeys(set []byte) (Keys, error) {
	texts, err := split(set)
	if err != nil {
		return nil, err
	}
	var keys Keys
	for _, text := range texts {
		if k, err := parse(text); err == nil && len(keys) < MaxKeys {
			keys = append(keys, k)
		}
	}
	if keys == nil {
		return nil, errors.New("has no key that can verify assertions")
	}
	return keys, nil
}

func split(set []byte) ([]jsontext.Value, error) {
	var s struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if json.Unmarshal(set, &s) != nil {
		return nil, errors.New("must be a JWK set")
	}
	return s.Keys, nil
}

// parse reads one JWK (RFC 7517 §4).
func parse(text jsontext.Value) (k key, err error) {
	var members map[string]jsontext.Value
	var about struct {
		KeyID      string   `json:"kid"`
		Use        string   `json:"use"`
		Operations []string `json:"key_ops"`
		Alg        string   `json:"alg"`
	}
	if json.Unmarshal(text, &members) != nil || json.Unmarshal(text, &about) != nil || len(about.KeyID) > maxText {
		return k, errors.New("is not a JWK")
	}
	if slices.ContainsFunc(secretMembers, func(name string) bool { _, ok := members[name]; return ok }) {
		return k, errors.New("is a private key; replace it, because it is no longer secret")
	}
	if about.Use != "" && about.Use != "sig" || about.Operations != nil && !slices.Contains(about.Operations, "verify") {
		return k, errors.New("is not for verifying signatures")
	}
	k.id = about.KeyID
	parsed, err := jwk.ParseKey(text)
	var public any
	if err == nil {
		err = jwk.Export(parsed, &public)
	}
	if err != nil { // its text may quote the key
		return k, errors.New("is not a JWK of type RSA, EC or OKP")
	}
	k.public = public
	if k.algs, err = algsOf(public); err != nil {
		return k, err
	}
	if about.Alg != "" {
		if !slices.Contains(k.algs, about.Alg) {
			return k, fmt.Errorf("has an alg that is not one of %q or does not fit its type", Algs)
		}
		k.algs = []string{about.Alg}
	}
	return k, nil
}

// algsOf returns the algorithms that a public key can verify.
func algsOf(public crypto.PublicKey) ([]string, error) {
	switch public := public.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < minRSA || bits > maxRSA || public.N.Bit(0) == 0 || public.E < 3 || public.E%2 == 0 {
			return nil, fmt.Errorf("is not an RSA key of %d to %d bits", minRSA, maxRSA)
		}
		return []string{"RS256", "PS256"}, nil
	case *ecdsa.PublicKey:
		if _, err := public.ECDH(); public.Curve != elliptic.P256() || err != nil {
			return nil, errors.New("is not a point of the curve P-256")
		}
		return []string{"ES256"}, nil
	case ed25519.PublicKey:
		return []string{"EdDSA"}, nil
	}
	return nil, fmt.Errorf("has a type that none of %q uses", Algs)
}

// choose returns the one key that has an id and is for an algorithm. Without an id, only
// one may be for it (OIDC Core §10.1).
func (keys Keys) choose(id, alg string) (crypto.PublicKey, error) {
	var chosen Keys
	known := false
	for _, k := range keys {
		if id == "" || k.id == id {
			known = true
			if slices.Contains(k.algs, alg) {
				chosen = append(chosen, k)
			}
		}
	}
	switch {
	case !known || id == "" && len(chosen) == 0:
		return nil, ErrUnknownKey
	case len(chosen) == 0:
		return nil, refused("the key does not allow alg")
	case len(chosen) > 1:
		return nil, refused("kid is required, because several keys match")
	}
	return chosen[0].public, nil
}
