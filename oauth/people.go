package oauth

import (
	"context"
	"errors"
	"time"
)

// ErrPersonGone is returned for a user who may have no tokens: deleted, or disabled.
var ErrPersonGone = errors.New("the user is deleted or disabled")

// People knows the users that applications act for.
type People interface {
	// Person returns a user as they are now. It fails with [ErrPersonGone].
	Person(ctx context.Context, tenantID, userID string) (Person, error)
	// ValidFrom is since when what was handed out to act as a user counts: everything
	// before was taken back. It fails with [ErrPersonGone].
	ValidFrom(ctx context.Context, tenantID, userID string) (time.Time, error)
	// SessionLive reports whether a session has not ended.
	SessionLive(ctx context.Context, tenantID, sessionID string) (bool, error)
	// LiveSessions is how many of some sessions, at most 500, have not ended, and when the
	// last of them will at the latest.
	LiveSessions(ctx context.Context, tenantID string, sessionIDs []string) (n int, latest time.Time, err error)
}

// Person is a user.
type Person struct {
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

// claims are those about a user that scopes let an application have (OIDC Core §5.4).
func (p Person) claims(scopes Scopes) map[string]any {
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

// UserInfo is what an application may know about the user of an access token (OIDC Core
// §5.3). It fails with [ErrPersonGone].
func (s *Service) UserInfo(ctx context.Context, tenant Tenant, p *Principal) (map[string]any, error) {
	person, err := s.people.Person(ctx, tenant.ID, p.Subject)
	if err != nil {
		return nil, err
	}
	return person.claims(p.Scopes), nil
}
