package engine

import (
	"cmp"

	"stonetown/internal/document"
	"stonetown/schema"
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
