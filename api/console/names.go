package console

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
)

// ref names a resource.
type ref struct {
	Type string `json:"type"`
	ID   string `json:"external_id"`
}

func (r ref) String() string { return r.Type + ":" + r.ID }

// subject names a subject: an object, everyone of a type (id *) or those who have a relation to an
// object.
type subject struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Relation string `json:"relation,omitempty"`
}

func (s subject) String() string {
	text := s.Type + ":" + s.ID
	if s.Relation != "" {
		text += "#" + s.Relation
	}
	return text
}

// Typed returns the text that parseSubject reads as the subject.
func (s subject) Typed() string {
	if same, ok := parseSubject(s.String()); ok && same == s {
		return s.String()
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic("console: " + err.Error()) // a programming error
	}
	return string(text)
}

// The messages about texts that are not valid.
const (
	notRef     = "A resource is type:id, such as document:q3."
	notSubject = "A subject is type:id or type:id#relation, such as user:ann or group:staff#member."
)

// parseRef reads type:id. The id may contain colons.
func parseRef(text string) (r ref, ok bool) {
	typ, id, ok := strings.Cut(strings.TrimSpace(text), ":")
	if !ok || typ == "" || id == "" {
		return ref{}, false
	}
	return ref{typ, id}, true
}

// decodeAll reads a text that is one JSON value.
func decodeAll(decoder *json.Decoder, into any) bool {
	if decoder.Decode(into) != nil {
		return false
	}
	_, err := decoder.Token()
	return err == io.EOF
}

var relationName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// parseSubject reads type:id and type:id#relation as the command line does: the text after the last
// # is a relation if it can be the name of one. A subject with another id of that form is given in
// JSON, as in the API.
func parseSubject(text string) (s subject, ok bool) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if !decodeAll(decoder, &s) || s.Type == "" || s.ID == "" {
			return subject{}, false
		}
		return s, true
	}
	r, ok := parseRef(text)
	if !ok {
		return subject{}, false
	}
	s = subject{Type: r.Type, ID: r.ID}
	if i := strings.LastIndexByte(s.ID, '#'); i > 0 && relationName.MatchString(s.ID[i+1:]) {
		s.ID, s.Relation = s.ID[:i], s.ID[i+1:]
	}
	return s, true
}
