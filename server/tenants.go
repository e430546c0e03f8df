package server

import (
	"context"
	"slices"

	"stonetown/controlplane"
	"stonetown/identity/authn"
	"stonetown/identity/federation"
	"stonetown/oauth/protocol"
	"stonetown/webhooks/delivery"
)

// tenants adapts the directory of tenants to the packages that act for one of them in the
// background.
type tenants struct{ directory *controlplane.Directory }

// AuthnTenant implements [authn.Tenants].
func (t tenants) AuthnTenant(ctx context.Context, tenantID string) (authn.Tenant, error) {
	found, err := t.directory.TenantByID(ctx, tenantID)
	return authn.Tenant{ID: found.ID, Name: found.Name, BaseURL: found.BaseURL, Branding: found.Branding}, err
}

// OAuthTenant returns the tenant that package oauth issues tokens of.
func (t tenants) OAuthTenant(ctx context.Context, tenantID string) (protocol.Tenant, error) {
	found, err := t.directory.TenantByID(ctx, tenantID)
	return protocol.Tenant{ID: found.ID, BaseURL: found.BaseURL}, err
}

// FederationTenant implements [federation.Tenants].
func (t tenants) FederationTenant(ctx context.Context, tenantID string) (federation.Tenant, error) {
	found, err := t.directory.TenantByID(ctx, tenantID)
	return federation.Tenant{ID: found.ID, BaseURL: found.BaseURL}, err
}

// WebhookTenant implements [delivery.Tenants].
func (t tenants) WebhookTenant(ctx context.Context, tenantID string) (delivery.Tenant, error) {
	found, err := t.directory.TenantByID(ctx, tenantID)
	return delivery.Tenant{ID: found.ID, Slug: found.Slug}, err
}

// InactiveTenants implements [delivery.Tenants].
func (t tenants) InactiveTenants(ctx context.Context) ([]string, error) {
	return t.directory.InactiveTenants(ctx)
}

// serves returns which tenants are served; nil for all.
func (c Config) serves() func(controlplane.Tenant) bool {
	if len(c.ServeRegions) == 0 && len(c.ServeTenants) == 0 {
		return nil
	}
	return func(t controlplane.Tenant) bool {
		return t.ID == controlplane.SystemTenant || slices.Contains(c.ServeRegions, t.Region) || slices.Contains(c.ServeTenants, t.Slug)
	}
}
