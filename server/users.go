package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"stonetown/identity"
	"stonetown/identity/session"
	"stonetown/oauth/access"
	"stonetown/oauth/saml"
)

// users implements [access.Users] by the users and sessions of package identity.
type users struct {
	Users interface {
		User(ctx context.Context, tenantID, userID string) (identity.User, error)
		Scopes(ctx context.Context, tenantID, userID string) ([]string, error)
		Groups(ctx context.Context, tenantID, query, userID string, after *identity.Position, limit int) ([]identity.Group, error)
	}
	Sessions interface {
		ByID(ctx context.Context, tenantID, sessionID string) (session.Session, error)
		LiveSessions(ctx context.Context, tenantID string, ids []string) ([]session.Session, error)
	}
}

var (
	_ access.Users = (*users)(nil)
	_ saml.Users   = (*users)(nil)
)

// enabled returns a user who can have tokens. It fails with [access.ErrUserGone].
func (u *users) enabled(ctx context.Context, tenantID, userID string) (identity.User, error) {
	found, err := u.Users.User(ctx, tenantID, userID)
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
	found, err := u.enabled(ctx, tenantID, userID)
	if err != nil {
		return access.User{}, err
	}
	scopes, err := u.Users.Scopes(ctx, tenantID, userID)
	return userOf(found, scopes), err
}

func userOf(found identity.User, scopes []string) access.User {
	return access.User{
		ID: found.ID, Email: found.Email, EmailVerified: found.EmailVerified, Name: found.Name, GivenName: found.GivenName, FamilyName: found.FamilyName,
		Picture: found.Picture, Locale: found.Locale, UpdatedAt: found.UpdatedAt, Scopes: scopes, ValidFrom: found.SignedOutAt,
	}
}

// maxGroups is the maximum number of groups of a user.
const maxGroups = 1000

// Person implements [saml.Users].
func (u *users) Person(ctx context.Context, tenantID, userID string) (saml.Person, error) {
	found, err := u.enabled(ctx, tenantID, userID)
	if err != nil {
		return saml.Person{}, err
	}
	groups, err := u.Users.Groups(ctx, tenantID, "", userID, nil, maxGroups)
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
	s, err := u.Sessions.ByID(ctx, tenantID, sessionID)
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
