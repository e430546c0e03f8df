// Package trustedissuers has the operations on the issuers whose tokens workloads exchange for those
// of applications.
package trustedissuers

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/oauth/protocol"
	"stonetown/oauth/workload"
)

// Registry is the part of [workload.Registry] that the operations use.
type Registry interface {
	List(ctx context.Context, tenantID string) ([]workload.Issuer, error)
	Get(ctx context.Context, tenantID, issuerID string) (workload.Issuer, error)
	Create(ctx context.Context, tenant protocol.Tenant, i workload.Issuer) (workload.Issuer, error)
	Update(ctx context.Context, tenant protocol.Tenant, issuerID, by string, change func(*workload.Issuer)) (workload.Issuer, error)
	Delete(ctx context.Context, tenantID, issuerID string) error
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Registry Registry
	Cursors  *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an error.
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
		{workload.ErrNotFound, http.StatusNotFound, "trusted_issuer_not_found"},
		{workload.ErrExists, http.StatusConflict, "trusted_issuer_exists"},
		{workload.ErrInUse, http.StatusConflict, "trusted_issuer_in_use"},
		{workload.ErrTooMany, http.StatusConflict, "trusted_issuer_limit_reached"},
	} {
		if errors.Is(err, known.err) {
			return &web.Error{Status: known.status, Code: known.code, Message: known.err.Error()}
		}
	}
	if field, ok := errors.AsType[*workload.ValidationError](err); ok {
		return web.ValidationFailed(web.FieldError{Field: field.Field, Code: field.Code, Message: field.Error()})
	}
	return nil
}

// ListTrustedIssuers lists issuers: a tenant has at most [workload.MaxIssuers].
func (h *Handlers) ListTrustedIssuers(ctx context.Context, request ListTrustedIssuersRequestObject) (ListTrustedIssuersResponseObject, error) {
	info := web.InfoOf(ctx)
	found, err := h.Registry.List(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listTrustedIssuers"}, request.Params.Limit, request.Params.Cursor, found, func(i workload.Issuer) string { return i.Issuer })
	if err != nil {
		return nil, err
	}
	body := TrustedIssuerList{Data: []TrustedIssuer{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, i := range page {
		body.Data = append(body.Data, i.Document())
	}
	return ListTrustedIssuers200JSONResponse{Body: body}, nil
}

// CreateTrustedIssuer creates an issuer.
func (h *Handlers) CreateTrustedIssuer(ctx context.Context, request CreateTrustedIssuerRequestObject) (CreateTrustedIssuerResponseObject, error) {
	info, members := web.InfoOf(ctx), *request.Body
	var v web.Validation
	i := workload.Defaults()
	if value := members["issuer"]; value == nil || value.Kind() == 'n' {
		v.Add("issuer", "required", "is required")
	} else if json.Unmarshal(value, &i.Issuer) != nil {
		v.Add("issuer", "type_invalid", "must be a string")
	}
	change := changes(&v, members)
	if err := v.Err(); err != nil {
		return nil, err
	}
	change(&i)
	i.ChangedBy = info.Principal.Subject
	created, err := h.Registry.Create(ctx, tenantOf(info), i)
	if err != nil {
		return nil, err
	}
	return CreateTrustedIssuer201JSONResponse{Body: read(info, created), Headers: CreateTrustedIssuer201ResponseHeaders{Location: "/api/v1/trusted-issuers/" + created.ID}}, nil
}

// GetTrustedIssuer reads an issuer.
func (h *Handlers) GetTrustedIssuer(ctx context.Context, request GetTrustedIssuerRequestObject) (GetTrustedIssuerResponseObject, error) {
	info := web.InfoOf(ctx)
	i, err := h.Registry.Get(ctx, info.Tenant.ID, request.IssuerID)
	return GetTrustedIssuer200JSONResponse{Body: read(info, i)}, err
}

// PatchTrustedIssuer changes an issuer.
func (h *Handlers) PatchTrustedIssuer(ctx context.Context, request PatchTrustedIssuerRequestObject) (PatchTrustedIssuerResponseObject, error) {
	info, members := web.InfoOf(ctx), *request.Body
	if err := web.RefuseImmutable(web.Member{Name: "id", Value: members["id"]}, web.Member{Name: "issuer", Value: members["issuer"]}, web.Member{Name: "created_at", Value: members["created_at"]}); err != nil {
		return nil, err
	}
	var v web.Validation
	change := changes(&v, members)
	if err := v.Err(); err != nil {
		return nil, err
	}
	updated, err := h.Registry.Update(ctx, tenantOf(info), request.IssuerID, info.Principal.Subject, change)
	return PatchTrustedIssuer200JSONResponse{Body: read(info, updated)}, err
}

// DeleteTrustedIssuer deletes an issuer.
func (h *Handlers) DeleteTrustedIssuer(ctx context.Context, request DeleteTrustedIssuerRequestObject) (DeleteTrustedIssuerResponseObject, error) {
	if err := h.Registry.Delete(ctx, web.InfoOf(ctx).Tenant.ID, request.IssuerID); err != nil {
		return nil, err
	}
	return DeleteTrustedIssuer204Response{}, nil
}

// maxKeys bounds the size of a key set in bytes.
const maxKeys = 64 << 10

// changes returns what the members of a form change. An absent member changes nothing, and null is
// the default.
func changes(v *web.Validation, form map[string]jsontext.Value) func(*workload.Issuer) {
	var all []func(*workload.Issuer)
	add := func(change func(*workload.Issuer)) { all = append(all, change) }
	member(v, form, add, "description", "must be a string or null", func(i *workload.Issuer) *string { return &i.Description })
	member(v, form, add, "enabled", "must be true, false or null", func(i *workload.Issuer) *bool { return &i.Enabled })
	member(v, form, add, "jwks_uri", "must be a string or null", func(i *workload.Issuer) *string { return &i.JWKSURI })
	member(v, form, add, "audience", "must be a string or null", func(i *workload.Issuer) *string { return &i.Audience })
	member(v, form, add, "signing_algs", "must be a list of strings, or null", func(i *workload.Issuer) *[]string { return &i.Algs })
	member(v, form, add, "max_lifetime_s", "must be a whole number, or null", func(i *workload.Issuer) *int { return &i.MaxLifetimeS })
	member(v, form, add, "single_use", "must be true, false or null", func(i *workload.Issuer) *bool { return &i.SingleUse })
	if form["jwks"] != nil {
		set := v.Object("jwks", form["jwks"], maxKeys)
		add(func(i *workload.Issuer) { i.JWKS = set })
	}
	return func(i *workload.Issuer) {
		for _, change := range all {
			change(i)
		}
	}
}

// member reads a member that is a field of an issuer.
func member[T any](v *web.Validation, form map[string]jsontext.Value, add func(func(*workload.Issuer)), name, must string, field func(*workload.Issuer) *T) {
	value := form[name]
	if value == nil {
		return
	}
	defaults := workload.Defaults()
	said := *field(&defaults)
	if value.Kind() != 'n' {
		said = *new(T)
		if json.Unmarshal(value, &said) != nil {
			v.Add(name, "type_invalid", must)
			return
		}
	}
	add(func(i *workload.Issuer) { *field(i) = said })
}

func tenantOf(info *web.RequestInfo) protocol.Tenant {
	return protocol.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL}
}

func read(info *web.RequestInfo, i workload.Issuer) TrustedIssuerRead {
	return TrustedIssuerRead{Data: i.Document(), Meta: Meta{RequestID: info.RequestID}}
}
