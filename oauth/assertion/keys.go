package assertion

import (
	"errors"
	"fmt"
	"slices"

	"stonetown/internal/jwks"
)

// MaxKeys bounds the keys of a client.
const MaxKeys = 20

// Keys are the public keys of a client that can verify assertions.
type Keys = jwks.Set

// ParseKeys reads a JWK set (RFC 7517 §5) of 1 to [MaxKeys] keys, all of which must be able to
// verify assertions. Its errors do not quote keys.
func ParseKeys(set []byte) (Keys, error) {
	texts, err := jwks.Split(set)
	if err != nil {
		return nil, err
	}
	if len(texts) == 0 || len(texts) > MaxKeys {
		return nil, fmt.Errorf("must have 1 to %d keys", MaxKeys)
	}
	var keys Keys
	for i, text := range texts {
		k, err := jwks.Parse(text, Algs)
		if err != nil {
			return nil, fmt.Errorf("key %d %w", i+1, err)
		}
		if k.ID == "" && len(texts) > 1 {
			return nil, fmt.Errorf("key %d has no kid; each of several keys needs one", i+1)
		}
		if slices.ContainsFunc(keys, func(other jwks.Key) bool { return other.ID == k.ID }) {
			return nil, fmt.Errorf("key %d has the same kid as another key", i+1)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// UsableKeys reads a JWK set that a client publishes, and returns those of its keys that can
// verify assertions (RFC 7517 §5).
func UsableKeys(set []byte) (Keys, error) {
	if _, err := jwks.Split(set); err != nil {
		return nil, err
	}
	keys := jwks.Usable(set, Algs, MaxKeys)
	if len(keys) == 0 {
		return nil, errors.New("has no key that can verify assertions")
	}
	return keys, nil
}

// refusals are the refusals of assertions for which no one key is found.
var refusals = map[error]error{
	jwks.ErrUnknown:   ErrUnknownKey,
	jwks.ErrAlgorithm: refused("the key does not allow alg"),
	jwks.ErrSeveral:   refused("kid is required, because several keys match"),
}
