package account

import (
	"context"
	"errors"
	"time"

	"stonetown/identity"
	"stonetown/identity/session"
	"stonetown/oauth"
)

// People tells package oauth of the users that applications act for.
type People struct {
	Users interface {
		User(ctx context.Context, tenantID, userID string) (identity.User, error)
		Scopes(ctx context.Context, tenantID, userID string) ([]string, error)
	}
	Sessions interface {
		ByID(ctx context.Context, tenantID, sessionID string) (session.Session, error)
		LiveSessions(ctx context.Context, tenantID string, ids []string) ([]session.Session, error)
	}
}

// user finds a user who may have tokens. It fails with [oauth.ErrPersonGone].
func (p *People) user(ctx context.Context, tenantID, userID string) (identity.User, error) {
	u, err := p.Users.User(ctx, tenantID, userID)
	if errors.Is(err, identity.ErrUserNotFound) || err == nil && u.State == identity.Disabled {
		err = oauth.ErrPersonGone
	}
	return u, err
}

// ValidFrom implements [oauth.People].
func (p *People) ValidFrom(ctx context.Context, tenantID, userID string) (time.Time, error) {
	u, err := p.user(ctx, tenantID, userID)
	return u.SignedOutAt, err
}

// Person implements [oauth.People].
func (p *People) Person(ctx context.Context, tenantID, userID string) (oauth.Person, error) {
	u, err := p.user(ctx, tenantID, userID)
	if err != nil {
		return oauth.Person{}, err
	}
	scopes, err := p.Users.Scopes(ctx, tenantID, userID)
	return oauth.Person{
		ID: u.ID, Email: u.Email, EmailVerified: u.EmailVerified, Name: u.Name, GivenName: u.GivenName, FamilyName: u.FamilyName,
		Picture: u.Picture, Locale: u.Locale, UpdatedAt: u.UpdatedAt, Scopes: scopes, ValidFrom: u.SignedOutAt,
	}, err
}

// SessionLive implements [oauth.People].
func (p *People) SessionLive(ctx context.Context, tenantID, sessionID string) (bool, error) {
	s, err := p.Sessions.ByID(ctx, tenantID, sessionID)
	if errors.Is(err, session.ErrEnded) {
		return false, nil
	}
	return err == nil && !s.MustEnrol, err
}

// LiveSessions implements [oauth.People].
func (p *People) LiveSessions(ctx context.Context, tenantID string, ids []string) (n int, latest time.Time, err error) {
	live, err := p.Sessions.LiveSessions(ctx, tenantID, ids)
	for _, s := range live {
		if s.ExpiresAt.After(latest) {
			latest = s.ExpiresAt
		}
	}
	return len(live), latest, err
}

var _ oauth.People = (*People)(nil)
