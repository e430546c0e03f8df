package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"stonetown/internal/jwks"
	"stonetown/internal/jwks/published"
)

// withKeys calls verify with the keys of an issuer, and again with those that it publishes by now if
// the key is unknown.
func (r *Registry) withKeys(ctx context.Context, i Issuer, verify func(jwks.Set) error) error {
	from := published.Source{TenantID: i.TenantID, Owner: i.ID, URI: i.JWKSURI}
	switch {
	case i.JWKS != nil:
		return verify(jwks.Usable(i.JWKS, i.Algs, maxKeys))
	case i.JWKSURI == "":
		from.Issuer = i.Issuer
	}
	return r.keys.Use(ctx, from, verify)
}

const (
	wellKnown    = "/.well-known/openid-configuration"
	maxDiscovery = 64 << 10 // bytes
)

// fetchKeys fetches the keys of an issuer, from their address or by its discovery document.
func (r *Registry) fetchKeys(ctx context.Context, from published.Source) (jwks.Set, error) {
	uri := from.URI
	if from.Issuer != "" {
		var err error
		if uri, err = r.discover(ctx, from.Issuer); err != nil {
			return nil, err
		}
	}
	text, err := r.fetch.Get(ctx, uri, published.MaxSet)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	keys := jwks.Usable(text, Algs, maxKeys)
	if len(keys) == 0 {
		return nil, errors.New("the set has no key that can verify tokens")
	}
	return keys, nil
}

// discover returns the address of an issuer's keys (OpenID Connect Discovery §4). The document must
// be that of the issuer, byte for byte (§4.3).
func (r *Registry) discover(ctx context.Context, issuer string) (jwksURI string, err error) {
	text, err := r.fetch.Get(ctx, strings.TrimSuffix(issuer, "/")+wellKnown, maxDiscovery)
	if err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	var document struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	switch {
	case json.Unmarshal(text, &document) != nil:
		return "", errors.New("discovery: the document is not valid JSON")
	case document.Issuer != issuer:
		return "", errors.New("discovery: the document is that of another issuer")
	}
	return document.JWKSURI, nil
}
