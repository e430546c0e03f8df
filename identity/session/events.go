package session

import (
	"context"

	"stonetown/internal/eventlog"
)

// The reasons in the events of ended sessions.
const (
	EndedByUser      = "user"
	EndedByAdmin     = "admin"
	EndedByPassword  = "password_change"
	EndedByDisabling = "disabled"
	EndedByProvider  = "provider" // the user signed out at the identity provider
)

// Summary is the representation of a session in events.
type Summary struct {
	ID        string `json:"id"`
	IP        string `json:"ip"`
	UserAgent string `json:"user_agent"`
}

// Summary returns the representation of a session in events.
func (s Session) Summary() Summary { return Summary{s.ID, s.Device.IP, s.Device.UserAgent} }

// event is the data of an event about a session.
type event struct {
	Session Summary `json:"session"`
	User    struct {
		ID string `json:"id"`
	} `json:"user"`
	Reason string `json:"reason,omitzero"`
}

func of(ctx context.Context, t eventlog.Type, s Session, reason string) eventlog.Event {
	e := event{Session: s.Summary(), Reason: reason}
	e.User.ID = s.UserID
	return eventlog.Of(ctx, t, e)
}

// Created is the event of a new session.
func Created(ctx context.Context, s Session) eventlog.Event {
	return of(ctx, eventlog.SessionCreated, s, "")
}

// SteppedUp is the event of a session whose user proved a second factor.
func SteppedUp(ctx context.Context, s Session) eventlog.Event {
	return of(ctx, eventlog.SessionSteppedUp, s, "")
}

// Revoked is the event of a session that was ended for a reason.
func Revoked(ctx context.Context, s Session, reason string) eventlog.Event {
	return of(ctx, eventlog.SessionRevoked, s, reason)
}
