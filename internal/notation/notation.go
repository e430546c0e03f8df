// Package notation has the texts by which people name resources and subjects: on the command line,
// in files and in forms.
//
//	document:q3        a resource, or a subject that is an object
//	user:*             everyone of a type
//	group:eng#member   those who have a relation to an object
package notation

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Ref names a resource, as the API has it.
type Ref struct {
	Type       string `json:"type"`
	ExternalID string `json:"external_id"`
}

func (r Ref) String() string { return r.Type + ":" + r.ExternalID }

// Subject names a subject, as the API has it: an object, everyone of a type (ID *) or those who have
// a relation to an object.
type Subject struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Relation string `json:"relation,omitempty"` // empty: none
}

func (s Subject) String() string {
	text := s.Type + ":" + s.ID
	if s.Relation != "" {
		text += "#" + s.Relation
	}
	return text
}

// Text returns a text that [ParseSubject] reads as the subject: that of String or, for an ID that
// ends like a relation, JSON.
func (s Subject) Text() string {
	if same, ok := ParseSubject(s.String()); ok && same == s {
		return s.String()
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic("notation: " + err.Error()) // texts can be encoded
	}
	return string(text)
}

// ParseRef parses type:external_id. The ID may contain colons.
func ParseRef(text string) (r Ref, ok bool) {
	typ, id, ok := strings.Cut(text, ":")
	if !ok || typ == "" || id == "" {
		return Ref{}, false
	}
	return Ref{typ, id}, true
}

// ReadRef is [ParseRef] with an error for users.
func ReadRef(text string) (Ref, error) {
	r, ok := ParseRef(text)
	if !ok {
		return r, fmt.Errorf("%q is not a resource: type:id, such as document:q3", text)
	}
	return r, nil
}

var relationName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// CutRelation cuts the relation off a text: what follows the last #, if it can be the name of one.
func CutRelation(text string) (before, relation string) {
	if i := strings.LastIndexByte(text, '#'); i >= 0 && relationName.MatchString(text[i+1:]) {
		return text[:i], text[i+1:]
	}
	return text, ""
}

var tupleForm = regexp.MustCompile(`(?s)^(.+?)#([a-z][a-z0-9_]{0,62})@(.+)$`)

// CutTuple cuts resource#relation@subject into its parts, around the first relation that an @
// follows.
func CutTuple(text string) (resource, relation, subject string, ok bool) {
	if parts := tupleForm.FindStringSubmatch(text); parts != nil {
		return parts[1], parts[2], parts[3], true
	}
	return "", "", "", false
}

// ParseSubject parses type:id and type:id#relation. The text after the last # is a relation if it
// is a valid name of one; an ID with such an end is given as JSON, in the form of the API.
func ParseSubject(text string) (s Subject, ok bool) {
	if strings.HasPrefix(text, "{") {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if !DecodeAll(decoder, &s) || s.Type == "" || s.ID == "" {
			return Subject{}, false
		}
		return s, true
	}
	r, ok := ParseRef(text)
	if !ok {
		return Subject{}, false
	}
	s = Subject{Type: r.Type, ID: r.ExternalID}
	if id, relation := CutRelation(s.ID); id != "" {
		s.ID, s.Relation = id, relation
	}
	return s, true
}

// ReadSubject is [ParseSubject] with an error for users.
func ReadSubject(text string) (Subject, error) {
	s, ok := ParseSubject(text)
	switch {
	case ok:
		return s, nil
	case strings.HasPrefix(text, "{"):
		return s, fmt.Errorf(`%q is not a subject in JSON, such as {"type":"user","id":"ann"}`, text)
	}
	return s, fmt.Errorf("%q is not a subject: type:id or type:id#relation, such as user:ann or group:eng#member", text)
}

// DecodeAll decodes a text that is one JSON value. It reports whether it is.
func DecodeAll(decoder *json.Decoder, into any) bool {
	if decoder.Decode(into) != nil {
		return false
	}
	_, err := decoder.Token()
	return err == io.EOF
}
