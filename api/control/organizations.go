package control

import (
	"context"

	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/controlplane/management"
)

const organizationsPath = "/api/v1/organizations/"

func organization(info *web.RequestInfo, o controlplane.Organization) OrganizationRead {
	return OrganizationRead{Data: o.Document(), Meta: meta(info)}
}

// ListOrganizations lists the organisations of the caller.
func (h *Handlers) ListOrganizations(ctx context.Context, request ListOrganizationsRequestObject) (ListOrganizationsResponseObject, error) {
	info, by := caller(ctx)
	// The list is that of the caller, so the cursor is its own as well.
	list := []string{"listOrganizations", by.Subject.Type, by.Subject.ID}
	found, meta, err := page(h, info, list, request.Params.Limit, request.Params.Cursor, func(after *management.Position, limit int) ([]controlplane.Organization, error) {
		return h.Service.Organizations(ctx, by, after, limit)
	}, func(o controlplane.Organization) management.Position {
		return management.Position{At: o.CreatedAt, ID: o.ID}
	})
	return ListOrganizations200JSONResponse{Body: OrganizationList{Data: documents(found, controlplane.Organization.Document), Meta: meta}}, err
}

// CreateOrganization creates an organisation.
func (h *Handlers) CreateOrganization(ctx context.Context, request CreateOrganizationRequestObject) (CreateOrganizationResponseObject, error) {
	info, by := caller(ctx)
	var v web.Validation
	v.Text("", "slug", request.Body.Slug)
	v.Text("", "name", request.Body.Name)
	if err := v.Err(); err != nil {
		return nil, err
	}
	o, err := h.Service.CreateOrganization(ctx, by, request.Body.Slug, request.Body.Name)
	return CreateOrganization201JSONResponse{
		Body: organization(info, o), Headers: CreateOrganization201ResponseHeaders{Location: organizationsPath + o.ID},
	}, err
}

// GetOrganization reads an organisation.
func (h *Handlers) GetOrganization(ctx context.Context, request GetOrganizationRequestObject) (GetOrganizationResponseObject, error) {
	info, by := caller(ctx)
	o, err := h.Service.Organization(ctx, by, request.OrgID)
	return GetOrganization200JSONResponse{Body: organization(info, o)}, err
}

// PatchOrganization renames an organisation.
func (h *Handlers) PatchOrganization(ctx context.Context, request PatchOrganizationRequestObject) (PatchOrganizationResponseObject, error) {
	info, by := caller(ctx)
	in := request.Body
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: in.ID}, web.Member{Name: "slug", Value: in.Slug}, web.Member{Name: "state", Value: in.State},
		web.Member{Name: "created_at", Value: in.CreatedAt}, web.Member{Name: "updated_at", Value: in.UpdatedAt},
	); err != nil {
		return nil, err
	}
	var v web.Validation
	v.Text("", "name", in.Name)
	if err := v.Err(); err != nil {
		return nil, err
	}
	o, err := h.Service.UpdateOrganization(ctx, by, request.OrgID, func(o *controlplane.Organization) { o.Name = in.Name })
	return PatchOrganization200JSONResponse{Body: organization(info, o)}, err
}

// ListPermissions lists what the caller may do.
func (h *Handlers) ListPermissions(ctx context.Context, request ListPermissionsRequestObject) (ListPermissionsResponseObject, error) {
	info, by := caller(ctx)
	permissions, err := h.Service.Permissions(ctx, by, request.OrgID)
	if err != nil {
		return nil, err
	}
	return ListPermissions200JSONResponse{Body: PermissionsRead{Data: Permissions{Permissions: permissions}, Meta: meta(info)}}, nil
}
