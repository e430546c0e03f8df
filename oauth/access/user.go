package access

import (
	"context"
	"errors"
	"time"

	"stonetown/oauth/protocol"
)

// ErrUserGone is returned for a user that is deleted or disabled, and so gets no tokens.
var ErrUserGone = errors.New("the user is deleted or disabled")

// Users are the users that give access to applications.
type Users interface {
	// User returns a user. It fails with [ErrUserGone].
	User(ctx context.Context, tenantID, userID string) (User, error)
	// SignedIn returns a user, as User does, and whether a session has not ended.
	SignedIn(ctx context.Context, tenantID, userID, sessionID string) (u User, live bool, err error)
	// ValidFrom returns the time at which the user was last signed out of everything: offline
	// grants of before are revoked. It fails with [ErrUserGone].
	ValidFrom(ctx context.Context, tenantID, userID string) (time.Time, error)
	// SessionLive reports whether a session has not ended.
	SessionLive(ctx context.Context, tenantID, sessionID string) (bool, error)
	// Groups returns the groups of a user, at most 1,000.
	Groups(ctx context.Context, tenantID, userID string) ([]Group, error)
	// LiveSessions counts those of at most 500 sessions that have not ended, and returns the
	// latest of their expiries.
	LiveSessions(ctx context.Context, tenantID string, sessionIDs []string) (n int, latest time.Time, err error)
}

// User is a user.
type User struct {
	ID                                           string
	Email                                        string
	EmailVerified                                bool
	Name, GivenName, FamilyName, Picture, Locale string
	Attributes                                   []byte // a JSON object; nil: there are none
	UpdatedAt                                    time.Time
	Scopes                                       []string  // of the user's groups
	ValidFrom                                    time.Time // see [Users.ValidFrom]
}

// Group is a group of a user.
type Group struct{ ID, Slug, Name string }

// Authentication is the way in which a user has signed in.
type Authentication struct {
	UserID       string
	SessionID    string
	Methods      []string // amr (RFC 8176)
	AuthTime     time.Time
	SecondFactor time.Time // when a second factor was proved; zero: never
	// Claims are the claims that the sign-in added for tokens, a JSON object; empty: none.
	Claims string
}

func (a Authentication) ACR() string {
	if a.SecondFactor.IsZero() {
		return protocol.AAL1
	}
	return protocol.AAL2
}
