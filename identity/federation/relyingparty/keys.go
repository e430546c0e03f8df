package relyingparty

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

// Algorithms are the supported signature algorithms (RFC 7518 §3.1, RFC 8037 §3.1). All of them
// are asymmetric.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

const (
	maxKeys = 100

	// The bounds of RSA keys, in bits: shorter keys are weak, longer ones slow.
	minRSA = 2048
	maxRSA = 8192
)

// keySet are the usable keys that a provider publishes.
type keySet []key

type key struct {
	id     string // kid; may be empty
	public crypto.PublicKey
	algs   []string // the algorithms of the key
	issuer string   // whose tokens it signs, at a provider with many directories; may be empty
}

// parseKeys reads a JWK set (RFC 7517 §5) and returns the keys in it that can verify signatures.
// Others are ignored, as §5 demands.
func parseKeys(text []byte) keySet {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if json.Unmarshal(text, &set) != nil {
		return nil
	}
	var keys keySet
	for _, text := range set.Keys {
		if k, ok := parseKey(text); ok && len(keys) < maxKeys {
			keys = append(keys, k)
		}
	}
	return keys
}

// parseKey reads one JWK (RFC 7517 §4). It refuses private and symmetric keys, which are not
// secret if they are published.
func parseKey(text jsontext.Value) (k key, ok bool) {
	var members map[string]jsontext.Value
	var about struct {
		KeyID      string   `json:"kid"`
		Use        string   `json:"use"`
		Operations []string `json:"key_ops"`
		Alg        string   `json:"alg"`
		Issuer     string   `json:"issuer"`
	}
	if json.Unmarshal(text, &members) != nil || json.Unmarshal(text, &about) != nil {
		return k, false
	}
	if members["d"] != nil || members["k"] != nil ||
		about.Use != "" && about.Use != "sig" || about.Operations != nil && !slices.Contains(about.Operations, "verify") {
		return k, false
	}
	parsed, err := jwk.ParseKey(text)
	if err != nil {
		return k, false
	}
	var public any
	if jwk.Export(parsed, &public) != nil {
		return k, false
	}
	k = key{id: about.KeyID, public: public, algs: algorithmsOf(public), issuer: about.Issuer}
	if about.Alg != "" {
		k.algs = slices.DeleteFunc(k.algs, func(alg string) bool { return alg != about.Alg })
	}
	return k, len(k.algs) > 0
}

// algorithmsOf returns the algorithms that a public key can verify; none of a weak or unknown key.
func algorithmsOf(public crypto.PublicKey) []string {
	switch public := public.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < minRSA || bits > maxRSA || public.N.Bit(0) == 0 || public.E < 3 || public.E%2 == 0 {
			return nil
		}
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case *ecdsa.PublicKey:
		if _, err := public.ECDH(); err != nil { // not a point of a curve
			return nil
		}
		switch public.Curve {
		case elliptic.P256():
			return []string{"ES256"}
		case elliptic.P384():
			return []string{"ES384"}
		case elliptic.P521():
			return []string{"ES512"}
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	}
	return nil
}

// choose returns the one key that has an id and is for an algorithm. Without an id, only one may be
// for it (Core §10.1).
func (keys keySet) choose(id, alg string) (key, error) {
	var chosen keySet
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
		return key{}, errUnknownKey
	case len(chosen) == 0:
		return key{}, refused("the key does not allow alg")
	case len(chosen) > 1:
		return key{}, refused("several keys of the provider match kid and alg")
	}
	return chosen[0], nil
}

func (s *Service) fetchKeys(ctx context.Context, from string) (keySet, error) {
	text, err := s.fetch(ctx, from)
	if err != nil {
		return nil, at(Keys, err)
	}
	keys := parseKeys(text)
	if len(keys) == 0 {
		return nil, failed(Misconfigured, Keys, "the provider publishes no key that can verify tokens")
	}
	return keys, nil
}
