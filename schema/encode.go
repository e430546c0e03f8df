package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stonetown/schema/condition"
)

// The stored form of the document. It is separate from the model so that renaming a Go
// field does not change stored data.
type (
	storedDocument struct {
		Types []storedType `json:"types"`
	}
	storedType struct {
		Name        string            `json:"name"`
		Description string            `json:"description,omitempty"`
		Deprecated  string            `json:"deprecated,omitempty"`
		Relations   []storedRelation  `json:"relations,omitempty"`
		Actions     map[string]string `json:"actions,omitempty"`
		Conditions  []storedCondition `json:"conditions,omitempty"`
		CreatedAt   time.Time         `json:"created_at"`
		UpdatedAt   time.Time         `json:"updated_at"`
	}
	storedCondition struct {
		Name       string            `json:"name"`
		Expression string            `json:"expression"`
		Parameters []storedParameter `json:"parameters,omitempty"`
	}
	storedParameter struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	storedRelation struct {
		Name     string          `json:"name"`
		Rewrites []storedRewrite `json:"rewrites,omitempty"`
		Subjects []string        `json:"subjects"` // null: open

		Cardinality Cardinality `json:"cardinality,omitempty"`
		OnSecond    OnSecond    `json:"on_second,omitempty"`
		Deprecated  string      `json:"deprecated,omitempty"`
	}
	storedRewrite struct {
		Kind     Kind            `json:"kind"`
		Relation string          `json:"relation,omitempty"`
		Tupleset string          `json:"tupleset,omitempty"`
		Computed string          `json:"computed,omitempty"`
		Children []storedRewrite `json:"children,omitempty"`
		Base     *storedRewrite  `json:"base,omitempty"`
		Subtract *storedRewrite  `json:"subtract,omitempty"`
	}
)

// storedTupleToUsersetAll is the stored kind of a TupleToUserset of mode [All]. It is a
// separate kind, so that a process of an earlier release refuses the document instead of
// evaluating all as any.
const storedTupleToUsersetAll Kind = "tuple_to_userset_all"

// storeName writes the name of a type or a relation with its stored name, if that is another one, as
// name=stored. A process of an earlier release refuses the document, because that is not a name;
// it would otherwise look for the tuples by the wrong name.
func storeName(name, stored string) string {
	if stored == "" {
		return name
	}
	return name + "=" + stored
}

func loadName(text string) (name, stored string) {
	name, stored, _ = strings.Cut(text, "=")
	return name, stored
}

// Encode writes the types as the document that [Decode] reads.
func Encode(types []Type) []byte {
	doc := storedDocument{Types: make([]storedType, 0, len(types))}
	for _, t := range types {
		st := storedType{
			Name: storeName(t.Name, t.Stored), Description: t.Description, Deprecated: t.Deprecated, Actions: t.Actions,
			CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(),
		}
		for _, d := range t.Conditions {
			sc := storedCondition{Name: d.Name, Expression: d.Expression}
			for _, p := range d.Parameters {
				sc.Parameters = append(sc.Parameters, storedParameter(p))
			}
			st.Conditions = append(st.Conditions, sc)
		}
		for _, r := range t.Relations {
			sr := storedRelation{
				Name: storeName(r.Name, r.Stored), Rewrites: storeRewrites(r.Rewrites),
				Cardinality: r.Cardinality, OnSecond: r.OnSecond, Deprecated: r.Deprecated,
			}
			if r.Subjects != nil {
				sr.Subjects = make([]string, 0, len(r.Subjects))
				for _, s := range r.Subjects {
					sr.Subjects = append(sr.Subjects, s.String())
				}
			}
			st.Relations = append(st.Relations, sr)
		}
		doc.Types = append(doc.Types, st)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic("schema: encoding a document of plain values failed: " + err.Error())
	}
	return b
}

// Decode reads a document. A nil document has no types.
func Decode(document []byte) ([]Type, error) {
	if document == nil {
		return nil, nil
	}
	var doc storedDocument
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("decode schema document: %w", err)
	}
	types := make([]Type, 0, len(doc.Types))
	for _, st := range doc.Types {
		t := Type{
			Description: st.Description, Deprecated: st.Deprecated, Actions: st.Actions,
			CreatedAt: st.CreatedAt, UpdatedAt: st.UpdatedAt,
		}
		t.Name, t.Stored = loadName(st.Name)
		for _, sc := range st.Conditions {
			d := condition.Definition{Name: sc.Name, Expression: sc.Expression}
			for _, p := range sc.Parameters {
				d.Parameters = append(d.Parameters, condition.Parameter(p))
			}
			t.Conditions = append(t.Conditions, d)
		}
		for _, sr := range st.Relations {
			r := Relation{
				Rewrites:    loadRewrites(sr.Rewrites),
				Cardinality: sr.Cardinality, OnSecond: sr.OnSecond, Deprecated: sr.Deprecated,
			}
			r.Name, r.Stored = loadName(sr.Name)
			if sr.Subjects != nil {
				r.Subjects = make([]SubjectType, 0, len(sr.Subjects))
				for _, text := range sr.Subjects {
					r.Subjects = append(r.Subjects, ParseSubjectType(text))
				}
			}
			t.Relations = append(t.Relations, r)
		}
		types = append(types, t)
	}
	return types, nil
}

func storeRewrites(rs []Rewrite) []storedRewrite {
	var out []storedRewrite
	for _, r := range rs {
		out = append(out, *storeRewrite(&r))
	}
	return out
}

func storeRewrite(r *Rewrite) *storedRewrite {
	if r == nil {
		return nil
	}
	kind := r.Kind
	if r.Mode == All {
		kind = storedTupleToUsersetAll
	}
	return &storedRewrite{
		Kind: kind, Relation: r.Relation, Tupleset: r.Tupleset, Computed: r.Computed,
		Children: storeRewrites(r.Children), Base: storeRewrite(r.Base), Subtract: storeRewrite(r.Subtract),
	}
}

func loadRewrites(rs []storedRewrite) []Rewrite {
	var out []Rewrite
	for _, r := range rs {
		out = append(out, *loadRewrite(&r))
	}
	return out
}

func loadRewrite(r *storedRewrite) *Rewrite {
	if r == nil {
		return nil
	}
	kind, mode := r.Kind, Mode("")
	if kind == storedTupleToUsersetAll {
		kind, mode = TupleToUserset, All
	}
	return &Rewrite{
		Kind: kind, Relation: r.Relation, Tupleset: r.Tupleset, Computed: r.Computed, Mode: mode,
		Children: loadRewrites(r.Children), Base: loadRewrite(r.Base), Subtract: loadRewrite(r.Subtract),
	}
}

// String prints type, type#relation or type:*.
func (s SubjectType) String() string {
	switch {
	case s.Wildcard:
		return s.Type + ":*"
	case s.Relation != "":
		return s.Type + "#" + s.Relation
	default:
		return s.Type
	}
}

// ParseSubjectType reads the text form. Invalid text becomes the Type, which validation
// then refuses. A group as a subject represents its members.
func ParseSubjectType(text string) SubjectType {
	if typ, ok := strings.CutSuffix(text, ":*"); ok {
		return SubjectType{Type: typ, Wildcard: true}
	}
	typ, relation, _ := strings.Cut(text, "#")
	if strings.HasSuffix(text, "#") {
		typ = text
	}
	if typ == GroupType && relation == "" {
		relation = GroupMember
	}
	return SubjectType{Type: typ, Relation: relation}
}
