package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"stonetown/identity"
	"stonetown/identity/session"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/saml"
)

// users implements [access.Users] by the users and sessions of package identity.
type users struct {
	// Send runs the reads that are queued with the others.
	Send   func(ctx context.Context, b *sqldb.Batch) error
	Scopes interface {
		QueueNames(b *sqldb.Batch, tenantID string) (result func() []string)
		HeldBy(ctx context.Context, tenantID, userID string, names []string) ([]string, error)
	}
	Users interface {
		User(ctx context.Context, tenantID, userID string) (identity.User, error)
		QueueUser(b *sqldb.Batch, tenantID, userID string) (result func() (identity.User, error))
		Groups(ctx context.Context, tenantID, query, userID string, after *identity.Position, limit int) ([]identity.Group, error)
	}
	Sessions interface {
		ByID(ctx context.Context, tenantID, sessionID string) (session.Session, error)
		QueueByID(b *sqldb.Batch, tenantID, sessionID string) (result func(context.Context) (session.Session, error))
		LiveSessions(ctx context.Context, tenantID string, ids []string) ([]session.Session, error)
	}
}

var (
	_ access.Users = (*users)(nil)
	_ saml.Users   = (*users)(nil)
)

// enabled returns a user who can have tokens. It fails with [access.ErrUserGone].
func (u *users) enabled(ctx context.Context, tenantID, userID string) (identity.User, error) {
	return enabled(u.Users.User(ctx, tenantID, userID))
}

func enabled(found identity.User, err error) (identity.User, error) {
	if errors.Is(err, identity.ErrUserNotFound) || err == nil && found.State == identity.Disabled {
		err = access.ErrUserGone
	}
	return found, err
}

// ValidFrom implements [access.Users].
func (u *users) ValidFrom(ctx context.Context, tenantID, userID string) (time.Time, error) {
	found, err := u.enabled(ctx, tenantID, userID)
	return found.SignedOutAt, err
}

// User implements [access.Users].
func (u *users) User(ctx context.Context, tenantID, userID string) (access.User, error) {
	var b sqldb.Batch
	read := u.queue(&b, tenantID, userID)
	if err := u.Send(ctx, &b); err != nil {
		return access.User{}, err
	}
	return read(ctx)
}

// SignedIn implements [access.Users].
func (u *users) SignedIn(ctx context.Context, tenantID, userID, sessionID string) (user access.User, live bool, err error) {
	var b sqldb.Batch
	read, current := u.queue(&b, tenantID, userID), u.Sessions.QueueByID(&b, tenantID, sessionID)
	if err := u.Send(ctx, &b); err != nil {
		return user, false, err
	}
	if live, err = isLive(current(ctx)); err != nil || !live {
		return user, false, err
	}
	user, err = read(ctx)
	return user, true, err
}

// queue queues the reads of a user. read returns the user when they were sent.
func (u *users) queue(b *sqldb.Batch, tenantID, userID string) (read func(context.Context) (access.User, error)) {
	found, names := u.Users.QueueUser(b, tenantID, userID), u.Scopes.QueueNames(b, tenantID)
	return func(ctx context.Context) (access.User, error) {
		user, err := enabled(found())
		if err != nil {
			return access.User{}, err
		}
		scopes, err := u.Scopes.HeldBy(ctx, tenantID, userID, names())
		return userOf(user, scopes), err
	}
}

func userOf(found identity.User, scopes []string) access.User {
	return access.User{
		ID: found.ID, Email: found.Email, EmailVerified: found.EmailVerified, Name: found.Name, GivenName: found.GivenName, FamilyName: found.FamilyName,
		Picture: found.Picture, Locale: found.Locale, Attributes: found.Attributes, UpdatedAt: found.UpdatedAt, Scopes: scopes, ValidFrom: found.SignedOutAt,
	}
}

// maxGroups is the maximum number of groups of a user.
const maxGroups = 1000

// Groups implements [access.Users].
func (u *users) Groups(ctx context.Context, tenantID, userID string) (groups []access.Group, err error) {
	found, err := u.Users.Groups(ctx, tenantID, "", userID, nil, maxGroups)
	for _, g := range found {
		groups = append(groups, access.Group{ID: g.ID, Slug: g.Slug, Name: g.Name})
	}
	return groups, err
}

// Person implements [saml.Users].
func (u *users) Person(ctx context.Context, tenantID, userID string) (saml.Person, error) {
	found, err := u.enabled(ctx, tenantID, userID)
	if err != nil {
		return saml.Person{}, err
	}
	groups, err := u.Groups(ctx, tenantID, userID)
	if err != nil {
		return saml.Person{}, err
	}
	p := saml.Person{User: userOf(found, nil), Attributes: found.Attributes}
	for _, g := range groups {
		p.Groups = append(p.Groups, g.Slug)
	}
	slices.Sort(p.Groups)
	return p, nil
}

// SessionLive implements [access.Users].
func (u *users) SessionLive(ctx context.Context, tenantID, sessionID string) (bool, error) {
	return isLive(u.Sessions.ByID(ctx, tenantID, sessionID))
}

// isLive reports whether a session was found and permits more than adding a second factor.
func isLive(s session.Session, err error) (bool, error) {
	if errors.Is(err, session.ErrEnded) {
		return false, nil
	}
	return err == nil && !s.MustEnrol, err
}

// LiveSessions implements [access.Users].
func (u *users) LiveSessions(ctx context.Context, tenantID string, ids []string) (n int, latest time.Time, err error) {
	live, err := u.Sessions.LiveSessions(ctx, tenantID, ids)
	for _, s := range live {
		if s.ExpiresAt.After(latest) {
			latest = s.ExpiresAt
		}
	}
	return len(live), latest, err
}
