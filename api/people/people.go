// Package people has the operations of administrators on the users of a tenant and their
// groups.
package people

import (
	"context"
	"net/http"

	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/password"
	"stonetown/identity/session"
	"stonetown/internal/geo"
	"stonetown/oauth/access"
	"stonetown/oauth/protocol"
)

// Directory is the part of [identity.Directory] that the operations use.
type Directory interface {
	Users(ctx context.Context, tenantID string, f identity.Filter, after *identity.Position, limit int) ([]identity.User, error)
	User(ctx context.Context, tenantID, userID string) (identity.User, error)
	UsersByID(ctx context.Context, tenantID string, userIDs []string) (map[string]identity.User, error)
	Create(ctx context.Context, tenantID string, n identity.NewUser) (identity.User, error)
	Update(ctx context.Context, tenantID, userID string, change func(*identity.User)) (identity.User, error)
	Disable(ctx context.Context, tenantID, userID, commitID string) (identity.User, error)
	NewPassword(ctx context.Context, tenantID, password string, u identity.User) (password.Hash, error)
	MayManage(ctx context.Context, tenantID, userID string) error
	Delete(ctx context.Context, tenantID, userID, commitID string) error

	Groups(ctx context.Context, tenantID, query, userID string, after *identity.Position, limit int) ([]identity.Group, error)
	Group(ctx context.Context, tenantID, groupID string) (identity.Group, error)
	CreateGroup(ctx context.Context, tenantID string, n identity.NewGroup, commitID string) (identity.Group, error)
	UpdateGroup(ctx context.Context, tenantID, groupID string, change func(*identity.Group), commitID string) (identity.Group, error)
	DeleteGroup(ctx context.Context, tenantID, groupID, commitID string) error
	Members(ctx context.Context, tenantID, groupID string, after *identity.MemberPosition, limit int) ([]identity.Member, error)
	Member(ctx context.Context, tenantID, groupID, userID string) (identity.Member, error)
	AddMembers(ctx context.Context, tenantID, groupID string, userIDs []string, commitID string) (map[string]identity.Outcome, error)
	RemoveMembers(ctx context.Context, tenantID, groupID string, userIDs []string, commitID string) (map[string]identity.Outcome, error)
}

// Authorizations is the part of [access.Store] that the operations use.
type Authorizations interface {
	Authorizations(ctx context.Context, tenantID, userID string) ([]access.Authorization, error)
	Users(ctx context.Context, tenantID, applicationID, after string, limit int) ([]access.AuthorizedUser, error)
	EndAuthorization(ctx context.Context, tenant protocol.Tenant, userID, applicationID string) error
}

// Access is the part of [stonetown/identity/authn.Service] that the operations use: how users sign in.
type Access interface {
	RecordRefusal(ctx context.Context, tenantID string, u identity.User, refused error) error
	SendReset(ctx context.Context, tenantID, userID string) error
	ResetFactors(ctx context.Context, tenantID, userID string) (identity.User, error)
	Factors(ctx context.Context, tenantID, userID string) ([]factor.Factor, error)
	RemoveFactor(ctx context.Context, tenantID, userID, factorID string) error
	Identities(ctx context.Context, tenantID, userID string) ([]external.Identity, error)
	Sessions(ctx context.Context, tenantID, userID string) ([]session.Session, error)
	EndSession(ctx context.Context, tenantID, userID, sessionID, reason string) error
	EndSessions(ctx context.Context, tenantID, userID, except, reason string) error
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Directory Directory
	Access    Access
	Importer  Importer
	// Authorizations has the applications that users have signed in to.
	Authorizations Authorizations
	Cursors        *web.Cursors
	// GeoIP locates the addresses of sessions.
	GeoIP geo.Locator
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}
