package identity

import (
	"context"

	"stonetown/identity/session"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Each type of event has one constructor, which takes the changed object. The data contains its
// public representation after the change.

// Source is the way in which an account was created.
type Source string

// The sources of accounts.
const (
	FromAdministrator Source = "admin"
	FromImport        Source = "bulk_import"
	FromSignUp        Source = "sign_up"
	FromProvisioning  Source = "scim"
	FromFederation    Source = "jit"           // the first sign-in at a connection
	FromControlPlane  Source = "control_plane" // a member of the organisation; see [Directory.Admit]
)

// reference is an object that is named by its id.
type reference struct {
	ID   string `json:"id"`
	Slug string `json:"slug,omitzero"`
}

// userEvent is the data of an event about a user.
type userEvent struct {
	User    UserDocument     `json:"user"`
	Changes document.Changes `json:"changes,omitzero"`
	Source  Source           `json:"source,omitzero"` // of a new user
}

// UserCreated is the event of a new user.
func UserCreated(ctx context.Context, u User, source Source) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserCreated, userEvent{User: u.Document(), Source: source})
}

// UserActivated is the event of a pending user that becomes active.
func UserActivated(ctx context.Context, c Change) eventlog.Event {
	return stateChanged(ctx, eventlog.UserActivated, c)
}

func userDisabled(ctx context.Context, c Change) eventlog.Event {
	return stateChanged(ctx, eventlog.UserDisabled, c)
}

func userEnabled(ctx context.Context, c Change) eventlog.Event {
	return stateChanged(ctx, eventlog.UserEnabled, c)
}

func stateChanged(ctx context.Context, t eventlog.Type, c Change) eventlog.Event {
	return eventlog.Of(ctx, t, userEvent{User: c.After.Document(), Changes: document.Changes{"state": {c.Before.State, c.After.State}}})
}

// UserPasswordChanged is the event of a password that was replaced or removed.
func UserPasswordChanged(ctx context.Context, u User) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserPasswordChanged, userEvent{User: u.Document()})
}

func userUpdated(ctx context.Context, u User, changes document.Changes) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserUpdated, userEvent{User: u.Document(), Changes: changes})
}

func userDeleted(ctx context.Context, userID string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.UserDeleted, struct {
		User reference `json:"user"`
	}{reference{ID: userID}})
}

// events returns the events of a change: one for the state, one for the password, one for the
// other properties, and one for each session that was ended.
func (c Change) events(ctx context.Context) (events []eventlog.Event) {
	changes := document.Difference(c.Before.Document(), c.After.Document())
	delete(changes, "updated_at")
	if c.Before.State != c.After.State {
		switch {
		case c.After.State == Disabled:
			events = append(events, userDisabled(ctx, c))
		case c.Before.State == Disabled:
			events = append(events, userEnabled(ctx, c))
		default:
			events = append(events, UserActivated(ctx, c))
		}
		delete(changes, "state")
	}
	if c.Before.PasswordHash != c.After.PasswordHash {
		events = append(events, UserPasswordChanged(ctx, c.After))
		delete(changes, "password_set")
	}
	if len(changes) > 0 {
		events = append(events, userUpdated(ctx, c.After, changes))
	}
	reason := session.EndedByPassword
	if c.After.State == Disabled {
		reason = session.EndedByDisabling
	}
	for _, ended := range c.Ended {
		events = append(events, session.Revoked(ctx, ended, reason))
	}
	return events
}

// groupEvent is the data of an event about a group.
type groupEvent struct {
	Group   GroupDocument    `json:"group"`
	Changes document.Changes `json:"changes,omitzero"`
}

func groupCreated(ctx context.Context, g Group) eventlog.Event {
	return eventlog.Of(ctx, eventlog.GroupCreated, groupEvent{Group: g.Document()})
}

func groupUpdated(ctx context.Context, before, after Group) eventlog.Event {
	return eventlog.Of(ctx, eventlog.GroupUpdated, groupEvent{after.Document(), document.Difference(before.Document(), after.Document())})
}

func groupDeleted(ctx context.Context, g Group) eventlog.Event {
	return eventlog.Of(ctx, eventlog.GroupDeleted, groupEvent{Group: g.Document()})
}

// memberEvent is the data of an event about a new or former member of a group.
type memberEvent struct {
	Group reference `json:"group"`
	User  reference `json:"user"`
}

func memberAdded(ctx context.Context, g Group, userID string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.GroupMemberAdded, memberEvent{reference{g.ID, g.Slug}, reference{ID: userID}})
}

func memberRemoved(ctx context.Context, g Group, userID string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.GroupMemberRemoved, memberEvent{reference{g.ID, g.Slug}, reference{ID: userID}})
}

// membersChanged returns the events of several users, made by one of the constructors above.
func membersChanged(ctx context.Context, one func(context.Context, Group, string) eventlog.Event, g Group, userIDs []string) []eventlog.Event {
	events := make([]eventlog.Event, len(userIDs))
	for i, userID := range userIDs {
		events[i] = one(ctx, g, userID)
	}
	return events
}
