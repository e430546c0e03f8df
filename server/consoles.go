package server

import (
	"context"
	"errors"
	"net/url"
	"time"

	"stonetown/api/console"
	"stonetown/controlplane"
	"stonetown/controlplane/management"
	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/session"
	"stonetown/internal/sqldb"
	"stonetown/oauth/scope"
)

// consoles implements [management.Consoles] and [session.Origins]: members of organisations enter the
// consoles of tenants, and stay there while their role and their session of the control plane last.
// The services are those of the server when it is composed, because they depend on each other.
type consoles struct {
	server *Server
	host   string // of the control plane; empty: there is none
}

var (
	_ management.Consoles = consoles{}
	_ session.Origins     = consoles{}
)

// Admit implements [management.Consoles].
func (c consoles) Admit(ctx context.Context, tenantID string, p management.Person) (string, error) {
	name := p.Email
	if p.Name != "" {
		name = p.Name + " (" + p.Email + ")"
	}
	u, err := c.server.Users.Admit(authority.Without(ctx), tenantID, identity.Person{ID: p.ID, Name: name, Email: p.ID + "@" + c.host}, scope.Builtin)
	if errors.Is(err, identity.ErrManagedDisabled) {
		err = &management.ConflictError{Message: identity.ErrManagedDisabled.Error()}
	}
	return u.ID, err
}

// IssueLink implements [management.Consoles].
func (c consoles) IssueLink(b *sqldb.Batch, t controlplane.Tenant, userID string, o management.ConsoleOrigin) (string, time.Time) {
	token, expiresAt := c.server.Authn.IssueEntry(b, t.ID, userID, session.Origin{SessionID: o.SessionID, UserID: o.PersonID, OrganizationID: o.OrgID})
	return t.BaseURL + console.EnterPage + "?token=" + url.QueryEscape(token), expiresAt
}

// Origin implements [session.Origins].
func (c consoles) Origin(ctx context.Context, tenantID string, o session.Origin) (session.Session, error) {
	if c.host == "" { // the control plane is switched off
		return session.Session{}, session.ErrEnded
	}
	s, err := c.server.Authn.ByID(ctx, controlplane.SystemTenant, o.SessionID)
	if err != nil {
		return session.Session{}, err
	}
	person, err := c.server.Users.User(ctx, controlplane.SystemTenant, o.UserID)
	if errors.Is(err, identity.ErrUserNotFound) || err == nil && (person.State == identity.Disabled || s.UserID != person.ID || s.MustEnrol) {
		return session.Session{}, session.ErrEnded
	}
	if err != nil {
		return session.Session{}, err
	}
	may, err := c.server.Management.MayOpenConsole(ctx, o.UserID, o.OrganizationID, tenantID)
	if err == nil && !may {
		err = session.ErrEnded
	}
	return s, err
}
