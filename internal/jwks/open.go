package jwks

import (
	"errors"
	"slices"
	"strings"

	"github.com/lestrrat-go/jwx/v3/jws"
)

// The errors of [Set.Open], beside those of [Set.Choose].
var (
	ErrTooLarge  = errors.New("it is too large")
	ErrNotSigned = errors.New("not a signed JWT")
	ErrCritical  = errors.New("crit is not supported")
	ErrType      = errors.New("typ is that of a JWT for another purpose")
	ErrUnsigned  = errors.New("alg none is not supported")
	ErrAlg       = errors.New("alg is not supported")
	ErrSignature = errors.New("the signature is wrong")
)

// Open returns the payload of a JWT of at most size bytes, and the algorithm by which one of the keys
// has signed it. The JWT has one of algs, and one of types, which are in lower case and without
// "application/"; an empty one permits a JWT without typ. Of the header, Open reads alg, kid and typ:
// keys and references to keys (jwk, jku, x5c, x5u) are ignored. Its errors do not quote the JWT.
func (s Set) Open(token string, size int, algs, types []string) (payload []byte, alg string, err error) {
	if len(token) > size {
		return nil, "", ErrTooLarge
	}
	message, err := jws.ParseString(token, jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 {
		return nil, "", ErrNotSigned
	}
	header := message.Signatures()[0].ProtectedHeaders()
	if header.Has(jws.CriticalKey) { // no extension is supported (RFC 7515 §4.1.11)
		return nil, "", ErrCritical
	}
	typ, _ := header.Type()
	if !slices.Contains(types, strings.TrimPrefix(strings.ToLower(typ), "application/")) {
		return nil, "", ErrType
	}
	by, _ := header.Algorithm()
	switch alg = by.String(); {
	case alg == "none":
		return nil, "", ErrUnsigned
	case !slices.Contains(algs, alg):
		return nil, "", ErrAlg
	}
	kid, _ := header.KeyID()
	key, err := s.Choose(kid, alg)
	if err != nil {
		return nil, "", err
	}
	payload, err = jws.Verify([]byte(token), jws.WithKey(by, key.Public), jws.WithCompact())
	if err != nil {
		return nil, "", ErrSignature
	}
	return payload, alg, nil
}
