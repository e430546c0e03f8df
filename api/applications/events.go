package applications

import (
	"stonetown/api/web"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
)

// event is the data of an event about an application.
type event struct {
	Application any               `json:"application"`
	Changes     map[string][2]any `json:"changes,omitzero"` // from, to
}

// Created lets the event of a new application commit with it.
func Created(call *web.Call) func(oauth.Application, *sqldb.Batch) {
	return func(a oauth.Application, b *sqldb.Batch) {
		eventlog.Append(b, call.Tenant.ID, call.Event(eventlog.ApplicationCreated, event{Application: public(a)}))
	}
}

// Deleted lets the event of a deletion commit with it.
func Deleted(call *web.Call) func(oauth.Application, *sqldb.Batch) {
	return func(a oauth.Application, b *sqldb.Batch) {
		eventlog.Append(b, call.Tenant.ID, call.Event(eventlog.ApplicationDeleted, event{Application: map[string]string{"id": a.ID, "client_id": a.ClientID}}))
	}
}

// Changed lets the events of a change commit with it: one for a new state, and one for
// the rest.
func Changed(call *web.Call) func(before, after oauth.Application, b *sqldb.Batch) {
	return func(before, after oauth.Application, b *sqldb.Batch) {
		changes := document.Difference(public(before), public(after))
		delete(changes, "updated_at")
		delete(changes, "audit_summary")
		var events []eventlog.Event
		if before.State != after.State {
			t := eventlog.ApplicationEnabled
			if after.State == oauth.Disabled {
				t = eventlog.ApplicationDisabled
			}
			events = append(events, call.Event(t, event{public(after), map[string][2]any{"state": changes["state"]}}))
			delete(changes, "state")
		}
		if len(changes) > 0 {
			events = append(events, call.Event(eventlog.ApplicationUpdated, event{public(after), changes}))
		}
		eventlog.Append(b, call.Tenant.ID, events...)
	}
}
