// Package public has the public representations of resource types, resources and relations:
// operations answer them, and events carry them.
package public

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/engine"
	"stonetown/internal/document"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Resource is a registered resource.
type Resource struct {
	Attributes jsontext.Value     `json:"attributes"` // null: none
	CreatedAt  document.Timestamp `json:"created_at"`
	ExternalID string             `json:"external_id"`
	Type       string             `json:"type"`
	UpdatedAt  document.Timestamp `json:"updated_at"`
}

// ResourceRef names a resource.
type ResourceRef struct {
	ExternalID string `json:"external_id"`
	Type       string `json:"type"`
}

// RefOf names an object.
func RefOf(o tuplestore.Object) ResourceRef { return ResourceRef{o.ID, o.Type} }

// Subject is a subject of a relation. A group stands for its members.
type Subject struct {
	ID       string `json:"id"`
	Relation string `json:"relation,omitempty"`
	Type     string `json:"type"`
}

// SubjectOf represents a subject.
func SubjectOf(s tuplestore.Subject) Subject {
	if s.Type == schema.GroupType && s.Relation == schema.GroupMember {
		s.Relation = ""
	}
	return Subject{s.ID, s.Relation, s.Type}
}

// Relation is a relation as it is written.
type Relation struct {
	Condition RelationCondition  `json:"condition,omitzero"`
	ExpiresAt document.Timestamp `json:"expires_at,omitzero"`
	Relation  string             `json:"relation"`
	Resource  ResourceRef        `json:"resource"`
	Subject   Subject            `json:"subject"`
}

// RelationCondition is a condition that must be met for a relation to hold, with values for
// its parameters.
type RelationCondition struct {
	Context jsontext.Value `json:"context,omitempty"`
	Name    string         `json:"name"`
}

// RelationOf represents the relation that is written. The terms play no part in deleting.
func RelationOf(op engine.WriteOp) Relation {
	r := Relation{Subject: SubjectOf(op.Subject), Relation: op.Relation, Resource: RefOf(op.Resource)}
	if op.Delete {
		return r
	}
	if !op.ExpiresAt.IsZero() {
		r.ExpiresAt = document.Timestamp(op.ExpiresAt)
	}
	r.Condition = RelationCondition{Name: op.Condition, Context: op.Context}
	return r
}

// TermsOf represents terms; what always holds has none.
func TermsOf(on tuplestore.Terms) (expiresAt document.Timestamp, c RelationCondition) {
	if on.ExpiresAt != 0 {
		expiresAt = document.Timestamp(time.UnixMicro(on.ExpiresAt))
	}
	c.Name = on.Condition
	if on.Context != "" {
		c.Context = jsontext.Value(on.Context)
	}
	return expiresAt, c
}
