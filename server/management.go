package server

import (
	"context"
	"errors"
	"time"

	"stonetown/controlplane"
	"stonetown/controlplane/management"
	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/scope"
)

// managers implements [management.Users] and [management.Mail] by the users of the system tenant.
type managers struct {
	users interface {
		UsersByID(ctx context.Context, tenantID string, userIDs []string) (map[string]identity.User, error)
		UserByEmail(ctx context.Context, tenantID, email string) (identity.User, error)
		FirstUser(ctx context.Context, tenantID string) (identity.User, error)
	}
	authn interface {
		FactorHolders(ctx context.Context, tenantID string, userIDs []string) (map[string]bool, error)
		SendInvitation(ctx context.Context, tenantID, email, organization, inviter, link string, valid time.Duration) error
	}
}

var (
	_ management.Users = managers{}
	_ management.Mail  = managers{}
)

// People implements [management.Users].
func (p managers) People(ctx context.Context, userIDs []string) (map[string]management.Person, error) {
	found, err := p.users.UsersByID(ctx, controlplane.SystemTenant, userIDs)
	if err != nil {
		return nil, err
	}
	holders, err := p.authn.FactorHolders(ctx, controlplane.SystemTenant, userIDs)
	if err != nil {
		return nil, err
	}
	list := make(map[string]management.Person, len(found))
	for _, u := range found {
		person := personOf(u)
		person.MFAEnrolled = holders[u.ID]
		list[u.ID] = person
	}
	return list, nil
}

func personOf(u identity.User) management.Person {
	return management.Person{ID: u.ID, Email: u.Email, EmailVerified: u.EmailVerified, Name: u.Name, LastActiveAt: u.LastSignedInAt}
}

// ByEmail implements [management.Users].
func (p managers) ByEmail(ctx context.Context, email string) (management.Person, bool, error) {
	return found(p.users.UserByEmail(ctx, controlplane.SystemTenant, email))
}

// First implements [management.Users].
func (p managers) First(ctx context.Context) (management.Person, bool, error) {
	return found(p.users.FirstUser(ctx, controlplane.SystemTenant))
}

func found(u identity.User, err error) (management.Person, bool, error) {
	if errors.Is(err, identity.ErrUserNotFound) {
		return management.Person{}, false, nil
	}
	return personOf(u), err == nil, err
}

// NormalEmail implements [management.Users].
func (managers) NormalEmail(email string) (string, error) {
	if !identity.ValidEmail(email) {
		return "", identity.ErrEmailInvalid
	}
	return identity.NormalEmail(email), nil
}

// SendInvitation implements [management.Mail].
func (p managers) SendInvitation(ctx context.Context, email, organization, inviter, link string, valid time.Duration) error {
	return p.authn.SendInvitation(ctx, controlplane.SystemTenant, email, organization, inviter, link, valid)
}

// applications implements [management.Applications]. A member of an organisation has no rights in
// its tenants, so what it makes there is the product's own work.
type applications struct {
	clients *client.Registry
	users   *identity.Directory
}

var _ management.Applications = applications{}

// Create implements [management.Applications].
func (a applications) Create(ctx context.Context, tx *sqldb.Tx, tenantID string, n management.NewApplication) (string, error) {
	app := client.Application{ID: n.ID, ClientID: n.ClientID, Name: n.Name, Type: client.Machine}
	if n.Administers {
		app.AllowedScopes = scope.Builtin
	}
	_, secret, err := a.clients.CreateIn(ctx, tx, tenantID, app)
	return secret, err
}

// Provision implements [management.Applications].
func (a applications) Provision(ctx context.Context, tenantID string) error {
	ctx = authority.Without(ctx)
	if err := a.users.Administrators(ctx, tenantID, scope.Builtin); err != nil {
		return err
	}
	return a.clients.HoldScopes(ctx, tenantID)
}

// RotateSecret implements [management.Applications].
func (a applications) RotateSecret(ctx context.Context, tenantID, applicationID string, atOnce bool, attach func(b *sqldb.Batch)) (management.RotatedSecret, error) {
	var previousTTL *time.Duration
	if atOnce {
		previousTTL = new(time.Duration)
	}
	rotated, err := a.clients.RotateSecretWith(authority.Without(ctx), tenantID, applicationID, "", previousTTL, attach)
	return management.RotatedSecret{Secret: rotated.Secret, PreviousExpiresAt: rotated.PreviousExpiresAt}, err
}

// Delete implements [management.Applications].
func (a applications) Delete(ctx context.Context, tenantID, applicationID string) error {
	err := a.clients.Delete(authority.Without(ctx), tenantID, applicationID, "")
	if err != nil && !client.IsNotFound(err) {
		return err
	}
	a.clients.Settle(ctx)
	return nil
}
