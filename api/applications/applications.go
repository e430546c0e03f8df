// Package applications has the operations of administrators on the OAuth clients of a tenant.
package applications

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/internal/document"
	"stonetown/oauth/claim"
	"stonetown/oauth/client"
)

// Clients is the part of [client.Registry] that the operations use.
type Clients interface {
	List(ctx context.Context, tenantID string, f client.Filter, after *client.Position, limit int) ([]client.Application, error)
	ByID(ctx context.Context, tenantID, applicationID string) (client.Application, error)
	Create(ctx context.Context, tenantID string, a client.Application) (app client.Application, secret string, err error)
	Update(ctx context.Context, tenantID, applicationID, by string, change func(*client.Application)) (client.Application, error)
	Delete(ctx context.Context, tenantID, applicationID, by string) error
	Settle(ctx context.Context)
	RotateSecret(ctx context.Context, tenantID, applicationID, by string, previousTTL *time.Duration) (client.Rotated, error)
}

// Access is the part of [stonetown/oauth/access.Store] that the operations use.
type Access interface {
	InUse(ctx context.Context, a client.Application) (bool, error)
}

// Claims is the part of [claim.Finder] that the operations use.
type Claims interface {
	Preview(ctx context.Context, tenantID string, app client.Application, userID string, scopes []string) (claim.Values, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Clients Clients
	Access  Access
	Claims  Claims
	Cursors *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// position is the end of a page of the list.
type position struct {
	At int64  `json:"a"` // microseconds since 1970
	ID string `json:"i"`
}

// ListApplications lists applications.
func (h *Handlers) ListApplications(ctx context.Context, request ListApplicationsRequestObject) (ListApplicationsResponseObject, error) {
	info, params := web.InfoOf(ctx), request.Params
	limit, err := web.Limit(params.Limit)
	if err != nil {
		return nil, err
	}
	filter, err := filterOf(params)
	if err != nil {
		return nil, err
	}
	list := []string{"listApplications", string(params.Type), string(params.State), params.Q}
	var after *client.Position
	if params.Cursor != "" {
		var p position
		if err := h.Cursors.Resume(info.Tenant.ID, list, params.Cursor, &p); err != nil {
			return nil, err
		}
		after = &client.Position{CreatedAt: time.UnixMicro(p.At), ID: p.ID}
	}
	found, err := h.Clients.List(ctx, info.Tenant.ID, filter, after, limit+1)
	if err != nil {
		return nil, err
	}
	body := ApplicationList{Data: []ApplicationListItem{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, a := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, ApplicationListItem{
			ID: a.ID, ClientID: a.ClientID, Name: a.Name, Type: string(a.Type), State: string(a.State),
			DynamicallyRegistered: a.Registration != nil, CreatedAt: document.Timestamp(a.CreatedAt),
		})
	}
	if len(found) > limit {
		last := found[limit-1]
		cursor, err := h.Cursors.Next(info.Tenant.ID, list, position{last.CreatedAt.UnixMicro(), last.ID})
		if err != nil {
			return nil, err
		}
		body.Meta.NextCursor = &cursor
	}
	return ListApplications200JSONResponse{Body: body}, nil
}

// CreateApplication creates an application.
func (h *Handlers) CreateApplication(ctx context.Context, request CreateApplicationRequestObject) (CreateApplicationResponseObject, error) {
	info := web.InfoOf(ctx)
	change, err := form(*request.Body).read()
	if err != nil {
		return nil, err
	}
	var kind string
	_ = json.Unmarshal((*request.Body)["type"], &kind) // an invalid type is refused later
	a := *client.Type(kind).Defaults()
	a.ChangedBy = info.Principal.Subject
	change(&a)
	a, secret, err := h.Clients.Create(ctx, info.Tenant.ID, a)
	if err != nil {
		return nil, err
	}
	d, err := h.document(ctx, info, a)
	if err != nil {
		return nil, err
	}
	body := ApplicationCreated{Data: createdApplication{d, secret}, Meta: meta(info)}
	return CreateApplication201JSONResponse{Body: body, Headers: CreateApplication201ResponseHeaders{Location: "/api/v1/applications/" + a.ID}}, nil
}

// GetApplication reads an application.
func (h *Handlers) GetApplication(ctx context.Context, request GetApplicationRequestObject) (GetApplicationResponseObject, error) {
	info := web.InfoOf(ctx)
	a, err := h.Clients.ByID(ctx, info.Tenant.ID, request.ApplicationID)
	if err != nil {
		return nil, err
	}
	body, err := h.answer(ctx, info, a)
	return GetApplication200JSONResponse{Body: body}, err
}

// PatchApplication changes an application.
func (h *Handlers) PatchApplication(ctx context.Context, request PatchApplicationRequestObject) (PatchApplicationResponseObject, error) {
	info, members := web.InfoOf(ctx), *request.Body
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: members["id"]}, web.Member{Name: "client_id", Value: members["client_id"]},
		web.Member{Name: "type", Value: members["type"]}, web.Member{Name: "created_at", Value: members["created_at"]},
	); err != nil {
		return nil, err
	}
	change, err := form(members).read()
	if err != nil {
		return nil, err
	}
	a, err := h.Clients.Update(ctx, info.Tenant.ID, request.ApplicationID, info.Principal.Subject, change)
	if err != nil {
		return nil, err
	}
	body, err := h.answer(ctx, info, a)
	return PatchApplication200JSONResponse{Body: body}, err
}

// DeleteApplication deletes an application.
func (h *Handlers) DeleteApplication(ctx context.Context, request DeleteApplicationRequestObject) (DeleteApplicationResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := h.delete(ctx, info, request.ApplicationID); err != nil {
		return nil, err
	}
	h.Clients.Settle(ctx)
	return DeleteApplication204Response{}, nil
}

func (h *Handlers) delete(ctx context.Context, info *web.RequestInfo, applicationID string) error {
	return h.Clients.Delete(ctx, info.Tenant.ID, applicationID, info.Principal.Subject)
}

// RotateSecret replaces the secret of an application.
func (h *Handlers) RotateSecret(ctx context.Context, request RotateSecretRequestObject) (RotateSecretResponseObject, error) {
	info := web.InfoOf(ctx)
	var ttl *time.Duration
	if given := request.Body.PreviousTTLS; given != nil {
		ttl = new(time.Duration(*given) * time.Second)
		if *given < 0 || *ttl > client.MostPreviousSecretTTL {
			return nil, web.ValidationFailed(web.FieldError{Field: "previous_ttl_s", Code: "out_of_range", Message: "previous_ttl_s must be between 0 and 604800"})
		}
	}
	r, err := h.Clients.RotateSecret(ctx, info.Tenant.ID, request.ApplicationID, info.Principal.Subject, ttl)
	body := SecretRotated{Meta: meta(info)}
	body.Data.ClientSecret, body.Data.PreviousExpiresAt = r.Secret, document.Timestamp(r.PreviousExpiresAt)
	return RotateSecret200JSONResponse{Body: body}, err
}

// setState enables or disables an application.
func (h *Handlers) setState(ctx context.Context, info *web.RequestInfo, applicationID string, state client.State) (client.Application, error) {
	return h.Clients.Update(ctx, info.Tenant.ID, applicationID, info.Principal.Subject, func(a *client.Application) { a.State = state })
}

// DisableApplication disables an application: it gets no new tokens, and those it has stay
// valid until they expire.
func (h *Handlers) DisableApplication(ctx context.Context, request DisableApplicationRequestObject) (DisableApplicationResponseObject, error) {
	info := web.InfoOf(ctx)
	a, err := h.setState(ctx, info, request.ApplicationID, client.Disabled)
	if err != nil {
		return nil, err
	}
	body, err := h.answer(ctx, info, a)
	return DisableApplication200JSONResponse{Body: body}, err
}

// EnableApplication enables an application.
func (h *Handlers) EnableApplication(ctx context.Context, request EnableApplicationRequestObject) (EnableApplicationResponseObject, error) {
	info := web.InfoOf(ctx)
	a, err := h.setState(ctx, info, request.ApplicationID, client.Enabled)
	if err != nil {
		return nil, err
	}
	body, err := h.answer(ctx, info, a)
	return EnableApplication200JSONResponse{Body: body}, err
}
