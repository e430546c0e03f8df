package engine

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/document"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// ResourceRef is the public representation of the name of a resource: operations answer
// it, and events carry it.
type ResourceRef struct {
	ExternalID string `json:"external_id"`
	Type       string `json:"type"`
}

// RefTo represents the name of a resource.
func RefTo(o tuplestore.Object) ResourceRef { return ResourceRef{o.ID, o.Type} }

// SubjectDocument is the public representation of the subject of a relation. A group
// represents its members.
type SubjectDocument struct {
	ID       string `json:"id"`
	Relation string `json:"relation,omitempty"`
	Type     string `json:"type"`
}

// SubjectDocumentOf represents a subject.
func SubjectDocumentOf(s tuplestore.Subject) SubjectDocument {
	if s.Type == schema.GroupType && s.Relation == schema.GroupMember {
		s.Relation = ""
	}
	return SubjectDocument{s.ID, s.Relation, s.Type}
}

// RelationDocument is the public representation of a relation as it is written.
type RelationDocument struct {
	Condition ConditionDocument  `json:"condition,omitzero"`
	ExpiresAt document.Timestamp `json:"expires_at,omitzero"`
	Relation  string             `json:"relation"`
	Resource  ResourceRef        `json:"resource"`
	Subject   SubjectDocument    `json:"subject"`
}

// AppendJSON appends the form in which package json encodes the relation. An event is stored with
// each write of a relation, so this is done without reflection, except for a condition.
func (r RelationDocument) AppendJSON(b []byte) []byte {
	return append(r.AppendMembers(append(b, '{')), '}')
}

// AppendMembers is AppendJSON without the braces, for an object that has other members, too.
func (r RelationDocument) AppendMembers(b []byte) []byte {
	if r.Condition.Name != "" || r.Condition.Context != nil {
		condition, err := json.Marshal(r.Condition, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			panic("engine: condition that is not JSON: " + err.Error())
		}
		b = append(append(append(b, `"condition":`...), condition...), ',')
	}
	if r.ExpiresAt != (document.Timestamp{}) {
		at, _ := r.ExpiresAt.MarshalText() // never fails
		b = append(append(append(b, `"expires_at":"`...), at...), `",`...)
	}
	b = document.AppendQuote(append(b, `"relation":`...), r.Relation)
	b = document.AppendQuote(append(b, `,"resource":{"external_id":`...), r.Resource.ExternalID)
	b = document.AppendQuote(append(b, `,"type":`...), r.Resource.Type)
	b = document.AppendQuote(append(b, `},"subject":{"id":`...), r.Subject.ID)
	if r.Subject.Relation != "" {
		b = document.AppendQuote(append(b, `,"relation":`...), r.Subject.Relation)
	}
	b = document.AppendQuote(append(b, `,"type":`...), r.Subject.Type)
	return append(b, '}')
}

// ConditionDocument is the public representation of the condition of a relation, with
// values for its parameters.
type ConditionDocument struct {
	Context jsontext.Value `json:"context,omitempty"`
	Name    string         `json:"name"`
}

// Document is the public representation of the relation, without expiry and condition if
// it is deleted.
func (op WriteOp) Document() RelationDocument {
	r := RelationDocument{Subject: SubjectDocumentOf(op.Subject), Relation: op.Relation, Resource: RefTo(op.Resource)}
	if op.Delete {
		return r
	}
	if !op.ExpiresAt.IsZero() {
		r.ExpiresAt = document.Timestamp(op.ExpiresAt)
	}
	r.Condition = ConditionDocument{Name: op.Condition}
	if len(op.Context) > 0 { // else there is none, which is not the empty value
		r.Condition.Context = op.Context
	}
	return r
}

// QualifierDocument represents a qualifier, as two members of a relation that are absent
// if they are zero.
func QualifierDocument(q tuplestore.Qualifier) (expiresAt document.Timestamp, c ConditionDocument) {
	if q.ExpiresAt != 0 {
		expiresAt = document.Timestamp(time.UnixMicro(q.ExpiresAt))
	}
	c.Name = q.Condition
	if q.Context != "" {
		c.Context = jsontext.Value(q.Context)
	}
	return expiresAt, c
}
