package client

import (
	"context"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/schema"
)

// Each type of event has one constructor. The data of events are public representations or
// ids. Their origin is that of the context; the functions below change the actor.

// AsActor returns the context of an application that authenticated by its credentials and not
// by a token.
func AsActor(ctx context.Context, a Application) context.Context {
	return WithOrigin(ctx, func(o *eventlog.Origin) {
		o.ClientID, o.Actor = a.ClientID, eventlog.Actor{Type: schema.ApplicationType, ID: a.ClientID}
	})
}

func WithOrigin(ctx context.Context, change func(*eventlog.Origin)) context.Context {
	return eventlog.WithOrigin(ctx, func() eventlog.Origin {
		o := eventlog.OriginOf(ctx)
		change(&o)
		return o
	})
}

type applicationEvent struct {
	Application any              `json:"application"`
	Changes     document.Changes `json:"changes,omitzero"`
}

func applicationCreated(ctx context.Context, a Application) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ApplicationCreated, applicationEvent{Application: a.Document()})
}

// applicationChanged returns the events of a change: one of a new state, and one of the rest.
// There are none if only secrets differ.
func applicationChanged(ctx context.Context, before, after Application) (events []eventlog.Event) {
	changes := document.Difference(before.Document(), after.Document())
	delete(changes, "updated_at")
	delete(changes, "audit_summary")
	if before.State != after.State {
		t := eventlog.ApplicationEnabled
		if after.State == Disabled {
			t = eventlog.ApplicationDisabled
		}
		events = append(events, eventlog.Of(ctx, t, applicationEvent{after.Document(), document.Changes{"state": changes["state"]}}))
		delete(changes, "state")
	}
	if len(changes) > 0 {
		events = append(events, eventlog.Of(ctx, eventlog.ApplicationUpdated, applicationEvent{after.Document(), changes}))
	}
	return events
}

func applicationDeleted(ctx context.Context, a Application) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ApplicationDeleted, applicationEvent{Application: a.Ref()})
}

func secretRotated(ctx context.Context, a Application) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ApplicationSecretRotated, applicationEvent{Application: a.Ref()})
}
