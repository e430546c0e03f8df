package subscription

import (
	"context"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Each type of event has one constructor. Their data has no secrets.

type subscriptionEvent struct {
	Subscription any              `json:"subscription"`
	Changes      document.Changes `json:"changes,omitzero"`
}

func created(ctx context.Context, s Subscription) eventlog.Event {
	return eventlog.Of(ctx, eventlog.WebhookSubscriptionCreated, subscriptionEvent{Subscription: s.Document()})
}

// changed returns the events of a change: one of a new state, and one of the rest.
func changed(ctx context.Context, before, after Subscription) (events []eventlog.Event) {
	changes := document.Difference(before.Document(), after.Document())
	delete(changes, "updated_at")
	if before.State != after.State {
		t := eventlog.WebhookSubscriptionEnabled
		if after.State == Disabled {
			t = eventlog.WebhookSubscriptionDisabled
		}
		of := document.Changes{"state": changes["state"], "disabled_reason": changes["disabled_reason"]}
		events = append(events, eventlog.Of(ctx, t, subscriptionEvent{after.Document(), of}))
	}
	delete(changes, "state")
	delete(changes, "disabled_reason")
	if len(changes) > 0 {
		events = append(events, eventlog.Of(ctx, eventlog.WebhookSubscriptionUpdated, subscriptionEvent{after.Document(), changes}))
	}
	return events
}

func deleted(ctx context.Context, s Subscription) eventlog.Event {
	return eventlog.Of(ctx, eventlog.WebhookSubscriptionDeleted, subscriptionEvent{Subscription: s.Document()})
}

func secretRotated(ctx context.Context, s Subscription) eventlog.Event {
	return eventlog.Of(ctx, eventlog.WebhookSecretRotated, subscriptionEvent{Subscription: s.Document()})
}
