package session

import (
	"context"
	"strings"
	"time"
)

// Origin is what a session was opened from: a session of the control plane, in which a member of an
// organisation opened the console of a tenant. The zero value is that of a session whose user has
// signed in to the tenant.
type Origin struct {
	SessionID      string `json:"session_id"` // of the system tenant
	UserID         string `json:"user_id"`    // of the system tenant
	OrganizationID string `json:"organization_id"`
}

// OpenedFor is the lifetime of a session with an origin. It is not extended.
const OpenedFor = 30 * time.Minute

// Opened reports whether the session was opened from the control plane. It is for the console: it
// gives access neither to an account nor to applications.
func (s Session) Opened() bool { return s.Origin != Origin{} }

// Origins finds out whether the reasons of a session with an origin still hold.
type Origins interface {
	// Origin returns the session of the control plane from which a session of a tenant was opened.
	// It fails with [ErrEnded] if that has ended, or if its user may not open the console of the
	// tenant any more.
	Origin(ctx context.Context, tenantID string, o Origin) (Session, error)
}

// NoOrigins are [Origins] of a deployment in which no session is opened from another.
type NoOrigins struct{}

// Origin implements [Origins].
func (NoOrigins) Origin(context.Context, string, Origin) (Session, error) {
	return Session{}, ErrEnded
}

// text is the form in which an origin is stored; empty for none.
func (o Origin) text() string {
	if o == (Origin{}) {
		return ""
	}
	return strings.Join([]string{o.SessionID, o.UserID, o.OrganizationID}, " ")
}

// originOf returns the origin of a stored text. Any other text than one of three words has no origin
// that could hold.
func originOf(text string) Origin {
	words := append(strings.Split(text, " "), "", "")
	return Origin{words[0], words[1], words[2]}
}
