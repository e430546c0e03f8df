package engine

import (
	"cmp"
	"maps"
	"slices"

	"stonetown/internal/document"
	"stonetown/schema"
	"stonetown/schema/condition"
)

// TypeDocument is the public representation of a resource type.
type TypeDocument struct {
	Actions     map[string]string             `json:"actions"`
	Conditions  []ConditionDefinitionDocument `json:"conditions"`
	CreatedAt   document.Timestamp            `json:"created_at"`
	Deprecated  string                        `json:"deprecated,omitempty"`
	Description string                        `json:"description"`
	Name        string                        `json:"name"`
	Relations   []RelationDefinitionDocument  `json:"relations"`
	UpdatedAt   document.Timestamp            `json:"updated_at"`
}

// RelationDefinitionDocument is the public representation of a relation of a resource type.
type RelationDefinitionDocument struct {
	// Cardinality and OnSecond are absent for a relation of any number of subjects.
	Cardinality string            `json:"cardinality,omitempty"`
	Deprecated  string            `json:"deprecated,omitempty"`
	Name        string            `json:"name"`
	OnSecond    string            `json:"on_second,omitempty"`
	Rewrites    []RewriteDocument `json:"rewrites"`
	// Subjects are the subject types that tuples may name. Absent: all but wildcards; empty: none.
	Subjects *[]string `json:"subjects,omitzero"`
}

// ConditionDefinitionDocument is the public representation of a condition of a resource type.
type ConditionDefinitionDocument struct {
	Expression string            `json:"expression"`
	Name       string            `json:"name"`
	Parameters map[string]string `json:"parameters,omitempty"` // their types
}

// RewriteDocument is the public representation of a userset rewrite. Its kind determines
// which members it has.
type RewriteDocument struct {
	Kind     string            `json:"kind"`
	Relation string            `json:"relation,omitempty"`
	Tupleset string            `json:"tupleset,omitempty"`
	Computed string            `json:"computed,omitempty"`
	Mode     string            `json:"mode,omitempty"`
	Children []RewriteDocument `json:"children,omitempty"`
	Base     *RewriteDocument  `json:"base,omitzero"`
	Subtract *RewriteDocument  `json:"subtract,omitzero"`
}

// TypeDocumentOf represents a resource type.
func TypeDocumentOf(t schema.Type) TypeDocument {
	return TypeDocument{
		Name: t.Name, Description: t.Description, Deprecated: t.Deprecated, Actions: t.Actions, Relations: RelationDefinitionsOf(t), Conditions: ConditionDefinitionsOf(t),
		CreatedAt: document.Timestamp(t.CreatedAt), UpdatedAt: document.Timestamp(t.UpdatedAt),
	}
}

// RelationDefinitionsOf represents the relations of a resource type.
func RelationDefinitionsOf(t schema.Type) (all []RelationDefinitionDocument) {
	for _, r := range t.Relations {
		d := RelationDefinitionDocument{Name: r.Name, Rewrites: rewriteDocumentsOf(r.Rewrites), Subjects: subjectTypesOf(r), Deprecated: r.Deprecated}
		if r.Cardinality == schema.One {
			d.Cardinality, d.OnSecond = string(schema.One), string(cmp.Or(r.OnSecond, schema.Refuse))
		}
		all = append(all, d)
	}
	return all
}

// ConditionDefinitionsOf represents the conditions of a resource type.
func ConditionDefinitionsOf(t schema.Type) (all []ConditionDefinitionDocument) {
	for _, d := range t.Conditions {
		c := ConditionDefinitionDocument{Name: d.Name, Expression: d.Expression, Parameters: map[string]string{}}
		for _, p := range d.Parameters {
			c.Parameters[p.Name] = p.Type
		}
		all = append(all, c)
	}
	return all
}

func subjectTypesOf(r schema.Relation) *[]string {
	if r.Subjects == nil {
		return nil
	}
	subjects := make([]string, 0, len(r.Subjects))
	for _, s := range r.Subjects {
		subjects = append(subjects, s.String())
	}
	return &subjects
}

func rewriteDocumentsOf(in []schema.Rewrite) (all []RewriteDocument) {
	for _, r := range in {
		all = append(all, *rewriteDocumentOf(&r))
	}
	return all
}

func rewriteDocumentOf(r *schema.Rewrite) *RewriteDocument {
	if r == nil {
		return nil
	}
	return &RewriteDocument{
		Kind: string(r.Kind), Relation: r.Relation, Tupleset: r.Tupleset, Computed: r.Computed, Mode: string(r.Mode),
		Children: rewriteDocumentsOf(r.Children), Base: rewriteDocumentOf(r.Base), Subtract: rewriteDocumentOf(r.Subtract),
	}
}

// TypeOf is the resource type that a document defines. The times of the document are not part of it.
func TypeOf(d TypeDocument) schema.Type {
	t := schema.Type{Name: d.Name, Description: d.Description, Deprecated: d.Deprecated, Actions: d.Actions}
	for _, c := range d.Conditions {
		definition := condition.Definition{Name: c.Name, Expression: c.Expression}
		for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
			definition.Parameters = append(definition.Parameters, condition.Parameter{Name: name, Type: c.Parameters[name]})
		}
		t.Conditions = append(t.Conditions, definition)
	}
	for _, r := range d.Relations {
		relation := schema.Relation{
			Name: r.Name, Rewrites: definedRewrites(r.Rewrites), Deprecated: r.Deprecated,
			Cardinality: schema.Cardinality(r.Cardinality), OnSecond: schema.OnSecond(r.OnSecond),
		}
		if relation.Cardinality == schema.Many {
			relation.Cardinality = "" // the default
		}
		if relation.Cardinality == schema.One && relation.OnSecond == schema.Refuse {
			relation.OnSecond = "" // the default
		}
		if r.Subjects != nil {
			relation.Subjects = make([]schema.SubjectType, 0, len(*r.Subjects))
			for _, text := range *r.Subjects {
				relation.Subjects = append(relation.Subjects, schema.ParseSubjectType(text))
			}
		}
		t.Relations = append(t.Relations, relation)
	}
	return t
}

func definedRewrites(in []RewriteDocument) []schema.Rewrite {
	var out []schema.Rewrite
	for _, r := range in {
		out = append(out, *definedRewrite(&r))
	}
	return out
}

func definedRewrite(r *RewriteDocument) *schema.Rewrite {
	if r == nil {
		return nil
	}
	if r.Mode == string(schema.Any) {
		r.Mode = "" // the default
	}
	return &schema.Rewrite{
		Kind: schema.Kind(r.Kind), Relation: r.Relation, Tupleset: r.Tupleset, Computed: r.Computed, Mode: schema.Mode(r.Mode),
		Children: definedRewrites(r.Children), Base: definedRewrite(r.Base), Subtract: definedRewrite(r.Subtract),
	}
}
