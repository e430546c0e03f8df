package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Ref names a resource.
type Ref struct {
	Type       string `json:"type"`
	ExternalID string `json:"external_id"`
}

func (r Ref) String() string { return r.Type + ":" + Printable(r.ExternalID) }

// Subject names a subject: an object, the members of a relation of an object, or all objects of
// a type (id *).
type Subject struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Relation string `json:"relation,omitempty"`
}

func (s Subject) String() string {
	text := s.Type + ":" + Printable(s.ID)
	if s.Relation != "" {
		text += "#" + s.Relation
	}
	return text
}

// ParseRef parses type:external_id. The id may contain colons.
func ParseRef(text string) (Ref, error) {
	typ, id, ok := strings.Cut(text, ":")
	if !ok || typ == "" || id == "" {
		return Ref{}, fmt.Errorf("%q is not a resource: type:id, such as document:q3", text)
	}
	return Ref{typ, id}, nil
}

var relationName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// ParseSubject parses type:id and type:id#relation. The text after the last # is a relation if
// it is a valid name of one; an id with such an end is given as JSON, in the form of the API.
func ParseSubject(text string) (Subject, error) {
	if strings.HasPrefix(text, "{") {
		var s Subject
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&s); err != nil || decoder.More() || s.Type == "" || s.ID == "" {
			return Subject{}, fmt.Errorf(`%q is not a subject in JSON, such as {"type":"user","id":"ann"}`, text)
		}
		return s, nil
	}
	typ, id, ok := strings.Cut(text, ":")
	if !ok || typ == "" || id == "" {
		return Subject{}, fmt.Errorf("%q is not a subject: type:id or type:id#relation, such as user:ann or group:eng#member", text)
	}
	s := Subject{Type: typ, ID: id}
	if i := strings.LastIndexByte(id, '#'); i > 0 && relationName.MatchString(id[i+1:]) {
		s.ID, s.Relation = id[:i], id[i+1:]
	}
	return s, nil
}

// ParseTuple parses resource#relation@subject.
func ParseTuple(text string) (t Tuple, err error) {
	resource, subject, ok := strings.Cut(text, "@")
	hash := strings.LastIndexByte(resource, '#')
	if !ok || hash < 0 {
		return t, fmt.Errorf("%q is not a relation: resource#relation@subject, such as document:q3#viewer@user:ann", text)
	}
	t.Relation = resource[hash+1:]
	if t.Resource, err = ParseRef(resource[:hash]); err != nil {
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
		if err := decoder.Decode(&f); err != nil || decoder.More() {
			return f, malformed
		}
		return f, nil
	}
	resource, subject, named := strings.Cut(text, "@")
	if i := strings.LastIndexByte(resource, '#'); i >= 0 && relationName.MatchString(resource[i+1:]) {
		resource, f.Relation = resource[:i], resource[i+1:]
	}
	if i := strings.LastIndexByte(subject, '#'); i >= 0 && relationName.MatchString(subject[i+1:]) {
		subject, f.SubjectRelation = subject[:i], subject[i+1:]
	}
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
