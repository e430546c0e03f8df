package client

import (
	"encoding/json"
	"fmt"
	"strings"

	"stonetown/internal/notation"
)

// Ref names a resource.
type Ref struct {
	Type       string `json:"type"`
	ExternalID string `json:"external_id"`
}

func (r Ref) String() string { return r.Type + ":" + Printable(r.ExternalID) }

// Subject names a subject: an object, everyone of a type (ID *) or those who have a relation to an
// object.
type Subject struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Relation string `json:"relation,omitempty"` // empty: none
}

func (s Subject) String() string {
	s.ID = Printable(s.ID)
	return notation.Subject(s).String()
}

// ParseRef parses type:external_id. The ID may contain colons.
func ParseRef(text string) (Ref, error) {
	r, err := notation.ReadRef(text)
	return Ref(r), err
}

// ParseSubject parses type:id, type:* or type:id#relation, or the JSON of the API.
func ParseSubject(text string) (Subject, error) {
	s, err := notation.ReadSubject(text)
	return Subject(s), err
}

// ParseTuple parses resource#relation@subject.
func ParseTuple(text string) (t Tuple, err error) {
	resource, relation, subject, ok := notation.CutTuple(text)
	if !ok {
		return t, fmt.Errorf("%q is not a relation: resource#relation@subject, such as document:q3#viewer@user:ann", text)
	}
	t.Relation = relation
	if t.Resource, err = ParseRef(resource); err != nil {
		return t, err
	}
	t.Subject, err = ParseSubject(subject)
	return t, err
}

// ParseFilter parses RESOURCE#RELATION@SUBJECT, of which parts can be missing: a resource or a
// subject is type:id or only a type. The text after the first @ is the subject; a resource with
// an @ in its id is given as JSON, in the form of the API.
func ParseFilter(text string) (f RelationFilter, err error) {
	malformed := fmt.Errorf("%q does not select relations: resource#relation@subject, of which parts can be missing, such as document:q3#viewer or document@user:ann", text)
	if strings.HasPrefix(text, "{") {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if !notation.DecodeAll(decoder, &f) {
			return f, malformed
		}
		return f, nil
	}
	resource, subject, named := strings.Cut(text, "@")
	resource, f.Relation = notation.CutRelation(resource)
	subject, f.SubjectRelation = notation.CutRelation(subject)
	var identified bool
	if f.ResourceType, f.ExternalID, identified = strings.Cut(resource, ":"); identified && f.ExternalID == "" || f.ResourceType == "" && resource != "" {
		return f, malformed
	}
	if f.SubjectType, f.SubjectID, identified = strings.Cut(subject, ":"); identified && f.SubjectID == "" || f.SubjectType == "" && named {
		return f, malformed
	}
	if f.ResourceType == "" && f.SubjectType == "" {
		return f, malformed
	}
	return f, nil
}
