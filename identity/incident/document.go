package incident

import (
	"context"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Document is the public representation of an incident, in responses and in events.
type Document struct {
	ID              string              `json:"id"`
	Title           string              `json:"title"`
	Description     string              `json:"description"`
	Severity        Severity            `json:"severity"`
	State           string              `json:"state"`
	AssigneeID      *string             `json:"assignee_id"`
	AffectsAllUsers bool                `json:"affects_all_users"`
	AffectedUsers   int                 `json:"affected_users"`
	Resolution      *string             `json:"resolution"`
	OpenedAt        document.Timestamp  `json:"opened_at"`
	OpenedBy        *eventlog.Actor     `json:"opened_by"` // null: the product
	UpdatedAt       document.Timestamp  `json:"updated_at"`
	ClosedAt        *document.Timestamp `json:"closed_at"`
}

// Document returns the public representation of the incident.
func (i Incident) Document() Document {
	state := "open"
	if !i.ClosedAt.IsZero() {
		state = "closed"
	}
	return Document{
		ID: i.ID, Title: i.Title, Description: i.Description, Severity: i.Severity, State: state, AssigneeID: document.OrNull(i.AssigneeID),
		AffectsAllUsers: i.AllUsers, AffectedUsers: i.Affected, Resolution: document.OrNull(i.Resolution),
		OpenedAt: document.Timestamp(i.OpenedAt), OpenedBy: actorOrNull(i.OpenedBy),
		UpdatedAt: document.Timestamp(i.UpdatedAt), ClosedAt: document.TimeOrNull(i.ClosedAt),
	}
}

func actorOrNull(a eventlog.Actor) *eventlog.Actor {
	if a == (eventlog.Actor{}) {
		return nil
	}
	return &a
}

// NotificationDocument is the public representation of a notification.
type NotificationDocument struct {
	ID         string              `json:"id"`
	Subject    string              `json:"subject"`
	Message    string              `json:"message"`
	State      string              `json:"state"`
	Mails      int                 `json:"mails"`
	CreatedAt  document.Timestamp  `json:"created_at"`
	CreatedBy  *eventlog.Actor     `json:"created_by"` // null: the product
	FinishedAt *document.Timestamp `json:"finished_at"`
}

// Document returns the public representation of the notification.
func (n Notification) Document() NotificationDocument {
	state := "running"
	if !n.FinishedAt.IsZero() {
		state = "completed"
	}
	return NotificationDocument{
		ID: n.ID, Subject: n.Subject, Message: n.Message, State: state, Mails: n.Mails,
		CreatedAt: document.Timestamp(n.CreatedAt), CreatedBy: actorOrNull(n.CreatedBy), FinishedAt: document.TimeOrNull(n.FinishedAt),
	}
}

// AffectedDocument is the public representation of an affected user.
type AffectedDocument struct {
	UserID  string             `json:"user_id"`
	Email   *string            `json:"email"` // null: the reader may not see addresses
	AddedAt document.Timestamp `json:"added_at"`
}

// Document returns the public representation of the affected user, with an address unless it is empty.
func (a AffectedUser) Document(email string) AffectedDocument {
	return AffectedDocument{a.UserID, document.OrNull(email), document.Timestamp(a.AddedAt)}
}

// incidentEvent is the data of an event about an incident.
type incidentEvent struct {
	Incident Document         `json:"incident"`
	Changes  document.Changes `json:"changes,omitzero"`
}

func opened(ctx context.Context, i Incident) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityBreachIncidentOpened, incidentEvent{Incident: i.Document()})
}

func closed(ctx context.Context, i Incident) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityBreachIncidentClosed, incidentEvent{Incident: i.Document()})
}

func updated(ctx context.Context, before, after Incident) eventlog.Event {
	changes := document.Difference(before.Document(), after.Document())
	delete(changes, "updated_at")
	return eventlog.Of(ctx, eventlog.SecurityBreachIncidentUpdated, incidentEvent{after.Document(), changes})
}

// notifiedEvent is the data of the event of a notification that begins. The message, which can have
// names of persons, is not a part of it.
type notifiedEvent struct {
	Incident     Document `json:"incident"`
	Notification struct {
		ID      string `json:"id"`
		Subject string `json:"subject"`
	} `json:"notification"`
}

func notified(ctx context.Context, i Incident, n Notification) eventlog.Event {
	e := notifiedEvent{Incident: i.Document()}
	e.Notification.ID, e.Notification.Subject = n.ID, n.Subject
	return eventlog.Of(ctx, eventlog.SecurityBreachIncidentNotified, e)
}
