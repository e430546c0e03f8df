package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/controlplane"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
)

// CreateTenant creates a tenant with an application that administers it. Both commit together,
// and what else a tenant begins with is made afterwards: if the process dies in between, another
// one goes on ([Service.Resume]). A request that is sent again gets a new secret of the
// application. CreateTenant fails with [ErrOrganizationNotFound], [*ForbiddenError],
// [*ConflictError] or [*FieldError], or as [controlplane.Directory.CreateTenant] does.
func (s *Service) CreateTenant(ctx context.Context, by Caller, orgID string, n NewTenant) (CreatedTenant, error) {
	if err := s.may(ctx, by, orgID, CreateTenant); err != nil {
		return CreatedTenant{}, err
	}
	region, err := s.Region(n.Region)
	if err != nil {
		return CreatedTenant{}, err
	}
	tenantID, commit := id.New(id.Tenant), cmp.Or(by.CommitID, id.New(id.Job))
	if by.CommitID != "" {
		tenantID = id.Of(id.Tenant, by.CommitID)
	}
	app := NewApplication{ID: id.Of(id.Application, commit), ClientID: id.Of(id.Client, commit), Name: "Administration", Administers: true}
	created := CreatedTenant{ApplicationID: app.ID, ClientID: app.ClientID}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) (err error) {
		if created.ClientSecret, err = s.applications.Create(ctx, tx, tenantID, app); err != nil {
			return err
		}
		created.Tenant, err = s.directory.CreateTenant(ctx, tx, controlplane.NewTenant{
			ID: tenantID, OrgID: orgID, Slug: n.Slug, Name: n.Name, BaseURL: s.directory.TenantURL(n.Slug),
			Environment: n.Environment, Region: region, CreatedBy: by.Subject.ID, Provisioning: true,
		})
		if err != nil {
			return err
		}
		// The directory orders the creations, so none is missed.
		n, err := s.directory.CountTenants(ctx, tx, orgID)
		if err == nil && n > s.maxTenants {
			err = &ConflictError{fmt.Sprintf("the organisation has %d tenants, which is the limit", s.maxTenants)}
		}
		return err
	})
	if by.CommitID != "" && (errors.Is(err, controlplane.ErrSlugTaken) || sqldb.IsUniqueViolation(err)) {
		again, found := s.directory.TenantByID(ctx, tenantID)
		if found == nil && again.OrgID == orgID {
			secret, err := s.applications.RotateSecret(ctx, tenantID, app.ID, true, func(*sqldb.Batch) {})
			if err != nil {
				return CreatedTenant{}, fmt.Errorf("create tenant: %w", err)
			}
			created.Tenant, created.ClientSecret = again, secret.Secret
			return created, nil
		}
	}
	if err != nil {
		return CreatedTenant{}, err
	}
	// The tenant exists. If this fails, the background goes on.
	if active, err := s.Provision(ctx, tenantID); err == nil {
		created.Tenant = active
	} else {
		s.logger.WarnContext(ctx, "provision tenant", "tenant", tenantID, "error", err)
	}
	return created, nil
}

// Region returns the region of a new tenant: the one that is asked for or, if that is empty, the
// default. It fails with [*FieldError] for one that the deployment lacks.
func (s *Service) Region(wanted string) (string, error) {
	switch {
	case wanted == "" && len(s.regions) > 0:
		return s.regions[0], nil
	case wanted != "" && len(s.regions) == 0:
		return "", &FieldError{Field: "region", Code: "unknown_value", Message: "must be absent: the deployment has no regions"}
	case wanted != "" && !slices.Contains(s.regions, wanted):
		return "", &FieldError{Field: "region", Code: "unknown_value", Message: fmt.Sprintf("must be one of %q", s.regions)}
	}
	return wanted, nil
}

// Provision makes what a tenant begins with, and then makes it active. It can be repeated. It needs no
// permission, because it is a part of the creation.
func (s *Service) Provision(ctx context.Context, tenantID string) (controlplane.Tenant, error) {
	if err := s.applications.Provision(ctx, tenantID); err != nil {
		return controlplane.Tenant{}, err
	}
	active, err := s.directory.Activate(ctx, tenantID)
	if refused := (*controlplane.StateError)(nil); errors.As(err, &refused) { // another process was first
		return s.directory.TenantByID(ctx, tenantID)
	}
	return active, err
}

// provisioningFor is how long a request has to provision a tenant before the background does.
const provisioningFor = 30 * time.Second

// Resume provisions the tenants of requests that have not finished.
func (s *Service) Resume(ctx context.Context) error {
	left, err := s.directory.Provisioning(ctx, s.now().Add(-provisioningFor), atOnce)
	for _, t := range left {
		if _, failed := s.Provision(eventlog.AsProduct(ctx), t.ID); failed != nil {
			err = errors.Join(err, fmt.Errorf("provision tenant %s: %w", t.ID, failed))
		}
	}
	return err
}

// Tenants lists the tenants of an organisation, newest first, in one state or, if it is empty, in
// all states, after a position (nil: from the start), at most limit. It fails with
// [ErrOrganizationNotFound].
func (s *Service) Tenants(ctx context.Context, by Caller, orgID string, state controlplane.TenantState, after *Position, limit int) ([]controlplane.Tenant, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return nil, err
	}
	if after == nil {
		after = &Position{}
	}
	return s.directory.TenantsOf(ctx, orgID, state, after.At, after.ID, limit)
}

// Tenant returns a tenant. It fails with [ErrOrganizationNotFound] or [ErrTenantNotFound].
func (s *Service) Tenant(ctx context.Context, by Caller, orgID, tenantID string) (controlplane.Tenant, error) {
	return s.mayTenant(ctx, by, orgID, tenantID, Read)
}

// RenameTenant changes the name of a tenant. It fails with [ErrOrganizationNotFound],
// [ErrTenantNotFound] or [*ForbiddenError], or as [controlplane.Directory.Rename] does.
func (s *Service) RenameTenant(ctx context.Context, by Caller, orgID, tenantID, name string) (controlplane.Tenant, error) {
	if _, err := s.mayTenant(ctx, by, orgID, tenantID, UpdateTenant); err != nil {
		return controlplane.Tenant{}, err
	}
	return s.directory.Rename(ctx, tenantID, name, eventlog.OriginOf(ctx))
}

// SuspendTenant suspends a tenant; see [controlplane.Directory.Suspend]. It also fails with
// [ErrOrganizationNotFound], [ErrTenantNotFound] or [*ForbiddenError].
func (s *Service) SuspendTenant(ctx context.Context, by Caller, orgID, tenantID, reason string) (controlplane.Tenant, error) {
	if _, err := s.mayTenant(ctx, by, orgID, tenantID, SuspendTenant); err != nil {
		return controlplane.Tenant{}, err
	}
	return s.directory.Suspend(ctx, tenantID, reason, eventlog.OriginOf(ctx))
}

// ResumeTenant resumes a tenant; see [controlplane.Directory.Resume]. It also fails with
// [ErrOrganizationNotFound], [ErrTenantNotFound] or [*ForbiddenError].
func (s *Service) ResumeTenant(ctx context.Context, by Caller, orgID, tenantID string) (controlplane.Tenant, error) {
	if _, err := s.mayTenant(ctx, by, orgID, tenantID, SuspendTenant); err != nil {
		return controlplane.Tenant{}, err
	}
	return s.directory.Resume(ctx, tenantID, eventlog.OriginOf(ctx))
}

// DecommissionTenant ends a tenant for good; see [controlplane.Directory.Decommission]. confirm
// must be its slug. It also fails with [ErrOrganizationNotFound], [ErrTenantNotFound],
// [*ForbiddenError] or [*FieldError].
func (s *Service) DecommissionTenant(ctx context.Context, by Caller, orgID, tenantID, confirm string) (controlplane.Tenant, error) {
	t, err := s.mayTenant(ctx, by, orgID, tenantID, DecommissionTenant)
	if err != nil {
		return controlplane.Tenant{}, err
	}
	if confirm != t.Slug {
		return controlplane.Tenant{}, &FieldError{Field: "confirm", Code: "invalid", Message: "must be the slug of the tenant, because this cannot be undone"}
	}
	return s.directory.Decommission(ctx, tenantID, eventlog.OriginOf(ctx))
}
