package resources

import (
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/document"
)

// Document is the public representation of a resource: operations answer it.
type Document struct {
	Attributes jsontext.Value     `json:"attributes"` // null: none
	CreatedAt  document.Timestamp `json:"created_at"`
	ExternalID string             `json:"external_id"`
	Type       string             `json:"type"`
	UpdatedAt  document.Timestamp `json:"updated_at"`
}

// Document is the public representation of the resource.
func (r Resource) Document() Document {
	return Document{
		Type: r.Type, ExternalID: r.ExternalID, Attributes: r.Attributes,
		CreatedAt: document.Timestamp(r.CreatedAt), UpdatedAt: document.Timestamp(r.UpdatedAt),
	}
}
