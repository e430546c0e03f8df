// Package settings composes the settings of a tenant. Each module stores its own; to
// clients they are one document, which changes in one transaction and with one event.
package settings

import (
	"context"

	"stonetown/controlplane"
	"stonetown/identity"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
)

// Service reads and changes the settings of tenants. It is safe for concurrent use.
type Service struct {
	tenants      *controlplane.Directory
	users        *identity.Directory
	applications *client.Registry
}

// New returns a service over the modules, which share a database.
func New(tenants *controlplane.Directory, users *identity.Directory, applications *client.Registry) *Service {
	return &Service{tenants, users, applications}
}

// Settings are the settings of a tenant.
type Settings struct {
	RateLimits   ratelimit.Limits // limits of the tenant itself
	Users        identity.Settings
	Applications client.Settings
}

// Change is a change of settings. Its functions receive the current settings, may run more than
// once, and keep all settings that they do not change.
type Change struct {
	SetLimits    ratelimit.Limits
	ClearLimits  []ratelimit.Counted // the deployment's limits apply again
	Users        func(*identity.Settings)
	Applications func(*client.Settings)
}

// Settings reads the settings of a tenant. It fails with [controlplane.ErrTenantNotFound].
func (s *Service) Settings(ctx context.Context, tenantID string) (all Settings, err error) {
	t, err := s.tenants.TenantByID(ctx, tenantID)
	if err != nil {
		return all, err
	}
	all.RateLimits = t.RateLimits
	if all.Users, err = s.users.Settings(ctx, tenantID); err != nil {
		return all, err
	}
	all.Applications, err = s.applications.Settings(ctx, tenantID)
	return all, err
}

// UpdateSettings changes the settings of a tenant, with the event tenant.settings_updated if
// anything differs, and returns the result. It fails with [controlplane.ErrTenantNotFound].
func (s *Service) UpdateSettings(ctx context.Context, tenantID string, change Change) (after Settings, err error) {
	_, err = s.tenants.UpdateRateLimits(ctx, tenantID, change.SetLimits, change.ClearLimits, func(ctx context.Context, tx *sqldb.Tx, limitsBefore, limits ratelimit.Limits) (err error) {
		before := Settings{RateLimits: limitsBefore}
		after = Settings{RateLimits: limits}
		if before.Users, after.Users, err = s.users.UpdateSettings(ctx, tx, tenantID, change.Users); err != nil {
			return err
		}
		if before.Applications, after.Applications, err = s.applications.UpdateSettings(ctx, tx, tenantID, change.Applications); err != nil {
			return err
		}
		changes := document.Difference(before.Document(), after.Document())
		if len(changes) == 0 {
			return nil
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, updated(ctx, after, changes))
		return tx.Send(ctx, &b)
	})
	s.applications.OriginsChanged(tenantID)
	return after, err
}

// updated returns the event of changed settings.
func updated(ctx context.Context, s Settings, changes document.Changes) eventlog.Event {
	return eventlog.Of(ctx, eventlog.TenantSettingsUpdated, struct {
		Settings Document         `json:"settings"`
		Changes  document.Changes `json:"changes"`
	}{s.Document(), changes})
}
