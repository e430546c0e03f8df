// Package federation has the operations on the connections to identity providers.
package federation

import (
	"context"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/identity/federation"
	"stonetown/identity/federation/claims"
	"stonetown/identity/federation/signin"
	"stonetown/internal/document"
)

// Registry is the part of [federation.Registry] that the operations use.
type Registry interface {
	Create(ctx context.Context, t federation.Tenant, c federation.Connection) (federation.Connection, error)
	Get(ctx context.Context, tenantID, connectionID string) (federation.Connection, error)
	List(ctx context.Context, tenantID string, f federation.Filter) ([]federation.Summary, error)
	Update(ctx context.Context, t federation.Tenant, connectionID string, change federation.Change) (federation.Connection, error)
	Enable(ctx context.Context, t federation.Tenant, connectionID string) (federation.Connection, error)
	Disable(ctx context.Context, t federation.Tenant, connectionID string) (federation.Connection, error)
	Delete(ctx context.Context, t federation.Tenant, connectionID string) error
	Preview(ctx context.Context, tenantID, connectionID string, from map[string]any, mapping map[string]string) (federation.User, []claims.Warning, error)
}

// SignIns is the part of [signin.Service] that the operations use.
type SignIns interface {
	NewTest(ctx context.Context, tenantID, connectionID string) (test signin.Test, secret string, c federation.Connection, err error)
	Test(ctx context.Context, tenantID, connectionID, testID string) (signin.Test, error)
	Metadata(ctx context.Context, t federation.Tenant, slug string) ([]byte, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Registry Registry
	SignIns  SignIns
	Cursors  *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

func meta(info *web.RequestInfo) Meta { return Meta{RequestID: info.RequestID} }

func tenant(info *web.RequestInfo) federation.Tenant {
	return federation.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL}
}

// connection is the representation in responses: that of events, with the XML of metadata.
type connection struct {
	federation.Document
	*metadataXML // nil unless the kind is saml
}

type metadataXML struct {
	XML *string `json:"idp_metadata_xml"`
}

func read(info *web.RequestInfo, c federation.Connection) ConnectionRead {
	d := connection{Document: c.Document(tenant(info))}
	if c.Kind == federation.SAML {
		d.metadataXML = &metadataXML{document.OrNull(c.MetadataXML)}
	}
	return ConnectionRead{Data: d, Meta: meta(info)}
}

// ListConnections lists connections.
func (h *Handlers) ListConnections(ctx context.Context, request ListConnectionsRequestObject) (ListConnectionsResponseObject, error) {
	info := web.InfoOf(ctx)
	filter, err := filterOf(request.Params)
	if err != nil {
		return nil, err
	}
	found, err := h.Registry.List(ctx, info.Tenant.ID, filter)
	if err != nil {
		return nil, err
	}
	list := []string{"listConnections", string(filter.State)}
	for _, kind := range filter.Kinds {
		list = append(list, string(kind))
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, list, request.Params.Limit, request.Params.Cursor, found, func(s federation.Summary) string { return s.ID })
	if err != nil {
		return nil, err
	}
	body := ConnectionList{Data: []ConnectionListItem{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, s := range page {
		body.Data = append(body.Data, ConnectionListItem{
			ID: s.ID, Slug: s.Slug, Kind: string(s.Kind), Name: s.Name, State: ConnectionListItemState(s.State), CreatedAt: document.Timestamp(s.CreatedAt),
		})
	}
	return ListConnections200JSONResponse{Body: body}, nil
}

// CreateConnection creates a connection.
func (h *Handlers) CreateConnection(ctx context.Context, request CreateConnectionRequestObject) (CreateConnectionResponseObject, error) {
	info := web.InfoOf(ctx)
	c, err := readNew(*request.Body)
	if err != nil {
		return nil, err
	}
	if c, err = h.Registry.Create(ctx, tenant(info), c); err != nil {
		return nil, err
	}
	return CreateConnection201JSONResponse{
		Body:    read(info, c),
		Headers: CreateConnection201ResponseHeaders{Location: "/api/v1/federation/connections/" + c.ID},
	}, nil
}

// GetConnection reads a connection.
func (h *Handlers) GetConnection(ctx context.Context, request GetConnectionRequestObject) (GetConnectionResponseObject, error) {
	info := web.InfoOf(ctx)
	c, err := h.Registry.Get(ctx, info.Tenant.ID, request.ConnectionID)
	return GetConnection200JSONResponse{Body: read(info, c)}, err
}

// PatchConnection changes a connection.
func (h *Handlers) PatchConnection(ctx context.Context, request PatchConnectionRequestObject) (PatchConnectionResponseObject, error) {
	info := web.InfoOf(ctx)
	change, err := readPatch(*request.Body)
	if err != nil {
		return nil, err
	}
	c, err := h.Registry.Update(ctx, tenant(info), request.ConnectionID, change)
	return PatchConnection200JSONResponse{Body: read(info, c)}, err
}

// EnableConnection enables a connection.
func (h *Handlers) EnableConnection(ctx context.Context, request EnableConnectionRequestObject) (EnableConnectionResponseObject, error) {
	info := web.InfoOf(ctx)
	c, err := h.Registry.Enable(ctx, tenant(info), request.ConnectionID)
	return EnableConnection200JSONResponse{Body: read(info, c)}, err
}

// DisableConnection disables a connection.
func (h *Handlers) DisableConnection(ctx context.Context, request DisableConnectionRequestObject) (DisableConnectionResponseObject, error) {
	info := web.InfoOf(ctx)
	c, err := h.Registry.Disable(ctx, tenant(info), request.ConnectionID)
	return DisableConnection200JSONResponse{Body: read(info, c)}, err
}

// DeleteConnection deletes a connection.
func (h *Handlers) DeleteConnection(ctx context.Context, request DeleteConnectionRequestObject) (DeleteConnectionResponseObject, error) {
	return DeleteConnection204Response{}, h.Registry.Delete(ctx, tenant(web.InfoOf(ctx)), request.ConnectionID)
}

// previewed is the account that a connection would make.
type previewed struct {
	Email         *string          `json:"email"`
	EmailVerified bool             `json:"email_verified"`
	Name          *string          `json:"name"`
	GivenName     *string          `json:"given_name"`
	FamilyName    *string          `json:"family_name"`
	Picture       *string          `json:"picture"`
	Locale        *string          `json:"locale"`
	Attributes    jsontext.Value   `json:"attributes"`
	Groups        []string         `json:"groups"`
	GroupIDs      []string         `json:"group_ids"`
	Warnings      []claims.Warning `json:"warnings"`
}

// PreviewConnectionMapping applies the mapping of a connection to claims.
func (h *Handlers) PreviewConnectionMapping(ctx context.Context, request PreviewConnectionMappingRequestObject) (PreviewConnectionMappingResponseObject, error) {
	info := web.InfoOf(ctx)
	from, mapping, err := readPreview(*request.Body)
	if err != nil {
		return nil, err
	}
	u, warnings, err := h.Registry.Preview(ctx, info.Tenant.ID, request.ConnectionID, from, mapping)
	if err != nil {
		return nil, err
	}
	d := previewed{
		Email: document.OrNull(u.Email), EmailVerified: u.EmailVerified, Name: document.OrNull(u.Name), GivenName: document.OrNull(u.GivenName), FamilyName: document.OrNull(u.FamilyName),
		Picture: document.OrNull(u.Picture), Locale: document.OrNull(u.Locale), Attributes: u.Attributes, Groups: u.Groups, GroupIDs: u.GroupIDs, Warnings: warnings,
	}
	if d.Attributes == nil {
		d.Attributes = jsontext.Value("{}")
	}
	return PreviewConnectionMapping200JSONResponse{Body: MappingPreview{Data: d, Meta: meta(info)}}, nil
}

// TestConnection creates a test of a connection.
func (h *Handlers) TestConnection(ctx context.Context, request TestConnectionRequestObject) (TestConnectionResponseObject, error) {
	info := web.InfoOf(ctx)
	test, secret, c, err := h.SignIns.NewTest(ctx, info.Tenant.ID, request.ConnectionID)
	if err != nil {
		return nil, err
	}
	body := ConnectionTestBegun{Meta: meta(info)}
	body.Data.TestID, body.Data.ExpiresAt = test.ID, document.Timestamp(test.ExpiresAt)
	body.Data.TestURL = info.Tenant.BaseURL + "/api/v1/auth/federation/" + c.Slug + "/start?test=" + url.QueryEscape(secret)
	return TestConnection200JSONResponse{Body: body}, nil
}

// GetConnectionTest reads a test of a connection.
func (h *Handlers) GetConnectionTest(ctx context.Context, request GetConnectionTestRequestObject) (GetConnectionTestResponseObject, error) {
	info := web.InfoOf(ctx)
	test, err := h.SignIns.Test(ctx, info.Tenant.ID, request.ConnectionID, request.TestID)
	return GetConnectionTest200JSONResponse{Body: ConnectionTestRead{Data: test.Document(), Meta: meta(info)}}, err
}

// spMetadata is the metadata of a service provider (SAML Metadata, Appendix A).
type spMetadata []byte

// VisitGetServiceProviderMetadataResponse implements [GetServiceProviderMetadataResponseObject].
func (m spMetadata) VisitGetServiceProviderMetadataResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/samlmetadata+xml")
	_, err := w.Write(m)
	return err
}

// GetServiceProviderMetadata returns the SAML metadata of a connection.
func (h *Handlers) GetServiceProviderMetadata(ctx context.Context, request GetServiceProviderMetadataRequestObject) (GetServiceProviderMetadataResponseObject, error) {
	document, err := h.SignIns.Metadata(ctx, tenant(web.InfoOf(ctx)), request.Slug)
	return spMetadata(document), err
}
