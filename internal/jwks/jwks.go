// Package jwks reads the public keys that others publish to verify what they sign: JWK sets
// (RFC 7517) of applications and of OpenID providers.
package jwks

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

// The bounds of RSA keys, in bits: shorter keys are weak, longer ones slow.
const (
	minRSA = 2048
	maxRSA = 8192
)

const maxID = 1024 // bytes of a kid

// The errors of [Set.Choose].
var (
	ErrUnknown   = errors.New("no key matches kid and alg")
	ErrAlgorithm = errors.New("the key does not allow alg")
	ErrSeveral   = errors.New("several keys match kid and alg")
)

// Key is a public key that can verify signatures.
type Key struct {
	ID     string // kid; may be empty
	Issuer string // whose tokens it signs, at a provider with many directories; may be empty
	Public crypto.PublicKey
	Algs   []string // the algorithms of the key (RFC 7518 §3.1, RFC 8037 §3.1); at least one
	// Certificate is the certificate of the key, in DER: the first of x5c (RFC 7517 §4.7); nil: none.
	Certificate []byte
}

// Set are keys.
type Set []Key

// Split returns the keys of a JWK set, unread (RFC 7517 §5).
func Split(set []byte) ([]jsontext.Value, error) {
	var s struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if json.Unmarshal(set, &s) != nil {
		return nil, errors.New("must be a JWK set")
	}
	return s.Keys, nil
}

// Usable returns the first keys of a JWK set that can verify signatures with one of algs. Others
// are ignored, as RFC 7517 §5 demands.
func Usable(set []byte, algs []string, limit int) Set {
	texts, err := Split(set)
	if err != nil {
		return nil
	}
	var keys Set
	for _, text := range texts {
		if k, err := Parse(text, algs); err == nil && len(keys) < limit {
			keys = append(keys, k)
		}
	}
	return keys
}

// secretMembers are the members of private and symmetric keys (RFC 7518 §6).
var secretMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// Parse reads one JWK (RFC 7517 §4), for one of algs. It refuses private and symmetric keys, which
// are not secret if they are published. Its errors complete the sentence "the key ..." and do
// not quote the key.
func Parse(text jsontext.Value, algs []string) (Key, error) {
	var members map[string]jsontext.Value
	var about struct {
		KeyID      string   `json:"kid"`
		Use        string   `json:"use"`
		Operations []string `json:"key_ops"`
		Alg        string   `json:"alg"`
		Issuer     string   `json:"issuer"`
		Chain      [][]byte `json:"x5c"` // in base64
	}
	if json.Unmarshal(text, &members) != nil || json.Unmarshal(text, &about) != nil || len(about.KeyID) > maxID {
		return Key{}, errors.New("is not a JWK")
	}
	if slices.ContainsFunc(secretMembers, func(name string) bool { _, ok := members[name]; return ok }) {
		return Key{}, errors.New("is a private key; replace it, because it is no longer secret")
	}
	if about.Use != "" && about.Use != "sig" || about.Operations != nil && !slices.Contains(about.Operations, "verify") {
		return Key{}, errors.New("is not for verifying signatures")
	}
	parsed, err := jwk.ParseKey(text)
	var public any
	if err == nil {
		err = jwk.Export(parsed, &public)
	}
	if err != nil { // its text may quote the key
		return Key{}, errors.New("is not a JWK of type RSA, EC or OKP")
	}
	own, err := algorithms(public)
	if err != nil {
		return Key{}, err
	}
	own = slices.DeleteFunc(own, func(alg string) bool {
		return !slices.Contains(algs, alg) || about.Alg != "" && about.Alg != alg
	})
	if len(own) == 0 {
		return Key{}, fmt.Errorf("has a type or an alg that is not one of %q", algs)
	}
	k := Key{ID: about.KeyID, Issuer: about.Issuer, Public: public, Algs: own}
	if len(about.Chain) > 0 {
		k.Certificate = about.Chain[0]
		certified, err := x509.ParseCertificate(k.Certificate)
		if err != nil || !equal(certified.PublicKey, public) {
			return Key{}, errors.New("has an x5c that is not a certificate of the key")
		}
	}
	return k, nil
}

// equal reports whether two public keys are the same.
func equal(a, b any) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}

// algorithms returns the algorithms whose signatures a public key can verify; none for an unknown
// type.
func algorithms(public any) ([]string, error) {
	switch public := public.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < minRSA || bits > maxRSA || public.N.Bit(0) == 0 || public.E < 3 || public.E%2 == 0 {
			return nil, fmt.Errorf("is not an RSA key of %d to %d bits", minRSA, maxRSA)
		}
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, nil
	case *ecdsa.PublicKey:
		if _, err := public.ECDH(); err != nil {
			return nil, errors.New("is not a point of its curve")
		}
		switch public.Curve {
		case elliptic.P256():
			return []string{"ES256"}, nil
		case elliptic.P384():
			return []string{"ES384"}, nil
		case elliptic.P521():
			return []string{"ES512"}, nil
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}, nil
	}
	return nil, nil
}

// Choose returns the one key that has an id and is for an algorithm. Without an id, only one may
// be for it (OpenID Connect Core §10.1).
func (s Set) Choose(id, alg string) (Key, error) {
	var chosen Set
	known := false
	for _, k := range s {
		if id == "" || k.ID == id {
			known = true
			if slices.Contains(k.Algs, alg) {
				chosen = append(chosen, k)
			}
		}
	}
	switch {
	case !known || id == "" && len(chosen) == 0:
		return Key{}, ErrUnknown
	case len(chosen) == 0:
		return Key{}, ErrAlgorithm
	case len(chosen) > 1:
		return Key{}, ErrSeveral
	}
	return chosen[0], nil
}
