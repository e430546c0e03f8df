package access

import (
	"context"
	"errors"
	"time"

	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// ErrUserGone is returned for a user who may have no tokens: deleted, or disabled.
var ErrUserGone = errors.New("the user is deleted or disabled")

// Users knows the users that applications act for.
type Users interface {
	// User returns a user as they are now. It fails with [ErrPersonGone].
	User(ctx context.Context, tenantID, userID string) (User, error)
	// ValidFrom is since when what was handed out to act as a user counts: everything
	// before was taken back. It fails with [ErrPersonGone].
	ValidFrom(ctx context.Context, tenantID, userID string) (time.Time, error)
	// SessionLive reports whether a session has not ended.
	SessionLive(ctx context.Context, tenantID, sessionID string) (bool, error)
	// LiveSessions is how many of some sessions, at most 500, have not ended, and when the
	// last of them will at the latest.
	LiveSessions(ctx context.Context, tenantID string, sessionIDs []string) (n int, latest time.Time, err error)
}

// User is a user.
type User struct {
	ID                                           string
	Email                                        string
	EmailVerified                                bool
	Name, GivenName, FamilyName, Picture, Locale string
	UpdatedAt                                    time.Time
	Scopes                                       []string  // that groups bring
	ValidFrom                                    time.Time // as of [People.ValidFrom]
}

// Authentication is how a user has proved to be who they are.
type Authentication struct {
	UserID       string
	SessionID    string
	Methods      []string  // amr (RFC 8176)
	AuthTime     time.Time // when
	SecondFactor time.Time // when with two factors; zero: never
}

// Claims are those about a user that scopes let an application have (OIDC Core §5.4).
func (p User) Claims(scopes scope.Set) map[string]any {
	c := map[string]any{"sub": p.ID}
	put := func(name, value string) {
		if value != "" {
			c[name] = value
		}
	}
	if scopes.Has("profile") {
		put("name", p.Name)
		put("given_name", p.GivenName)
		put("family_name", p.FamilyName)
		put("picture", p.Picture)
		put("locale", p.Locale)
		c["updated_at"] = p.UpdatedAt.Unix()
	}
	if scopes.Has("email") {
		c["email"], c["email_verified"] = p.Email, p.EmailVerified
	}
	return c
}

func (a Authentication) ACR() string {
	if a.SecondFactor.IsZero() {
		return protocol.AAL1
	}
	return protocol.AAL2
}
