// Package control has the operations of the control plane: on organisations, their tenants,
// members, invitations, service accounts and events.
//
// It has a document of its own ([Document]), which is served at the address of the control plane
// and nowhere else. Its operations require a token of the system tenant and no scope: the package
// passes the [management.Caller] to the domain, which decides by the roles of the caller. Errors
// have the format of the control plane ([Errors]), whichever step of a request they come from.
package control

import (
	"context"
	_ "embed"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"stonetown/api/openapi"
	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/controlplane/management"
	"stonetown/internal/document"
	"stonetown/oauth/token"
)

var (
	//go:embed openapi.yaml
	source []byte
	//go:embed collection.json
	collection []byte
)

// Document is the OpenAPI document of the control plane.
var Document = openapi.Document{YAML: source, Collection: collection, Operations: operations, Server: "http://control.localhost:8080"}

// Service is the part of [management.Service] that the operations use. Lists begin after a
// position, or at the newest item if it is nil.
type Service interface {
	CreateOrganization(ctx context.Context, by management.Caller, slug, name string) (controlplane.Organization, error)
	Organizations(ctx context.Context, by management.Caller, after *management.Position, limit int) ([]controlplane.Organization, error)
	Organization(ctx context.Context, by management.Caller, orgID string) (controlplane.Organization, error)
	UpdateOrganization(ctx context.Context, by management.Caller, orgID string, change func(*controlplane.Organization)) (controlplane.Organization, error)
	Permissions(ctx context.Context, by management.Caller, orgID string) ([]string, error)

	CreateTenant(ctx context.Context, by management.Caller, orgID string, n management.NewTenant) (management.CreatedTenant, error)
	Tenants(ctx context.Context, by management.Caller, orgID string, state controlplane.TenantState, after *management.Position, limit int) ([]controlplane.Tenant, error)
	Tenant(ctx context.Context, by management.Caller, orgID, tenantID string) (controlplane.Tenant, error)
	RenameTenant(ctx context.Context, by management.Caller, orgID, tenantID, name string) (controlplane.Tenant, error)
	SuspendTenant(ctx context.Context, by management.Caller, orgID, tenantID, reason string) (controlplane.Tenant, error)
	ResumeTenant(ctx context.Context, by management.Caller, orgID, tenantID string) (controlplane.Tenant, error)
	DecommissionTenant(ctx context.Context, by management.Caller, orgID, tenantID, confirm string) (controlplane.Tenant, error)
	OpenConsole(ctx context.Context, by management.Caller, orgID, tenantID string) (management.ConsoleLink, error)

	Members(ctx context.Context, by management.Caller, orgID string, after *management.Position, limit int) ([]management.Member, error)
	Member(ctx context.Context, by management.Caller, orgID, memberID string) (management.Member, error)
	ChangeRole(ctx context.Context, by management.Caller, orgID, memberID string, role management.Role) (management.Member, error)
	RemoveMember(ctx context.Context, by management.Caller, orgID, memberID string) error

	ServiceAccounts(ctx context.Context, by management.Caller, orgID string, after *management.Position, limit int) ([]management.ServiceAccount, error)
	ServiceAccount(ctx context.Context, by management.Caller, orgID, accountID string) (management.ServiceAccount, error)
	CreateServiceAccount(ctx context.Context, by management.Caller, orgID, name string, role management.Role) (account management.ServiceAccount, secret string, err error)
	UpdateServiceAccount(ctx context.Context, by management.Caller, orgID, accountID string, change management.ServiceAccountChange) (management.ServiceAccount, error)
	DeleteServiceAccount(ctx context.Context, by management.Caller, orgID, accountID string) error
	RotateServiceAccountSecret(ctx context.Context, by management.Caller, orgID, accountID string) (management.RotatedSecret, error)

	Invite(ctx context.Context, by management.Caller, orgID, email string, role management.Role) (management.Invitation, error)
	Invitations(ctx context.Context, by management.Caller, orgID string, state management.InvitationState, after *management.Position, limit int) ([]management.Invitation, error)
	Invitation(ctx context.Context, by management.Caller, orgID, invitationID string) (management.Invitation, error)
	RevokeInvitation(ctx context.Context, by management.Caller, orgID, invitationID string) error
	ResendInvitation(ctx context.Context, by management.Caller, orgID, invitationID string) (management.Invitation, error)
	AcceptInvitation(ctx context.Context, by management.Caller, token string) (management.Member, error)

	// Events begins after the position of an event; 0: at the newest.
	Events(ctx context.Context, by management.Caller, orgID string, f management.EventFilter, after int64, limit int) ([]management.Event, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Service Service
	Cursors *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{
		BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail),
	})
}

// caller returns what the handlers of all operations read from a request.
func caller(ctx context.Context) (info *web.RequestInfo, by management.Caller) {
	info = web.InfoOf(ctx)
	by = management.Caller{Subject: token.SubjectOf(info.Principal.Subject), CommitID: info.CommitID}
	if info.Principal.ClientID == token.FirstParty { // the person itself, and no application
		by.SessionID = info.Principal.SessionID
	}
	return info, by
}

func meta(info *web.RequestInfo) Meta {
	return Meta{RequestID: info.RequestID, Timestamp: document.Timestamp(time.Now())}
}

// page lists a page of items, which begins after the position of the cursor. list names the list
// and has its filters.
func page[T, P any](h *Handlers, info *web.RequestInfo, list []string, size *int, cursor string, find func(after *P, limit int) ([]T, error), position func(T) P) (found []T, m ListMeta, err error) {
	m.RequestID = info.RequestID
	limit, err := web.Limit(size)
	if err != nil {
		return nil, m, err
	}
	var after *P
	if cursor != "" {
		after = new(P)
		if err := h.Cursors.Resume(info.Tenant.ID, list, cursor, after); err != nil {
			return nil, m, err
		}
	}
	if found, err = find(after, limit+1); err != nil {
		return nil, m, err
	}
	if m.HasMore = len(found) > limit; m.HasMore {
		found = found[:limit]
		next, err := h.Cursors.Next(info.Tenant.ID, list, position(found[limit-1]))
		if err != nil {
			return nil, m, err
		}
		m.Cursor = &next
	}
	m.Timestamp = document.Timestamp(time.Now())
	return found, m, nil
}

// documents returns the public representations of items; never nil.
func documents[T, D any](items []T, of func(T) D) []D {
	list := make([]D, len(items))
	for i, item := range items {
		list[i] = of(item)
	}
	return list
}
