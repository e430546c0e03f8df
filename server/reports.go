package server

import (
	"context"
	"errors"

	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/oauth/client"
	"stonetown/oauth/scope"
	"stonetown/reporting"
)

// reportedPeople implements [reporting.People] by the users and groups of package identity.
type reportedPeople struct {
	users  *identity.Directory
	authn  *authn.Service
	scopes *scope.Registry
}

// EnabledUsers implements [reporting.People]. The second factors of managed users are in the control plane.
func (p reportedPeople) EnabledUsers(ctx context.Context, tenantID, after string, limit int) ([]reporting.User, error) {
	found, err := p.users.SelectUsers(ctx, tenantID, identity.Selection{
		Where: identity.WhereDisabled().Or(identity.WhereManaged()).Not(), Order: identity.ByID, After: &identity.SelectionPosition{Key: after, ID: after}, Limit: limit,
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	factors, err := p.authn.FactorKinds(ctx, tenantID, after, found[len(found)-1].ID)
	if err != nil {
		return nil, err
	}
	users := make([]reporting.User, len(found))
	for i, u := range found {
		users[i] = reporting.User{ID: u.ID, Email: u.Email, Name: u.Name, State: string(u.State), Factors: factors[u.ID], LastSignedInAt: u.LastSignedInAt}
	}
	return users, nil
}

// Addresses implements [reporting.People].
func (p reportedPeople) Addresses(ctx context.Context, tenantID string, userIDs []string) (map[string]string, error) {
	found, err := p.users.UsersByID(ctx, tenantID, userIDs)
	addresses := make(map[string]string, len(found))
	for userID, u := range found {
		addresses[userID] = u.Email
	}
	return addresses, err
}

// Groups implements [reporting.People].
func (p reportedPeople) Groups(ctx context.Context, tenantID string, limit int) (groups []reporting.Group, err error) {
	found, err := p.users.SelectGroups(ctx, tenantID, identity.Selection{Order: identity.ByID, Limit: limit})
	for _, g := range found {
		groups = append(groups, reporting.Group{ID: g.ID, Slug: g.Slug})
	}
	return groups, err
}

// MemberIDs implements [reporting.People].
func (p reportedPeople) MemberIDs(ctx context.Context, tenantID, groupID, after string, limit int) ([]string, error) {
	return p.users.MemberIDs(ctx, tenantID, groupID, after, limit)
}

// MayReceive implements [reporting.People].
func (p reportedPeople) MayReceive(ctx context.Context, tenantID, userID string, scopes []string) (reason string, err error) {
	u, err := p.users.User(ctx, tenantID, userID)
	switch {
	case errors.Is(err, identity.ErrUserNotFound):
		return "user_not_found", nil
	case err != nil:
		return "", err
	case u.State == identity.Disabled:
		return "user_disabled", nil
	case !u.EmailVerified:
		return "email_unverified", nil
	}
	held, err := p.scopes.HeldBy(ctx, tenantID, userID, scopes)
	if err == nil && len(held) < len(scopes) {
		reason = "scope_missing"
	}
	return reason, err
}

// reportedApplications implements [reporting.Applications] by the OAuth clients.
type reportedApplications struct{ clients *client.Registry }

// Page implements [reporting.Applications].
func (a reportedApplications) Page(ctx context.Context, tenantID string, after reporting.Application, limit int) (page []reporting.Application, err error) {
	var position *client.Position
	if after.ID != "" {
		position = &client.Position{CreatedAt: after.CreatedAt, ID: after.ID}
	}
	found, err := a.clients.List(ctx, tenantID, client.Filter{}, position, limit)
	for _, app := range found {
		page = append(page, reporting.Application{
			ID: app.ID, ClientID: app.ClientID, Name: app.Name, Type: string(app.Type), State: string(app.State), CreatedAt: app.CreatedAt, LastUsedAt: app.LastUsedAt,
		})
	}
	return page, err
}

// reportMails implements [reporting.Sender].
type reportMails struct{ authn *authn.Service }

// SendReport implements [reporting.Sender].
func (m reportMails) SendReport(ctx context.Context, tenantID, userID string, r reporting.Message) error {
	err := m.authn.SendReport(ctx, tenantID, userID, r.Report, r.At, r.Figures, r.Path)
	if errors.Is(err, identity.ErrUserNotFound) {
		return reporting.ErrNoRecipient
	}
	return err
}
