package subscription

import (
	"stonetown/internal/document"
)

// Document is the public representation of a subscription. It has no secret.
type Document struct {
	ID                      string              `json:"id"`
	Name                    string              `json:"name"`
	URL                     string              `json:"url"`
	Description             string              `json:"description"`
	Events                  []string            `json:"events"`
	VisibleTo               *Visibility         `json:"visible_to"`
	Owners                  []Subject           `json:"owners"`
	Viewers                 []Subject           `json:"viewers"`
	State                   State               `json:"state"`
	DisabledReason          *string             `json:"disabled_reason"`
	FailingSince            *document.Timestamp `json:"failing_since"`
	LastSuccessAt           *document.Timestamp `json:"last_success_at"`
	PreviousSecretExpiresAt *document.Timestamp `json:"previous_secret_expires_at"`
	CreatedAt               document.Timestamp  `json:"created_at"`
	UpdatedAt               document.Timestamp  `json:"updated_at"`
}

// Document returns the public representation.
func (s Subscription) Document() Document {
	var visible *Visibility
	if s.VisibleTo != nil {
		visible = &Visibility{s.VisibleTo.Subject.document(), s.VisibleTo.Action}
	}
	return Document{
		ID: s.ID, Name: s.Name, URL: s.URL, Description: s.Description, Events: listed(s.Events), VisibleTo: visible,
		Owners: subjects(s.Owners), Viewers: subjects(s.Viewers), State: s.State, DisabledReason: document.OrNull(string(s.DisabledReason)),
		FailingSince: document.TimeOrNull(s.FailingSince), LastSuccessAt: document.TimeOrNull(s.LastSuccessAt),
		PreviousSecretExpiresAt: document.TimeOrNull(s.PreviousExpiresAt),
		CreatedAt:               document.Timestamp(s.CreatedAt), UpdatedAt: document.Timestamp(s.UpdatedAt),
	}
}

func subjects(list []Subject) []Subject {
	documents := make([]Subject, len(list))
	for i, s := range list {
		documents[i] = s.document()
	}
	return documents
}

// listed is a list that is never null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
