package resources

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/engine"
	"stonetown/schema/condition"
)

// qualifier reads the expiry and the condition of a relation into op.
func (v *validation) qualifier(path string, expiresAt *string, on *RelationCondition, op *engine.WriteOp) {
	if expiresAt != nil {
		at, err := time.Parse(time.RFC3339Nano, *expiresAt)
		if err != nil || at.UnixMicro() <= 0 {
			v.Add(path+"expires_at", "timestamp_invalid", "must be an RFC 3339 time after 1970")
		}
		op.ExpiresAt = at
	}
	if on != nil {
		v.Text(path, "condition/name", on.Name)
		op.Condition, op.Context = on.Name, v.Object(path+"condition/context", on.Context, condition.MaxContext)
	}
}

// lasting refuses a new relation that has expired already. Deletions have no expiry, and a
// contextual relation may have expired: it then does not hold.
func (v *validation) lasting(path string, op engine.WriteOp) {
	if !op.Delete && op.ExpiresAt.UnixMicro() > 0 && !op.ExpiresAt.After(time.Now()) {
		v.Add(path+"expires_at", "in_the_past", "must be in the future; to end a relation now, delete it")
	}
}

// context reads the values of a request for conditions.
func (v *validation) context(value jsontext.Value) map[string]any {
	return v.Values("context", value, condition.MaxContext)
}

// contextual reads the contextual relations of a request.
func (v *validation) contextual(in []ContextualRelation) ([]engine.WriteOp, error) {
	return v.relations("contextual_relations", in)
}

// relations reads a list of at most [engine.MaxContextual] relations.
func (v *validation) relations(field string, in []ContextualRelation) ([]engine.WriteOp, error) {
	if len(in) > engine.MaxContextual {
		return nil, tooMany(field, engine.MaxContextual)
	}
	return v.facts(field+"/", in), nil
}

// facts reads relations that are not written.
func (v *validation) facts(list string, in []ContextualRelation) (ops []engine.WriteOp) {
	for i, r := range in {
		path := list + strconv.Itoa(i) + "/"
		op := engine.WriteOp{
			Resource: v.resource(path+"resource/", r.Resource.Type, r.Resource.ExternalID),
			Relation: r.Relation,
			Subject:  v.subject(path, r.Subject),
		}
		v.Text(path, "relation", r.Relation)
		v.qualifier(path, r.ExpiresAt, r.Condition, &op)
		ops = append(ops, op)
	}
	return ops
}
