package resources

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/engine"
	"stonetown/schema/condition"
)

// qualifier reads the qualifier on which a relation is to hold into op.
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

// lasting refuses a new relation that would have expired before it is written. The
// qualifier of one that is deleted play no part, and a relation that a question brings
// along may have expired: then it is not there.
func (v *validation) lasting(path string, op engine.WriteOp) {
	if !op.Delete && op.ExpiresAt.UnixMicro() > 0 && !op.ExpiresAt.After(time.Now()) {
		v.Add(path+"expires_at", "in_the_past", "must be in the future; to end a relation now, delete it")
	}
}

// context reads the values that a request gives to conditions.
func (v *validation) context(value jsontext.Value) map[string]any {
	return v.Values("context", value, condition.MaxContext)
}

// contextual reads the relations that a request brings along.
func (v *validation) contextual(in []ContextualRelation) ([]engine.WriteOp, error) {
	if len(in) > engine.MaxContextual {
		return nil, tooMany("contextual_relations", engine.MaxContextual)
	}
	var ops []engine.WriteOp
	for i, r := range in {
		path := "contextual_relations/" + strconv.Itoa(i) + "/"
		op := engine.WriteOp{
			Resource: v.resource(path+"resource/", r.Resource.Type, r.Resource.ExternalID),
			Relation: r.Relation,
			Subject:  v.subject(path, r.Subject),
		}
		v.Text(path, "relation", r.Relation)
		v.qualifier(path, r.ExpiresAt, r.Condition, &op)
		ops = append(ops, op)
	}
	return ops, nil
}
