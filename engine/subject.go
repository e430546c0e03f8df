package engine

import (
	"fmt"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// MaxID is the longest object or subject ID, in bytes.
const MaxID = 512

// wellFormedSubject validates a subject as far as that needs no schema, and resolves a
// group to its members.
func wellFormedSubject(s tuplestore.Subject) (tuplestore.Subject, error) {
	if s.Type == schema.GroupType && s.Relation == "" && s.ID != tuplestore.Wildcard {
		s.Relation = schema.GroupMember
	}
	if len(s.ID) == 0 || len(s.ID) > MaxID {
		return s, &InvalidSubjectError{Subject: s, Reason: "id_length", Message: fmt.Sprintf("subject id has %d bytes, 1 to %d are allowed", len(s.ID), MaxID)}
	}
	if s.ID == tuplestore.Wildcard && s.IsUserset() {
		return s, &InvalidSubjectError{Subject: s, Reason: "wildcard", Message: "a wildcard has no relations"}
	}
	return s, nil
}

// wellFormedResource validates a resource as far as that needs no schema.
func wellFormedResource(o tuplestore.Object) error {
	if len(o.ID) == 0 || len(o.ID) > MaxID {
		return &InvalidResourceError{Message: fmt.Sprintf("external_id has %d bytes, 1 to %d are allowed", len(o.ID), MaxID)}
	}
	if o.ID == tuplestore.Wildcard {
		return &InvalidResourceError{Message: "external_id * is reserved for the wildcard subject"}
	}
	return nil
}

// refusalMessages are the messages for a schema's refusals.
var refusalMessages = map[schema.Refusal]string{
	schema.UnknownType:       "its type is not defined",
	schema.UndefinedRelation: "its type has no such relation",
	schema.NotDirect:         "the relation is derived and takes no tuples",
	schema.WildcardRefused:   "the relation does not list this wildcard among its subjects",
	schema.TypeRefused:       "the relation does not list this kind among its subjects",
	schema.LeadsBack:         "the subject's relation is defined by subtracting this relation",
}

// writableSubject validates the subject of a new tuple.
func writableSubject(c *schema.Compiled, o tuplestore.Object, relation string, s tuplestore.Subject) error {
	shape := schema.SubjectType(s.Shape())
	refusal := c.Allows(o.Type, relation, shape)
	if refusal == schema.Allowed {
		return nil
	}
	return &InvalidSubjectError{
		Subject: s, Reason: string(refusal),
		Message: fmt.Sprintf("relation %q of type %q cannot name %s: %s", relation, o.Type, s, refusalMessages[refusal]),
	}
}
