package control

import (
	"context"

	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/controlplane/management"
	"stonetown/internal/document"
)

// createdTenant is a new tenant with the credentials of its first application, which are part of
// this response only.
type createdTenant struct {
	controlplane.TenantDocument
	AdminApplication adminApplication `json:"admin_application"`
}

type adminApplication struct {
	ApplicationID string `json:"application_id"`
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
}

func tenant(info *web.RequestInfo, t controlplane.Tenant) TenantRead {
	return TenantRead{Data: t.Document(), Meta: meta(info)}
}

// ListTenants lists the tenants of an organisation.
func (h *Handlers) ListTenants(ctx context.Context, request ListTenantsRequestObject) (ListTenantsResponseObject, error) {
	info, by := caller(ctx)
	state := controlplane.TenantState(request.Params.State)
	var v web.Validation
	web.OneOf(&v, "state", state, controlplane.TenantProvisioning, controlplane.TenantActive, controlplane.TenantSuspended, controlplane.TenantDecommissioned)
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := []string{"listTenants", request.OrgID, string(state)}
	found, meta, err := page(h, info, list, request.Params.Limit, request.Params.Cursor, func(after *management.Position, limit int) ([]controlplane.Tenant, error) {
		return h.Service.Tenants(ctx, by, request.OrgID, state, after, limit)
	}, func(t controlplane.Tenant) management.Position {
		return management.Position{At: t.CreatedAt, ID: t.ID}
	})
	return ListTenants200JSONResponse{Body: TenantList{Data: documents(found, controlplane.Tenant.Document), Meta: meta}}, err
}

// CreateTenant creates a tenant.
func (h *Handlers) CreateTenant(ctx context.Context, request CreateTenantRequestObject) (CreateTenantResponseObject, error) {
	info, by := caller(ctx)
	in := request.Body
	var v web.Validation
	v.Text("", "slug", in.Slug)
	v.Text("", "name", in.Name)
	web.OneOf(&v, "environment", in.Environment, controlplane.Production, controlplane.Staging, controlplane.Development)
	if in.Region != "" {
		v.Text("", "region", in.Region)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	created, err := h.Service.CreateTenant(ctx, by, request.OrgID, management.NewTenant{Slug: in.Slug, Name: in.Name, Environment: in.Environment, Region: in.Region})
	return CreateTenant201JSONResponse{
		Body: TenantCreated{
			Data: createdTenant{created.Document(), adminApplication{created.ApplicationID, created.ClientID, created.ClientSecret}}, Meta: meta(info),
		},
		Headers: CreateTenant201ResponseHeaders{Location: organizationsPath + request.OrgID + "/tenants/" + created.ID},
	}, err
}

// GetTenant reads a tenant.
func (h *Handlers) GetTenant(ctx context.Context, request GetTenantRequestObject) (GetTenantResponseObject, error) {
	info, by := caller(ctx)
	t, err := h.Service.Tenant(ctx, by, request.OrgID, request.TenantID)
	return GetTenant200JSONResponse{Body: tenant(info, t)}, err
}

// PatchTenant renames a tenant.
func (h *Handlers) PatchTenant(ctx context.Context, request PatchTenantRequestObject) (PatchTenantResponseObject, error) {
	info, by := caller(ctx)
	in := request.Body
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: in.ID}, web.Member{Name: "org_id", Value: in.OrgID}, web.Member{Name: "slug", Value: in.Slug},
		web.Member{Name: "environment", Value: in.Environment}, web.Member{Name: "region", Value: in.Region}, web.Member{Name: "state", Value: in.State},
		web.Member{Name: "base_url", Value: in.BaseURL}, web.Member{Name: "created_by", Value: in.CreatedBy},
		web.Member{Name: "created_at", Value: in.CreatedAt}, web.Member{Name: "updated_at", Value: in.UpdatedAt},
		web.Member{Name: "suspended_at", Value: in.SuspendedAt}, web.Member{Name: "suspend_reason", Value: in.SuspendReason},
		web.Member{Name: "decommissioned_at", Value: in.DecommissionedAt}, web.Member{Name: "purge_at", Value: in.PurgeAt},
	); err != nil {
		return nil, err
	}
	var v web.Validation
	v.Text("", "name", in.Name)
	if err := v.Err(); err != nil {
		return nil, err
	}
	t, err := h.Service.RenameTenant(ctx, by, request.OrgID, request.TenantID, in.Name)
	return PatchTenant200JSONResponse{Body: tenant(info, t)}, err
}

// SuspendTenant suspends a tenant.
func (h *Handlers) SuspendTenant(ctx context.Context, request SuspendTenantRequestObject) (SuspendTenantResponseObject, error) {
	info, by := caller(ctx)
	t, err := h.Service.SuspendTenant(ctx, by, request.OrgID, request.TenantID, request.Body.Reason)
	return SuspendTenant200JSONResponse{Body: tenant(info, t)}, err
}

// ResumeTenant resumes a suspended tenant.
func (h *Handlers) ResumeTenant(ctx context.Context, request ResumeTenantRequestObject) (ResumeTenantResponseObject, error) {
	info, by := caller(ctx)
	t, err := h.Service.ResumeTenant(ctx, by, request.OrgID, request.TenantID)
	return ResumeTenant200JSONResponse{Body: tenant(info, t)}, err
}

// DecommissionTenant ends a tenant for good.
func (h *Handlers) DecommissionTenant(ctx context.Context, request DecommissionTenantRequestObject) (DecommissionTenantResponseObject, error) {
	info, by := caller(ctx)
	t, err := h.Service.DecommissionTenant(ctx, by, request.OrgID, request.TenantID, request.Body.Confirm)
	return DecommissionTenant200JSONResponse{Body: tenant(info, t)}, err
}

// OpenConsole returns a link into the console of a tenant.
func (h *Handlers) OpenConsole(ctx context.Context, request OpenConsoleRequestObject) (OpenConsoleResponseObject, error) {
	info, by := caller(ctx)
	link, err := h.Service.OpenConsole(ctx, by, request.OrgID, request.TenantID)
	return OpenConsole201JSONResponse{Body: ConsoleLinkCreated{Data: ConsoleLink{URL: link.URL, ExpiresAt: document.Timestamp(link.ExpiresAt)}, Meta: meta(info)}}, err
}
