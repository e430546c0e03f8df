// Package definitions has resource types as people write them in files and forms: in YAML, or in
// JSON, which the API takes.
package definitions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// Definition is a resource type to apply, in the form of the API.
type Definition struct {
	Name string
	JSON json.RawMessage
}

// Parse parses resource types from YAML or JSON: one type, a list, an object with
// the only member types, which is a list, or several YAML documents of these. Members that the
// API does not have are errors, because the server would ignore them, and a misspelt
// restriction would have no effect.
func Parse(text []byte) ([]Definition, error) {
	var list []Definition
	if start := bytes.TrimLeft(text, " \t\r\n"); len(start) > 0 && (start[0] == '{' || start[0] == '[') && json.Valid(text) {
		// YAML includes most, but not all, of JSON.
		if err := appendDefinitions(&list, text); err != nil {
			return nil, err
		}
	} else if err := appendYAML(&list, text); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("it holds no resource type")
	}
	return list, nil
}

// maxNodes bounds the values of a YAML document. Aliases could make many of a few.
const maxNodes = 500_000

// expanded counts the values below a node, with those that aliases repeat. sizes are those of the
// anchors so far, -1 if they are not complete. It fails for an alias within its own anchor.
func expanded(node *yaml.Node, sizes map[*yaml.Node]int) (size int, ok bool) {
	if node.Kind == yaml.AliasNode {
		size, ok = sizes[node.Alias]
		return size, ok && size >= 0
	}
	if node.Anchor != "" {
		sizes[node] = -1
	}
	size = 1
	for _, child := range node.Content {
		more, ok := expanded(child, sizes)
		if size += more; !ok || size > maxNodes {
			return size, ok
		}
	}
	if node.Anchor != "" {
		sizes[node] = size
	}
	return size, true
}

func appendYAML(list *[]Definition, text []byte) error {
	return eachDocument(text, func(document json.RawMessage) error { return appendDefinitions(list, jsontext.Value(document)) })
}

// JSON returns a document that is written in YAML or JSON as JSON.
func JSON(text []byte) (document json.RawMessage, err error) {
	if json.Valid(text) {
		return text, nil
	}
	err = eachDocument(text, func(d json.RawMessage) error {
		if document != nil {
			return errors.New("the YAML has more than one document")
		}
		document = d
		return nil
	})
	if err == nil && document == nil {
		err = errors.New("it is empty")
	}
	return document, err
}

// eachDocument calls fn with each document of a YAML text that is not empty, as JSON.
func eachDocument(text []byte, fn func(json.RawMessage) error) error {
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if size, ok := expanded(&node, map[*yaml.Node]int{}); !ok || size > maxNodes {
			return fmt.Errorf("the YAML has an alias of itself, or more than %d values with its aliases", maxNodes)
		}
		var document any
		if err := node.Decode(&document); err != nil {
			return err
		}
		if document == nil { // only comments
			continue
		}
		converted, err := json.Marshal(document)
		if err != nil {
			return errors.New("the YAML has a key that is not text, or a number that JSON does not have")
		}
		if err := fn(converted); err != nil {
			return err
		}
	}
}

func appendDefinitions(list *[]Definition, text jsontext.Value) error {
	var several struct {
		Types []jsontext.Value `json:"types"`
	}
	var err error
	switch {
	case text.Kind() == '[':
		err = strict.Unmarshal(text, &several.Types)
	case text.Kind() == '{' && hasTypes(text):
		err = strict.Unmarshal(text, &several, strict.RejectUnknownMembers(true))
	default:
		several.Types = []jsontext.Value{text}
	}
	if err != nil {
		return readable(err)
	}
	for _, one := range several.Types {
		var d Type
		if err := strict.Unmarshal(one, &d, strict.RejectUnknownMembers(true)); err != nil {
			return fmt.Errorf("resource type %d: %w", len(*list)+1, readable(err))
		}
		if d.Name == "" {
			return fmt.Errorf("resource type %d has no name", len(*list)+1)
		}
		*list = append(*list, Definition{d.Name, json.RawMessage(one)})
	}
	return nil
}

// hasTypes distinguishes an object with types from a type.
func hasTypes(text jsontext.Value) bool {
	var members map[string]jsontext.Value
	if strict.Unmarshal(text, &members) != nil {
		return false
	}
	_, ok := members["types"]
	return ok
}

// readable states the place and the problem without the Go types of the decoder.
func readable(err error) error {
	semantic, ok := errors.AsType[*strict.SemanticError](err)
	if !ok {
		return err
	}
	place := string(semantic.JSONPointer)
	if errors.Is(semantic.Err, strict.ErrUnknownName) {
		return fmt.Errorf("%s is not a member of a resource type", place)
	}
	return fmt.Errorf("%s has the wrong type", cmp.Or(place, "it"))
}

// Type is a resource type in the form of the API, and the members that reading it adds.
type Type struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Deprecated  string            `json:"deprecated,omitempty"`
	Relations   []Relation        `json:"relations,omitempty"`
	Actions     map[string]string `json:"actions,omitempty"`
	Conditions  []Condition       `json:"conditions,omitempty"`
	CreatedAt   string            `json:"created_at,omitempty"`
	UpdatedAt   string            `json:"updated_at,omitempty"`
}

// Relation is a relation of a type.
type Relation struct {
	Name        string    `json:"name"`
	Subjects    []string  `json:"subjects,omitzero"` // nil: of any type; empty: of none
	Cardinality string    `json:"cardinality,omitempty"`
	OnSecond    string    `json:"on_second,omitempty"`
	Deprecated  string    `json:"deprecated,omitempty"`
	Rewrites    []Rewrite `json:"rewrites,omitempty"`
}

// Rewrite is a rule of how a relation is derived.
type Rewrite struct {
	Kind     string    `json:"kind"`
	Relation string    `json:"relation,omitempty"`
	Tupleset string    `json:"tupleset,omitempty"`
	Computed string    `json:"computed,omitempty"`
	Mode     string    `json:"mode,omitempty"`
	Children []Rewrite `json:"children,omitempty"`
	Base     *Rewrite  `json:"base,omitempty"`
	Subtract *Rewrite  `json:"subtract,omitempty"`
}

// Condition is a condition that relations of a type can have.
type Condition struct {
	Name       string            `json:"name"`
	Expression string            `json:"expression"`
	Parameters map[string]string `json:"parameters,omitempty"`
}
