package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

// terms reads the terms on which a relation is to hold into op.
func (v *validation) terms(path, expiresAt string, on RelationCondition, op *engine.WriteOp) {
	if expiresAt != "" {
		at, err := time.Parse(time.RFC3339Nano, expiresAt)
		if err != nil || at.UnixMicro() <= 0 {
			v.add(path+"expires_at", "timestamp_invalid", "must be a time after 1970 as RFC 3339 has it")
		}
		op.ExpiresAt = at
	}
	if on.Name != "" || on.Context != nil {
		v.text(path, "condition/name", on.Name)
		op.Condition, op.Context = on.Name, v.object(path+"condition/context", on.Context)
	}
}

// object returns nil for an object that is absent or null.
func (v *validation) object(field string, value jsontext.Value) []byte {
	switch {
	case value == nil, value.Kind() == 'n':
		return nil
	case value.Kind() != '{':
		v.add(field, "type_invalid", "must be an object")
		return nil
	case len(value) > condition.MaxContext:
		v.add(field, "too_large", fmt.Sprintf("must have at most %d bytes", condition.MaxContext))
		return nil
	}
	return value
}

// context reads the values that a request gives to conditions. Numbers stay as
// they were written.
func (v *validation) context(value jsontext.Value) map[string]any {
	text := v.object("context", value)
	if text == nil {
		return nil
	}
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		v.add("context", "invalid", "is not a JSON object")
	}
	return values
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
		v.text(path, "relation", r.Relation)
		v.terms(path, r.ExpiresAt, r.Condition, &op)
		ops = append(ops, op)
	}
	return ops, nil
}

// wireTerms states terms; what always holds has none.
func wireTerms(on tuplestore.Terms) (expiresAt Timestamp, c RelationCondition) {
	if on.ExpiresAt != 0 {
		expiresAt = web.Timestamp(time.UnixMicro(on.ExpiresAt))
	}
	c.Name = on.Condition
	if on.Context != "" {
		c.Context = jsontext.Value(on.Context)
	}
	return expiresAt, c
}
