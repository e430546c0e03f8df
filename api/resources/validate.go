package resources

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/tuplestore"
)

// maxAttributes is the largest attributes object, in bytes of compact JSON.
const maxAttributes = 16 << 10

// validation collects what is wrong with a request.
type validation []web.FieldError

func (v *validation) add(field, code, message string) {
	*v = append(*v, web.FieldError{Field: field, Code: code, Message: field + " " + message})
}

// err is nil if nothing is wrong.
func (v validation) err() error {
	if len(v) == 0 {
		return nil
	}
	return web.ValidationFailed(v...)
}

// text demands a value, and one that every database can store: NUL ends text in
// PostgreSQL, and paths can carry broken UTF-8. It reports whether that is so.
//
// Here and below, path leads to the object that has the field. The two are only
// joined for what is wrong, because a batch asks this thousands of times.
func (v *validation) text(path, field, value string) bool {
	switch {
	case value == "":
		v.add(path+field, "required", "is required")
	case strings.IndexByte(value, 0) >= 0:
		v.add(path+field, "nul_refused", "must not contain NUL")
	case !utf8.ValidString(value):
		v.add(path+field, "utf8_invalid", "must be valid UTF-8")
	default:
		return true
	}
	return false
}

func (v *validation) resource(path, typ, id string) tuplestore.Object {
	v.text(path, "type", typ)
	if v.text(path, "external_id", id) {
		switch {
		case len(id) > engine.MaxID:
			v.add(path+"external_id", "too_long", fmt.Sprintf("must have at most %d bytes", engine.MaxID))
		case id == tuplestore.Wildcard:
			v.add(path+"external_id", "reserved", "must not be *, which stands for every subject of a type")
		}
	}
	return tuplestore.Object{Type: typ, ID: id}
}

// subject leaves the length of the id to the engine, which has a code of its
// own for subjects.
func (v *validation) subject(path string, s Subject) tuplestore.Subject {
	v.text(path, "subject/type", s.Type)
	v.text(path, "subject/id", s.ID)
	if s.Relation != "" {
		v.text(path, "subject/relation", s.Relation)
	}
	return tuplestore.Subject{Type: s.Type, ID: s.ID, Relation: s.Relation}
}

// attributes returns nil for attributes that are absent or null.
func (v *validation) attributes(value jsontext.Value) []byte {
	if value == nil || value.Kind() == 'n' {
		return nil
	}
	if value.Kind() != '{' {
		v.add("attributes", "type_invalid", "must be an object or null")
		return nil
	}
	if err := value.Compact(); err != nil {
		v.add("attributes", "invalid", "is not valid JSON")
		return nil
	}
	if len(value) > maxAttributes {
		v.add("attributes", "too_large", fmt.Sprintf("must have at most %d bytes", maxAttributes))
		return nil
	}
	return value
}

func (v *validation) consistency(level Consistency, token string) engine.Consistency {
	switch {
	case level != "" && token != "":
		v.add("consistency", "conflict", "cannot be combined with consistency_token")
	case token != "":
		return engine.Consistency{Mode: engine.AtLeast, Token: token}
	case level == MinimizeLatency:
		return engine.Consistency{Mode: engine.MinimizeLatency}
	case level != "" && level != Full:
		v.add("consistency", "unknown_value", "must be full or minimize_latency")
	}
	return engine.Consistency{Mode: engine.Full}
}
