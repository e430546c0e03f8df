package account

import (
	"context"
	"errors"
	"time"

	"stonetown/identity"
	"stonetown/identity/session"
	"stonetown/oauth/access"
)

// People implements [access.Users] by the identity module.
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

// enabled finds a user who may have tokens. It fails with [access.ErrUserGone].
func (p *People) enabled(ctx context.Context, tenantID, userID string) (identity.User, error) {
	u, err := p.Users.User(ctx, tenantID, userID)
	if errors.Is(err, identity.ErrUserNotFound) || err == nil && u.State == identity.Disabled {
		err = access.ErrUserGone
	}
	return u, err
}

// ValidFrom implements [access.Users].
func (p *People) ValidFrom(ctx context.Context, tenantID, userID string) (time.Time, error) {
	u, err := p.enabled(ctx, tenantID, userID)
	return u.SignedOutAt, err
}

// User implements [access.Users].
func (p *People) User(ctx context.Context, tenantID, userID string) (access.User, error) {
	u, err := p.enabled(ctx, tenantID, userID)
	if err != nil {
		return access.User{}, err
	}
	scopes, err := p.Users.Scopes(ctx, tenantID, userID)
	return access.User{
		ID: u.ID, Email: u.Email, EmailVerified: u.EmailVerified, Name: u.Name, GivenName: u.GivenName, FamilyName: u.FamilyName,
		Picture: u.Picture, Locale: u.Locale, UpdatedAt: u.UpdatedAt, Scopes: scopes, ValidFrom: u.SignedOutAt,
	}, err
}

// SessionLive implements [access.Users].
func (p *People) SessionLive(ctx context.Context, tenantID, sessionID string) (bool, error) {
	s, err := p.Sessions.ByID(ctx, tenantID, sessionID)
	if errors.Is(err, session.ErrEnded) {
		return false, nil
	}
	return err == nil && !s.MustEnrol, err
}

// LiveSessions implements [access.Users].
func (p *People) LiveSessions(ctx context.Context, tenantID string, ids []string) (n int, latest time.Time, err error) {
	live, err := p.Sessions.LiveSessions(ctx, tenantID, ids)
	for _, s := range live {
		if s.ExpiresAt.After(latest) {
			latest = s.ExpiresAt
		}
	}
	return len(live), latest, err
}

var _ access.Users = (*People)(nil)
