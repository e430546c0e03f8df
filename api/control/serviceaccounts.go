package control

import (
	"context"

	"stonetown/api/web"
	"stonetown/controlplane/management"
	"stonetown/internal/document"
)

// createdServiceAccount is a new service account with its secret, which is part of this response
// only.
type createdServiceAccount struct {
	management.ServiceAccountDocument
	ClientSecret string `json:"client_secret"`
}

func serviceAccount(info *web.RequestInfo, a management.ServiceAccount) ServiceAccountRead {
	return ServiceAccountRead{Data: a.Document(), Meta: meta(info)}
}

// ListServiceAccounts lists the service accounts of an organisation.
func (h *Handlers) ListServiceAccounts(ctx context.Context, request ListServiceAccountsRequestObject) (ListServiceAccountsResponseObject, error) {
	info, by := caller(ctx)
	list := []string{"listServiceAccounts", request.OrgID}
	found, meta, err := page(h, info, list, request.Params.Limit, request.Params.Cursor, func(after *management.Position, limit int) ([]management.ServiceAccount, error) {
		return h.Service.ServiceAccounts(ctx, by, request.OrgID, after, limit)
	}, func(a management.ServiceAccount) management.Position {
		return management.Position{At: a.CreatedAt, ID: a.ID}
	})
	return ListServiceAccounts200JSONResponse{Body: ServiceAccountList{Data: documents(found, management.ServiceAccount.Document), Meta: meta}}, err
}

// CreateServiceAccount creates a service account.
func (h *Handlers) CreateServiceAccount(ctx context.Context, request CreateServiceAccountRequestObject) (CreateServiceAccountResponseObject, error) {
	info, by := caller(ctx)
	var v web.Validation
	v.Text("", "name", request.Body.Name)
	v.Text("", "role", string(request.Body.Role))
	if err := v.Err(); err != nil {
		return nil, err
	}
	a, secret, err := h.Service.CreateServiceAccount(ctx, by, request.OrgID, request.Body.Name, request.Body.Role)
	return CreateServiceAccount201JSONResponse{
		Body:    ServiceAccountCreated{Data: createdServiceAccount{a.Document(), secret}, Meta: meta(info)},
		Headers: CreateServiceAccount201ResponseHeaders{Location: organizationsPath + request.OrgID + "/service-accounts/" + a.ID},
	}, err
}

// GetServiceAccount reads a service account.
func (h *Handlers) GetServiceAccount(ctx context.Context, request GetServiceAccountRequestObject) (GetServiceAccountResponseObject, error) {
	info, by := caller(ctx)
	a, err := h.Service.ServiceAccount(ctx, by, request.OrgID, request.ServiceAccountID)
	return GetServiceAccount200JSONResponse{Body: serviceAccount(info, a)}, err
}

// PatchServiceAccount changes a service account.
func (h *Handlers) PatchServiceAccount(ctx context.Context, request PatchServiceAccountRequestObject) (PatchServiceAccountResponseObject, error) {
	info, by := caller(ctx)
	in := request.Body
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: in.ID}, web.Member{Name: "org_id", Value: in.OrgID}, web.Member{Name: "client_id", Value: in.ClientID},
		web.Member{Name: "created_by", Value: in.CreatedBy}, web.Member{Name: "created_at", Value: in.CreatedAt},
	); err != nil {
		return nil, err
	}
	var v web.Validation
	if in.Name != nil {
		v.Text("", "name", *in.Name)
	}
	if in.Role != nil {
		v.Text("", "role", string(*in.Role))
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	a, err := h.Service.UpdateServiceAccount(ctx, by, request.OrgID, request.ServiceAccountID, management.ServiceAccountChange{Name: in.Name, Role: in.Role})
	return PatchServiceAccount200JSONResponse{Body: serviceAccount(info, a)}, err
}

// DeleteServiceAccount deletes a service account.
func (h *Handlers) DeleteServiceAccount(ctx context.Context, request DeleteServiceAccountRequestObject) (DeleteServiceAccountResponseObject, error) {
	_, by := caller(ctx)
	return DeleteServiceAccount204Response{}, h.Service.DeleteServiceAccount(ctx, by, request.OrgID, request.ServiceAccountID)
}

// RotateServiceAccountSecret replaces the secret of a service account.
func (h *Handlers) RotateServiceAccountSecret(ctx context.Context, request RotateServiceAccountSecretRequestObject) (RotateServiceAccountSecretResponseObject, error) {
	info, by := caller(ctx)
	rotated, err := h.Service.RotateServiceAccountSecret(ctx, by, request.OrgID, request.ServiceAccountID)
	body := ServiceAccountSecret{Meta: meta(info)}
	body.Data.ClientSecret, body.Data.PreviousExpiresAt = rotated.Secret, document.Timestamp(rotated.PreviousExpiresAt)
	return RotateServiceAccountSecret200JSONResponse{Body: body}, err
}
