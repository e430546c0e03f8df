package delivery

import (
	"context"
	"time"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/webhooks/subscription"
)

// Each type of event has one constructor.

type subscriptionRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func refTo(s subscription.Subscription) subscriptionRef { return subscriptionRef{s.ID, s.Name} }

type deadLetterEvent struct {
	Subscription subscriptionRef `json:"subscription"`
	DeadLetter   deadLetterRef   `json:"dead_letter"`
}

type deadLetterRef struct {
	ID                 string     `json:"id"`
	DeliveryID         string     `json:"delivery_id"`
	EventID            string     `json:"event_id"`
	EventType          string     `json:"event_type"`
	Reason             DeadReason `json:"reason"`
	State              DeadState  `json:"state"`
	ReplayedDeliveryID string     `json:"replayed_delivery_id,omitzero"`
}

func eventOf(s subscription.Subscription, e DeadLetter) deadLetterEvent {
	return deadLetterEvent{refTo(s), deadLetterRef{e.ID, e.DeliveryID, e.EventID, e.EventType, e.Reason, e.State, e.ReplayedDeliveryID}}
}

func deadLettered(ctx context.Context, s subscription.Subscription, e DeadLetter) eventlog.Event {
	return eventlog.Of(ctx, eventlog.WebhookDeliveryDeadLettered, eventOf(s, e))
}

func deadLetterReplayed(ctx context.Context, s subscription.Subscription, e DeadLetter) eventlog.Event {
	return eventlog.Of(ctx, eventlog.WebhookDeadLetterReplayed, eventOf(s, e))
}

func deadLetterDropped(ctx context.Context, s subscription.Subscription, e DeadLetter) eventlog.Event {
	return eventlog.Of(ctx, eventlog.WebhookDeadLetterDropped, eventOf(s, e))
}

func subscriptionFailing(ctx context.Context, s subscription.Subscription, since time.Time) eventlog.Event {
	return eventlog.Of(ctx, eventlog.WebhookSubscriptionFailing, struct {
		Subscription subscriptionRef    `json:"subscription"`
		FailingSince document.Timestamp `json:"failing_since"`
	}{refTo(s), document.Timestamp(since)})
}

func ping(ctx context.Context) eventlog.Event {
	return eventlog.Of(ctx, eventlog.TestPing, struct {
		Test bool `json:"test"`
	}{true})
}
