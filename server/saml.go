package server

import (
	"context"

	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/samlkeys"
)

// serviceProviderKeys are the keys of tenants as service providers, for package signin.
type serviceProviderKeys struct{ *samlkeys.Store }

// Keys implements [signin.Keys].
func (s serviceProviderKeys) Keys(ctx context.Context, tenantID string) ([]serviceprovider.Key, error) {
	keys, err := s.Store.Keys(ctx, tenantID, samlkeys.ServiceProvider)
	list := make([]serviceprovider.Key, len(keys))
	for i, k := range keys {
		list[i] = serviceprovider.Key{Private: k.Private, Certificate: k.Certificate}
	}
	return list, err
}
