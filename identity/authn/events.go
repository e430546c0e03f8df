package authn

import (
	"context"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
)

// Why sessions end.
const (
	EndedByUser      = "user"
	EndedByAdmin     = "admin"
	EndedByPassword  = "password_change"
	EndedByDisabling = "disabled"
)

// subject is a user in an event.
type subject struct {
	ID    string `json:"id"`
	Email string `json:"email,omitzero"`
}

func about(u identity.User) userEvent { return userEvent{User: subject{u.ID, u.Email}} }

// userEvent is the data of an event about a user.
type userEvent struct {
	User    subject           `json:"user"`
	Changes map[string][2]any `json:"changes,omitzero"`
	Source  string            `json:"source,omitzero"`
}

// factorEvent is the data of an event about a second factor.
type factorEvent struct {
	User   subject     `json:"user"`
	Factor eventFactor `json:"factor"`
}

type eventFactor struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Label string `json:"label"`
}

func aboutFactor(u identity.User, f factor.Factor) factorEvent {
	return factorEvent{subject{u.ID, u.Email}, eventFactor{f.ID, string(f.Kind), f.Label}}
}

// identityEvent is the data of an event about an external identity.
type identityEvent struct {
	User     subject       `json:"user"`
	Identity eventIdentity `json:"identity"`
}

type eventIdentity struct {
	ConnectionID string `json:"connection_id"`
	Slug         string `json:"slug"`
	Kind         string `json:"kind"`
	Subject      string `json:"subject"`
}

func aboutIdentity(u identity.User, i external.Identity) identityEvent {
	return identityEvent{subject{u.ID, u.Email}, eventIdentity{i.ConnectionID, i.Slug, i.Kind, i.Subject}}
}

// signInEvent is the data of a sign-in.
type signInEvent struct {
	User    subject  `json:"user"`
	Methods []string `json:"amr"`
}

// failureEvent is the data of one that failed; the user is null if there is none.
type failureEvent struct {
	User     *subject `json:"user"`
	Reason   string   `json:"reason"`
	Failures int      `json:"failures"`
}

// breachedEvent is the data of a breached password that somebody chose and was refused, or
// signed in with; the user is null if there is none yet.
type breachedEvent struct {
	User    *subject `json:"user"`
	Refused bool     `json:"refused"`
}

// newDeviceEvent is the data of a sign-in on a device that the user was not known to have.
type newDeviceEvent struct {
	Session eventSession `json:"session"`
	Device  eventDevice  `json:"device"`
	User    subject      `json:"user"`
}

type eventDevice struct {
	Kind        string `json:"kind"`
	Fingerprint string `json:"fingerprint"`
}

// sessionEvent is the data of an event about a session.
type sessionEvent struct {
	Session eventSession `json:"session"`
	User    subject      `json:"user"`
	Reason  string       `json:"reason,omitzero"`
}

type eventSession struct {
	ID        string `json:"id"`
	IP        string `json:"ip"`
	UserAgent string `json:"user_agent"`
}

// SessionEvent is the data of an event about a session, and why it ended if it did.
func SessionEvent(s session.Session, reason string) any {
	return sessionEvent{aboutSession(s), subject{ID: s.UserID}, reason}
}

func aboutSession(s session.Session) eventSession {
	return eventSession{s.ID, s.Device.IP, s.Device.UserAgent}
}

// revoked are the events of sessions that ended.
func revoked(ended []session.Session, reason string, by By) (events []eventlog.Event) {
	for _, s := range ended {
		events = append(events, event(eventlog.SessionRevoked, by, SessionEvent(s, reason)))
	}
	return events
}

func event(t eventlog.Type, by By, data any) eventlog.Event {
	return eventlog.New(t, by.Origin, data)
}

// note lets events commit by themselves.
func (s *Service) note(ctx context.Context, tenantID string, events ...eventlog.Event) error {
	return s.record.Record(ctx, tenantID, events...)
}
