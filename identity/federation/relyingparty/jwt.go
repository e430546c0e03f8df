package relyingparty

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"stonetown/internal/jwks"
)

// refusal is the reason for which a token or an answer is refused. It never quotes it.
type refusal struct{ reason string }

func refused(reason string) error { return &refusal{reason} }

func (r *refusal) Error() string { return r.reason }

var (
	errUnknownKey = refused("signed with a key that the provider does not publish")
	errSignature  = refused("the signature is wrong")

	keyRefusals = map[error]error{
		jwks.ErrUnknown:   errUnknownKey,
		jwks.ErrAlgorithm: refused("the key does not allow alg"),
		jwks.ErrSeveral:   refused("several keys of the provider match kid and alg"),
	}
)

var base64url = base64.RawURLEncoding.Strict()

// signed is a JWT with a valid signature.
type signed struct {
	payload []byte
	alg     string
	key     jwks.Key
}

// header is the header of a JWT, as far as it is used. Keys in it and references to keys (jwk, jku,
// x5c, x5u) are ignored.
type header struct {
	Alg      string         `json:"alg"`
	KeyID    string         `json:"kid"`
	Type     string         `json:"typ"`
	Critical jsontext.Value `json:"crit"`
	Encoded  jsontext.Value `json:"b64"`
}

// open returns a JWT that was signed by one of some keys, has one of some algorithms, and one of
// some types, in lower case.
func open(keys jwks.Set, token string, algs, types []string) (signed, error) {
	if len(token) > maxToken {
		return signed{}, refused("the token is too large")
	}
	parts := strings.Split(token, ".")
	if len(parts) == 5 {
		return signed{}, refused("the token is encrypted, which is not supported")
	}
	var h header
	text, err := base64url.DecodeString(parts[0])
	if len(parts) != 3 || err != nil || json.Unmarshal(text, &h) != nil {
		return signed{}, refused("not a signed JWT")
	}
	alg, known := jwa.LookupSignatureAlgorithm(h.Alg)
	switch {
	case h.Critical != nil || h.Encoded != nil: // no extension is supported (RFC 7515 §4.1.11)
		return signed{}, refused("crit is not supported")
	case !slices.Contains(types, strings.TrimPrefix(strings.ToLower(h.Type), "application/")):
		return signed{}, refused("typ is not that of the token")
	case !known || !slices.Contains(algs, h.Alg):
		return signed{}, refused("alg is not one that the metadata of the provider allows")
	}
	k, err := keys.Choose(h.KeyID, h.Alg)
	if err != nil {
		return signed{}, keyRefusals[err]
	}
	payload, err := jws.Verify([]byte(token), jws.WithKey(alg, k.Public), jws.WithCompact())
	if err != nil {
		return signed{}, errSignature
	}
	return signed{payload, h.Alg, k}, nil
}

// verify is open with the keys of a provider. If the key is unknown, or the provider may have
// replaced it under the same id, the keys are fetched again.
func (s *Service) verify(ctx context.Context, m Metadata, token string, types ...string) (signed, error) {
	var since time.Time
	for {
		keys, err := s.keys.get(ctx, m.JWKSURI, since)
		if err != nil {
			return signed{}, err
		}
		opened, err := open(keys, token, m.algorithms(), types)
		if !since.IsZero() || !errors.Is(err, errUnknownKey) && !errors.Is(err, errSignature) {
			return opened, err
		}
		since = s.clock()
	}
}
