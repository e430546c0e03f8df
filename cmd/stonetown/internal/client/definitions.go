package client

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

// ParseDefinitions parses resource types from YAML or JSON: one type, a list, an object with
// the only member types, which is a list, or several YAML documents of these. Members that the
// API does not have are errors, because the server would ignore them, and a misspelt
// restriction would have no effect.
func ParseDefinitions(text []byte) ([]Definition, error) {
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

func appendYAML(list *[]Definition, text []byte) error {
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if document == nil { // only comments
			continue
		}
		converted, err := json.Marshal(document)
		if err != nil {
			return errors.New("the YAML has a key that is not text, or a number that JSON does not have")
		}
		if err := appendDefinitions(list, converted); err != nil {
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
		var d definition
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

// definition is ResourceTypeInput of the API's document, and the members that reading a type
// adds to it.
type definition struct {
	Name        string                `json:"name"`
	Description string                `json:"description"`
	Deprecated  string                `json:"deprecated"`
	Relations   []relationDefinition  `json:"relations"`
	Actions     map[string]string     `json:"actions"`
	Conditions  []conditionDefinition `json:"conditions"`
	CreatedAt   string                `json:"created_at"`
	UpdatedAt   string                `json:"updated_at"`
}

type relationDefinition struct {
	Name        string    `json:"name"`
	Rewrites    []rewrite `json:"rewrites"`
	Subjects    []string  `json:"subjects"`
	Cardinality string    `json:"cardinality"`
	OnSecond    string    `json:"on_second"`
	Deprecated  string    `json:"deprecated"`
}

type rewrite struct {
	Kind     string    `json:"kind"`
	Relation string    `json:"relation"`
	Tupleset string    `json:"tupleset"`
	Computed string    `json:"computed"`
	Mode     string    `json:"mode"`
	Children []rewrite `json:"children"`
	Base     *rewrite  `json:"base"`
	Subtract *rewrite  `json:"subtract"`
}

type conditionDefinition struct {
	Name       string            `json:"name"`
	Expression string            `json:"expression"`
	Parameters map[string]string `json:"parameters"`
}
