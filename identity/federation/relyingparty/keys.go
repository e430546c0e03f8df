package relyingparty

import (
	"context"

	"stonetown/internal/jwks"
)

// Algorithms are the supported signature algorithms (RFC 7518 §3.1, RFC 8037 §3.1). All of them
// are asymmetric.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

const maxKeys = 100

// fetchKeys returns the usable keys that a provider publishes.
func (s *Service) fetchKeys(ctx context.Context, from string) (jwks.Set, error) {
	text, err := s.fetch(ctx, from, Keys)
	if err != nil {
		return nil, at(Keys, err)
	}
	keys := jwks.Usable(text, Algorithms, maxKeys)
	if len(keys) == 0 {
		return nil, failed(Misconfigured, Keys, "the provider publishes no key that can verify tokens")
	}
	return keys, nil
}
