package public

import (
	"stonetown/internal/document"
	"stonetown/schema"
)

// ResourceType is a resource type.
type ResourceType struct {
	Actions     map[string]string     `json:"actions"`
	Conditions  []ConditionDefinition `json:"conditions"`
	CreatedAt   document.Timestamp    `json:"created_at"`
	Description string                `json:"description"`
	Name        string                `json:"name"`
	Relations   []RelationDefinition  `json:"relations"`
	UpdatedAt   document.Timestamp    `json:"updated_at"`
}

// RelationDefinition is a relation of a resource type.
type RelationDefinition struct {
	Name     string    `json:"name"`
	Rewrites []Rewrite `json:"rewrites"`
	// Subjects are what relations may name; absent allows much, and empty nothing.
	Subjects *[]string `json:"subjects,omitzero"`
}

// ConditionDefinition is a condition of a resource type.
type ConditionDefinition struct {
	Expression string            `json:"expression"`
	Name       string            `json:"name"`
	Parameters map[string]string `json:"parameters,omitempty"` // their types
}

// Rewrite is a userset rewrite. Which members it has depends on its kind.
type Rewrite struct {
	Kind     string    `json:"kind"`
	Relation string    `json:"relation,omitempty"`
	Tupleset string    `json:"tupleset,omitempty"`
	Computed string    `json:"computed,omitempty"`
	Mode     string    `json:"mode,omitempty"`
	Children []Rewrite `json:"children,omitempty"`
	Base     *Rewrite  `json:"base,omitzero"`
	Subtract *Rewrite  `json:"subtract,omitzero"`
}

// TypeOf represents a resource type.
func TypeOf(t schema.Type) ResourceType {
	return ResourceType{
		Name: t.Name, Description: t.Description, Actions: t.Actions, Relations: RelationsOf(t), Conditions: ConditionsOf(t),
		CreatedAt: document.Timestamp(t.CreatedAt), UpdatedAt: document.Timestamp(t.UpdatedAt),
	}
}

// RelationsOf represents the relations of a resource type.
func RelationsOf(t schema.Type) (all []RelationDefinition) {
	for _, r := range t.Relations {
		all = append(all, RelationDefinition{r.Name, rewritesOf(r.Rewrites), subjectsOf(r)})
	}
	return all
}

// ConditionsOf represents the conditions of a resource type.
func ConditionsOf(t schema.Type) (all []ConditionDefinition) {
	for _, d := range t.Conditions {
		c := ConditionDefinition{Name: d.Name, Expression: d.Expression, Parameters: map[string]string{}}
		for _, p := range d.Parameters {
			c.Parameters[p.Name] = p.Type
		}
		all = append(all, c)
	}
	return all
}

func subjectsOf(r schema.Relation) *[]string {
	if r.Subjects == nil {
		return nil
	}
	subjects := make([]string, 0, len(r.Subjects))
	for _, s := range r.Subjects {
		subjects = append(subjects, s.String())
	}
	return &subjects
}

func rewritesOf(in []schema.Rewrite) (all []Rewrite) {
	for _, r := range in {
		all = append(all, *rewriteOf(&r))
	}
	return all
}

func rewriteOf(r *schema.Rewrite) *Rewrite {
	if r == nil {
		return nil
	}
	return &Rewrite{
		Kind: string(r.Kind), Relation: r.Relation, Tupleset: r.Tupleset, Computed: r.Computed, Mode: string(r.Mode),
		Children: rewritesOf(r.Children), Base: rewriteOf(r.Base), Subtract: rewriteOf(r.Subtract),
	}
}
