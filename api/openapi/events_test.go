package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"stonetown/internal/eventlog"
)

// webhook is a webhook of the document, with what all of them have in common.
type webhook struct {
	Post struct {
		Parameters []struct {
			Ref string `yaml:"$ref"`
		} `yaml:"parameters"`
		Body struct {
			Content map[string]struct {
				Example map[string]any `yaml:"example"`
			} `yaml:"content"`
		} `yaml:"requestBody"`
		Responses map[string]any `yaml:"responses"`
	} `yaml:"post"`
}

// TestEventTypes compares the catalogue with the list of types, and each schema with the
// example of its webhook.
func TestEventTypes(t *testing.T) {
	var doc struct {
		Webhooks map[string]webhook `yaml:"webhooks"`
	}
	if err := yaml.Unmarshal(DataPlane.YAML, &doc); err != nil {
		t.Fatal(err)
	}
	var names []eventlog.Type
	common := doc.Webhooks[string(eventlog.TestPing)].Post
	if len(common.Parameters) != 9 || len(common.Responses) != 1 {
		t.Fatalf("%s has %d headers and %d responses", eventlog.TestPing, len(common.Parameters), len(common.Responses))
	}
	for _, e := range EventTypes() {
		names = append(names, eventlog.Type(e.Name))
		if e.Category != eventlog.Type(e.Name).Category() || !strings.HasSuffix(e.Description, ".") {
			t.Errorf("%s: category %q, description %q", e.Name, e.Category, e.Description)
		}
		w := doc.Webhooks[e.Name].Post
		if fmt.Sprint(w.Parameters, w.Responses) != fmt.Sprint(common.Parameters, common.Responses) {
			t.Errorf("%s: other headers or responses than %s", e.Name, eventlog.TestPing)
		}
		example := w.Body.Content["application/json"].Example
		if example["event_type"] != e.Name {
			t.Errorf("%s: the example is one of %v", e.Name, example["event_type"])
		}
		text, err := json.Marshal(example["data"])
		if err != nil {
			t.Fatal(err)
		}
		t.Run(e.Name, func(t *testing.T) { testSchema(t, e.Schema, text) })
	}
	if !slices.Equal(names, eventlog.Types()) {
		t.Errorf("the document has %v\nthe list is %v", names, eventlog.Types())
	}
}

// testSchema requires that a schema, alone, accepts an example, and refuses it without one of its
// members and with a value of another type.
func testSchema(t *testing.T, text, example []byte) {
	schema := compile(t, text)
	root := decode(t, example).(map[string]any)
	if err := schema.Validate(root); err != nil {
		t.Fatalf("the example is refused: %v", err)
	}
	if err := schema.Validate(decode(t, []byte(`{"truncated": true}`))); err != nil {
		t.Errorf("truncated data is refused: %v", err)
	}
	for _, wrong := range []string{`null`, `[]`, `{}`, `{"truncated": false}`} {
		if schema.Validate(decode(t, []byte(wrong))) == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
	optional := []string{"subject_jti", "replaced", "relations_deleted"}
	for name, value := range maps.Clone(root) {
		delete(root, name)
		if required := schema.Validate(root) != nil; required == slices.Contains(optional, name) {
			t.Errorf("%s is required: %t", name, required)
		}
		root[name] = value
	}
	free := []string{"attributes", "context", "jwks"}
	tested := 0
	var visit func(path string, value any, replace func(any))
	visit = func(path string, value any, replace func(any)) {
		replace(1.5) // a value of no member
		if tested++; schema.Validate(root) == nil {
			t.Errorf("%s can be 1.5", path)
		}
		replace(value)
		last := path[strings.LastIndex(path, "/")+1:]
		switch value := value.(type) {
		case map[string]any:
			if slices.Contains(free, last) {
				return
			}
			for name, inner := range value {
				visit(path+"/"+name, inner, func(v any) { value[name] = v })
			}
		case []any:
			if strings.HasPrefix(path, "/changes/") && !slices.Contains([]string{"state", "disabled_reason", "email"}, last) {
				return // of any type
			}
			for i, inner := range value {
				visit(fmt.Sprintf("%s/%d", path, i), inner, func(v any) { value[i] = v })
			}
		}
	}
	for name, value := range root {
		visit("/"+name, value, func(v any) { root[name] = v })
	}
	if tested == 0 {
		t.Error("no member was replaced")
	}
}

// compile compiles a schema that may refer to nothing else.
func compile(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	if err := compiler.AddResource("schema.json", decode(t, text)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if schema.DraftVersion != 2020 {
		t.Errorf("the schema is one of draft %d", schema.DraftVersion)
	}
	return schema
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
