// Package scopes has the operations on the registry of scopes.
package scopes

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/oauth/scope"
)

// Registry is the part of [stonetown/oauth/scope.Registry] that the operations use.
type Registry interface {
	List(ctx context.Context, tenantID string) ([]scope.Scope, error)
	Create(ctx context.Context, tenantID string, s scope.Scope) (scope.Scope, error)
	Update(ctx context.Context, tenantID, name string, change func(*scope.Scope)) (scope.Scope, error)
	Delete(ctx context.Context, tenantID, name string, origin engine.Origin) error
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Registry Registry
	Cursors  *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

func translate(err error) *web.Error {
	for _, known := range []struct {
		err    error
		status int
		code   string
	}{
		{scope.ErrNotFound, http.StatusNotFound, "scope_not_found"},
		{scope.ErrExists, http.StatusConflict, "scope_exists"},
		{scope.ErrInUse, http.StatusConflict, "scope_in_use"},
		{scope.ErrReserved, http.StatusBadRequest, "scope_reserved"},
	} {
		if errors.Is(err, known.err) {
			return &web.Error{Status: known.status, Code: known.code, Message: known.err.Error()}
		}
	}
	if errors.Is(err, scope.ErrInvalid) {
		return web.ValidationFailed(web.FieldError{Field: "name", Code: "invalid", Message: scope.ErrInvalid.Error()})
	}
	return nil
}

// ListScopes lists scopes: a tenant has some dozens.
func (h *Handlers) ListScopes(ctx context.Context, request ListScopesRequestObject) (ListScopesResponseObject, error) {
	info := web.InfoOf(ctx)
	found, err := h.Registry.List(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listScopes"}, request.Params.Limit, request.Params.Cursor, found, func(s scope.Scope) string { return s.Name })
	if err != nil {
		return nil, err
	}
	body := ScopeList{Data: []Scope{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, scope := range page {
		body.Data = append(body.Data, scope.Document())
	}
	return ListScopes200JSONResponse{Body: body}, nil
}

// CreateScope registers a scope.
func (h *Handlers) CreateScope(ctx context.Context, request CreateScopeRequestObject) (CreateScopeResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	var v web.Validation
	v.Text("", "name", in.Name)
	description(&v, in.Description)
	entitlement(&v, in.Entitlement)
	if err := v.Err(); err != nil {
		return nil, err
	}
	created, err := h.Registry.Create(ctx, info.Tenant.ID, scope.Scope{Name: in.Name, Description: in.Description, Entitlement: in.Entitlement})
	if err != nil {
		return nil, err
	}
	return CreateScope201JSONResponse{Body: read(info, created), Headers: CreateScope201ResponseHeaders{Location: "/api/v1/scopes/" + url.PathEscape(created.Name)}}, nil
}

// PatchScope changes a scope.
func (h *Handlers) PatchScope(ctx context.Context, request PatchScopeRequestObject) (PatchScopeResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	if err := web.RefuseImmutable(web.Member{Name: "name", Value: in.Name}, web.Member{Name: "created_at", Value: in.CreatedAt}); err != nil {
		return nil, err
	}
	var v web.Validation
	if in.Description != nil {
		description(&v, *in.Description)
	}
	if in.Entitlement != nil {
		entitlement(&v, *in.Entitlement)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	change := func(s *scope.Scope) {
		if in.Description != nil {
			s.Description = *in.Description
		}
		if in.Entitlement != nil {
			s.Entitlement = *in.Entitlement
		}
	}
	updated, err := h.Registry.Update(ctx, info.Tenant.ID, request.Name, change)
	if err != nil {
		return nil, err
	}
	return PatchScope200JSONResponse{Body: read(info, updated)}, nil
}

// DeleteScope deletes a scope.
func (h *Handlers) DeleteScope(ctx context.Context, request DeleteScopeRequestObject) (DeleteScopeResponseObject, error) {
	info := web.InfoOf(ctx)
	origin := engine.Origin{Actor: info.Principal.Subject, CommitID: info.CommitID}
	if err := h.Registry.Delete(ctx, info.Tenant.ID, request.Name, origin); err != nil {
		return nil, err
	}
	return DeleteScope204Response{}, nil
}

// maxDescription is the longest description, in bytes.
const maxDescription = 500

func description(v *web.Validation, text string) {
	v.Paragraphs("", "description", text, maxDescription)
}

func entitlement(v *web.Validation, e Entitlement) {
	switch e {
	case scope.BySelf, scope.ByGroup:
	default:
		v.Add("entitlement", "unknown_value", "must be self or group")
	}
}

func read(info *web.RequestInfo, s scope.Scope) ScopeRead {
	return ScopeRead{Data: s.Document(), Meta: Meta{RequestID: info.RequestID}}
}
