package management

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/controlplane"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Consoles lets members of organisations enter the consoles of tenants.
type Consoles interface {
	// Admit returns the id of the user of a tenant that a person of the system tenant is there, and
	// makes the user if there is none. It fails with [*ConflictError] if the tenant does not admit
	// the person.
	Admit(ctx context.Context, tenantID string, p Person) (userID string, err error)
	// IssueLink queues a one-time link, with which the browser of the person enters the console of
	// a tenant as that user. It takes the place of links that were not used.
	IssueLink(b *sqldb.Batch, t controlplane.Tenant, userID string, o ConsoleOrigin) (url string, expiresAt time.Time)
}

// ConsoleOrigin is what a session in the console of a tenant depends on.
type ConsoleOrigin struct {
	SessionID string // of the person, in the system tenant
	PersonID  string
	OrgID     string
}

// ConsoleLink leads into the console of a tenant.
type ConsoleLink struct {
	URL       string
	ExpiresAt time.Time
}

// openedConsole is the data of [controlplane.TenantConsoleOpenedEvent].
type openedConsole struct {
	controlplane.TenantDocument
	UserID    string             `json:"user_id"`    // of the member, in the tenant
	ExpiresAt document.Timestamp `json:"expires_at"` // of the link
}

// OpenConsole returns a link into the console of an active tenant, for the person of a session. It
// fails with [ErrOrganizationNotFound], [ErrTenantNotFound], [*ForbiddenError], also for a caller
// without a session, [*controlplane.StateError], or [*ConflictError].
func (s *Service) OpenConsole(ctx context.Context, by Caller, orgID, tenantID string) (ConsoleLink, error) {
	t, err := s.mayTenant(ctx, by, orgID, tenantID, OpenConsole)
	switch {
	case err != nil:
		return ConsoleLink{}, err
	case by.SessionID == "":
		return ConsoleLink{}, &ForbiddenError{"only a person in a session of the control plane can open the console of a tenant"}
	case t.State != controlplane.TenantActive:
		return ConsoleLink{}, &controlplane.StateError{State: t.State}
	}
	people, err := s.users.People(ctx, []string{by.Subject.ID})
	if err != nil {
		return ConsoleLink{}, fmt.Errorf("open console: %w", err)
	}
	person, ok := people[by.Subject.ID]
	if !ok { // deleted since the request began
		return ConsoleLink{}, ErrOrganizationNotFound
	}
	userID, err := s.consoles.Admit(ctx, t.ID, person)
	if err != nil {
		return ConsoleLink{}, err
	}
	var link ConsoleLink
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		link.URL, link.ExpiresAt = s.consoles.IssueLink(&b, t, userID, ConsoleOrigin{SessionID: by.SessionID, PersonID: person.ID, OrgID: orgID})
		eventlog.Append(&b, orgID, eventlog.Of(ctx, controlplane.TenantConsoleOpenedEvent, openedConsole{t.Document(), userID, document.Timestamp(link.ExpiresAt)}))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return ConsoleLink{}, fmt.Errorf("open console: %w", err)
	}
	return link, nil
}

// MayOpenConsole reports whether a user of the system tenant may open the console of a tenant of an
// organisation now.
func (s *Service) MayOpenConsole(ctx context.Context, userID, orgID, tenantID string) (bool, error) {
	by := Caller{Subject: tuplestore.Subject{Type: schema.UserType, ID: userID}}
	_, err := s.mayTenant(ctx, by, orgID, tenantID, OpenConsole)
	if _, forbidden := errors.AsType[*ForbiddenError](err); forbidden || errors.Is(err, ErrOrganizationNotFound) || errors.Is(err, ErrTenantNotFound) {
		return false, nil
	}
	return err == nil, err
}
