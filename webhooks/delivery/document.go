package delivery

import (
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/document"
)

// Document is the public representation of a delivery.
type Document struct {
	ID             string              `json:"id"`
	SubscriptionID string              `json:"subscription_id"`
	EventID        string              `json:"event_id"`
	EventType      string              `json:"event_type"`
	Status         Status              `json:"status"`
	AttemptCount   int                 `json:"attempt_count"`
	NextAttemptAt  *document.Timestamp `json:"next_attempt_at"`
	CreatedAt      document.Timestamp  `json:"created_at"`
	Attempts       []Attempt           `json:"attempts"`
}

// Document returns the public representation.
func (d *Delivery) Document() Document {
	return Document{
		ID: d.ID, SubscriptionID: d.SubscriptionID, EventID: d.EventID, EventType: d.EventType, Status: d.Status,
		AttemptCount: len(d.Attempts), NextAttemptAt: document.TimeOrNull(d.NextAttemptAt), CreatedAt: document.Timestamp(d.CreatedAt),
		Attempts: listed(d.Attempts),
	}
}

// DeadLetterDocument is the public representation of a dead letter.
type DeadLetterDocument struct {
	ID                 string              `json:"id"`
	SubscriptionID     string              `json:"subscription_id"`
	DeliveryID         string              `json:"delivery_id"`
	Event              jsontext.Value      `json:"event"`
	Reason             DeadReason          `json:"reason"`
	State              DeadState           `json:"state"`
	Attempts           []Attempt           `json:"attempts"`
	LastResponse       *Response           `json:"last_response"`
	DeadLetteredAt     document.Timestamp  `json:"dead_lettered_at"`
	ExpiresAt          document.Timestamp  `json:"expires_at"`
	ReplayedDeliveryID *string             `json:"replayed_delivery_id"`
	DroppedBy          *string             `json:"dropped_by"`
	DroppedAt          *document.Timestamp `json:"dropped_at"`
}

// Document returns the public representation.
func (e *DeadLetter) Document() DeadLetterDocument {
	return DeadLetterDocument{
		ID: e.ID, SubscriptionID: e.SubscriptionID, DeliveryID: e.DeliveryID, Event: e.Event, Reason: e.Reason, State: e.State,
		Attempts: listed(e.Attempts), LastResponse: e.LastResponse,
		DeadLetteredAt: document.Timestamp(e.DeadLetteredAt), ExpiresAt: document.Timestamp(e.ExpiresAt),
		ReplayedDeliveryID: document.OrNull(e.ReplayedDeliveryID), DroppedBy: document.OrNull(e.DroppedBy), DroppedAt: document.TimeOrNull(e.DroppedAt),
	}
}
