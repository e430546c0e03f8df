package people

import (
	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// userEvent is the data of an event about a user.
type userEvent struct {
	User    any               `json:"user"`
	Changes map[string][2]any `json:"changes,omitzero"` // from, to
	Source  string            `json:"source,omitzero"`  // of a new user
}

// groupEvent is the data of an event about a group.
type groupEvent struct {
	Group   any               `json:"group"`
	User    any               `json:"user,omitzero"`    // who came or went
	Changes map[string][2]any `json:"changes,omitzero"` // from, to
}

// membersAdded and membersRemoved let an event for each user commit.
func membersAdded(call *web.Call) identity.Moved { return moved(call, eventlog.GroupMemberAdded) }

func membersRemoved(call *web.Call) identity.Moved { return moved(call, eventlog.GroupMemberRemoved) }

func memberEvent(g identity.Group, userID string) groupEvent {
	return groupEvent{Group: map[string]string{"id": g.ID, "slug": g.Slug}, User: map[string]string{"id": userID}}
}

func moved(call *web.Call, t eventlog.Type) identity.Moved {
	return func(g identity.Group, userIDs []string, b *sqldb.Batch) {
		events := make([]eventlog.Event, len(userIDs))
		for i, userID := range userIDs {
			events[i] = call.Event(t, memberEvent(g, userID))
		}
		eventlog.Append(b, call.Tenant.ID, events...)
	}
}

// Changed lets the events of a change commit with it: one for each state that the
// user comes to, one for a new password, one for each session that ends, and one for the
// rest.
func Changed(call *web.Call) func(identity.Change, *sqldb.Batch) {
	return func(c identity.Change, b *sqldb.Batch) {
		before, after := c.Before, c.After
		var events []eventlog.Event
		add := func(t eventlog.Type, changes map[string][2]any) {
			events = append(events, call.Event(t, userEvent{User: wire(after), Changes: changes}))
		}
		changes := document.Difference(wire(before), wire(after))
		delete(changes, "updated_at")
		if before.State != after.State {
			state := map[string][2]any{"state": changes["state"]}
			switch {
			case after.State == identity.Disabled:
				add(eventlog.UserDisabled, state)
			case before.State == identity.Disabled:
				add(eventlog.UserEnabled, state)
			default:
				add(eventlog.UserActivated, state)
			}
			delete(changes, "state")
		}
		if before.PasswordHash != after.PasswordHash {
			add(eventlog.UserPasswordChanged, nil)
			delete(changes, "password_set")
		}
		if len(changes) > 0 {
			add(eventlog.UserUpdated, changes)
		}
		for _, ended := range c.Ended {
			reason := authn.EndedByPassword
			if after.State == identity.Disabled {
				reason = authn.EndedByDisabling
			}
			events = append(events, call.Event(eventlog.SessionRevoked, authn.SessionEvent(ended, reason)))
		}
		eventlog.Append(b, call.Tenant.ID, events...)
	}
}

// deleted says that the caller deletes a user, and lets the event commit with it.
func (s *Surface) deleted(call *web.Call, userID string) engine.Origin {
	return engine.Origin{
		Actor: call.Principal.Subject, CommitID: call.CommitID,
		Attach: func(_ tuplestore.Result, b *sqldb.Batch) {
			s.Authorizations.ForgetUser(b, call.Tenant.ID, userID)
			eventlog.Append(b, call.Tenant.ID, call.Event(eventlog.UserDeleted, userEvent{User: map[string]string{"id": userID}}))
		},
	}
}
