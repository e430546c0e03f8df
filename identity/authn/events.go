package authn

import (
	"context"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Each type of event has one constructor. The events about accounts are in package identity,
// and the events about sessions in package session.

// as returns a context whose events have a user as their actor. A request becomes that of a
// user when the user is authenticated.
func as(ctx context.Context, userID string) context.Context {
	return eventlog.WithOrigin(ctx, func() eventlog.Origin {
		origin := eventlog.OriginOf(ctx)
		origin.Actor = eventlog.Actor{Type: "user", ID: userID}
		return origin
	})
}

// from returns a context whose events have the origin of the request that queued a job.
func from(ctx context.Context, origin eventlog.Origin) context.Context {
	return eventlog.WithOrigin(ctx, func() eventlog.Origin { return origin })
}

// subject is a user in an event.
type subject struct {
	ID    string `json:"id"`
	Email string `json:"email,omitzero"`
}

func subjectOf(u identity.User) subject { return subject{u.ID, u.Email} }

// subjectOrNull returns nil for the zero user.
func subjectOrNull(u identity.User) *subject {
	if u.ID == "" {
		return nil
	}
	return new(subjectOf(u))
}

// userEvent is the data of an event about a user.
type userEvent struct {
	User    subject          `json:"user"`
	Changes document.Changes `json:"changes,omitzero"`
	Source  identity.Source  `json:"source,omitzero"`
}

func about(ctx context.Context, t eventlog.Type, u identity.User) eventlog.Event {
	return eventlog.Of(ctx, t, userEvent{User: subjectOf(u)})
}

func signedUp(ctx context.Context, u identity.User) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserSignedUp, userEvent{User: subjectOf(u), Source: identity.FromSignUp})
}

func signedOut(ctx context.Context, userID string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserSignedOut, userEvent{User: subject{ID: userID}})
}

func emailVerified(ctx context.Context, u identity.User) eventlog.Event {
	return about(ctx, eventlog.UserEmailVerified, u)
}

func emailChangeRequested(ctx context.Context, u identity.User) eventlog.Event {
	return about(ctx, eventlog.UserEmailChangeRequested, u)
}

func emailChanged(ctx context.Context, c identity.Change) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserEmailChanged, userEvent{
		User: subjectOf(c.After), Changes: document.Changes{"email": {c.Before.Email, c.After.Email}},
	})
}

func passwordResetRequested(ctx context.Context, u identity.User) eventlog.Event {
	return about(ctx, eventlog.UserPasswordResetRequested, u)
}

func passwordResetCompleted(ctx context.Context, u identity.User) eventlog.Event {
	return about(ctx, eventlog.UserPasswordResetCompleted, u)
}

func mfaReset(ctx context.Context, u identity.User) eventlog.Event {
	return about(ctx, eventlog.UserMFAReset, u)
}

func backupCodesRegenerated(ctx context.Context, u identity.User) eventlog.Event {
	return about(ctx, eventlog.UserBackupCodesRegenerated, u)
}

func backupCodeUsed(ctx context.Context, u identity.User) eventlog.Event {
	return about(ctx, eventlog.UserBackupCodeUsed, u)
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

func mfaEnrolled(ctx context.Context, u identity.User, f factor.Factor) eventlog.Event {
	return aboutFactor(ctx, eventlog.UserMFAEnrolled, u, f)
}

func mfaRemoved(ctx context.Context, u identity.User, f factor.Factor) eventlog.Event {
	return aboutFactor(ctx, eventlog.UserMFARemoved, u, f)
}

func aboutFactor(ctx context.Context, t eventlog.Type, u identity.User, f factor.Factor) eventlog.Event {
	return eventlog.Of(ctx, t, factorEvent{subjectOf(u), eventFactor{f.ID, string(f.Kind), f.Label}})
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

func identityLinked(ctx context.Context, u identity.User, i external.Identity) eventlog.Event {
	return aboutIdentity(ctx, eventlog.UserIdentityLinked, u, i)
}

func identityUnlinked(ctx context.Context, u identity.User, i external.Identity) eventlog.Event {
	return aboutIdentity(ctx, eventlog.UserIdentityUnlinked, u, i)
}

func aboutIdentity(ctx context.Context, t eventlog.Type, u identity.User, i external.Identity) eventlog.Event {
	return eventlog.Of(ctx, t, identityEvent{subjectOf(u), eventIdentity{i.ConnectionID, i.Slug, i.Kind, i.Subject}})
}

// signInEvent is the data of the event of a sign-in.
type signInEvent struct {
	User    subject  `json:"user"`
	Methods []string `json:"amr"`
}

func signedIn(ctx context.Context, u identity.User, methods []string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserSignedIn, signInEvent{subjectOf(u), methods})
}

// failure is the data of the event of a failed sign-in; the user is null if the account does not
// exist.
type failure struct {
	User     *subject `json:"user"`
	Reason   string   `json:"reason"`
	Failures int      `json:"failures"` // in a row
}

func signInFailed(ctx context.Context, f failure) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserSignInFailed, f)
}

func userLocked(ctx context.Context, f failure) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserLocked, f)
}

func bruteForceDetected(ctx context.Context, f failure) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityBruteForceDetected, f)
}

// breachedEvent is the data of the event of a breached password that was refused as a new one or
// used in a sign-in; the user is null if the account does not exist yet.
type breachedEvent struct {
	User    *subject `json:"user"`
	Refused bool     `json:"refused"`
}

func breachedPasswordUsed(ctx context.Context, u identity.User, refused bool) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityBreachedPasswordUsed, breachedEvent{subjectOrNull(u), refused})
}

// newDeviceEvent is the data of a sign-in on a device that the user has not used recently.
type newDeviceEvent struct {
	Session session.Summary `json:"session"`
	Device  eventDevice     `json:"device"`
	User    subject         `json:"user"`
}

type eventDevice struct {
	Kind        string `json:"kind"`
	Fingerprint string `json:"fingerprint"`
}

func newDeviceSignIn(ctx context.Context, u identity.User, s session.Session) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityNewDeviceSignIn, newDeviceEvent{s.Summary(), eventDevice{s.Device.Kind(), s.Device.Fingerprint()}, subjectOf(u)})
}

// verified returns the events of a change that verified an address.
func verified(ctx context.Context, c identity.Change) (events []eventlog.Event) {
	if !c.Before.EmailVerified && c.After.EmailVerified {
		events = append(events, emailVerified(ctx, c.After))
	}
	if c.Before.State == identity.Pending && c.After.State == identity.Active {
		events = append(events, identity.UserActivated(ctx, c))
	}
	return events
}

// revoked returns the events of sessions that were ended.
func revoked(ctx context.Context, ended []session.Session, reason string) (events []eventlog.Event) {
	for _, s := range ended {
		events = append(events, session.Revoked(ctx, s, reason))
	}
	return events
}

// record writes events in a transaction of their own.
func (s *Service) record(ctx context.Context, tenantID string, events ...eventlog.Event) error {
	return s.recorder.Record(ctx, tenantID, events...)
}
