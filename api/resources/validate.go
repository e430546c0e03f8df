package resources

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/identity"
	"stonetown/oauth/client"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// maxAttributes is the largest attributes object, in bytes of compact JSON.
const maxAttributes = 16 << 10

// validation converts the parts of a request to the engine's types, and collects their
// errors.
type validation struct{ web.Validation }

func (v *validation) resource(path, typ, id string) tuplestore.Object {
	v.Text(path, "type", typ)
	if v.Text(path, "external_id", id) {
		switch {
		case len(id) > engine.MaxID:
			v.Add(path+"external_id", "too_long", fmt.Sprintf("must have at most %d bytes", engine.MaxID))
		case id == tuplestore.Wildcard:
			v.Add(path+"external_id", "reserved", "must not be *, which is reserved for the wildcard subject")
		}
	}
	return tuplestore.Object{Type: typ, ID: id}
}

// managed refuses changes of data that the operations on users, groups, applications and
// webhook subscriptions maintain: a relation of an object or, without a relation, the object
// itself.
func managed(o tuplestore.Object, relation string) error {
	scope, kept := identity.Managed(o, relation)
	if !kept {
		scope, kept = "applications:write", client.Managed(o, relation)
	}
	if !kept {
		scope, kept = "webhooks:write", o.Type == schema.WebhookSubscriptionType
	}
	if !kept {
		return nil
	}
	return &web.Error{
		Status: http.StatusForbidden, Code: "permission_denied",
		Message: strings.TrimSuffix(o.String()+"#"+relation, "#") + " is maintained by the operations on users, groups, applications and webhook subscriptions", Details: web.Details{"required_scope": scope},
	}
}

// subject does not validate the length of the id: the engine does, with a code of its own
// for subjects.
func (v *validation) subject(path string, s Subject) tuplestore.Subject {
	v.Text(path, "subject/type", s.Type)
	v.Text(path, "subject/id", s.ID)
	if s.Relation != "" {
		v.Text(path, "subject/relation", s.Relation)
	}
	return tuplestore.Subject{Type: s.Type, ID: s.ID, Relation: s.Relation}
}

// attributes returns nil for attributes that are absent or null.
func (v *validation) attributes(value jsontext.Value) []byte {
	if value == nil || value.Kind() == 'n' {
		return nil
	}
	if value.Kind() != '{' {
		v.Add("attributes", "type_invalid", "must be an object or null")
		return nil
	}
	if err := value.Compact(); err != nil {
		v.Add("attributes", "invalid", "is not valid JSON")
		return nil
	}
	if len(value) > maxAttributes {
		v.Add("attributes", "too_large", fmt.Sprintf("must have at most %d bytes", maxAttributes))
		return nil
	}
	return value
}

func (v *validation) consistency(level Consistency, token, at string) engine.Consistency {
	switch {
	case at != "" && (level != "" || token != ""):
		v.Add("at", "conflict", "cannot be combined with consistency or consistency_token")
	case strings.Contains(at, ":"): // which no token has
		instant, err := time.Parse(time.RFC3339, at)
		if err != nil || instant.UnixMicro() <= 0 {
			v.Add("at", "timestamp_invalid", "must be a consistency token or an RFC 3339 time after 1970")
		}
		return engine.Consistency{Mode: engine.AsOf, Instant: instant}
	case at != "":
		return engine.Consistency{Mode: engine.AsOf, Token: at}
	case level != "" && token != "":
		v.Add("consistency", "conflict", "cannot be combined with consistency_token")
	case token != "":
		return engine.Consistency{Mode: engine.AtLeast, Token: token}
	case level == MinimizeLatency:
		return engine.Consistency{Mode: engine.MinimizeLatency}
	case level != "" && level != Full:
		v.Add("consistency", "unknown_value", "must be full or minimize_latency")
	}
	return engine.Consistency{Mode: engine.Full}
}
