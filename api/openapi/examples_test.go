package openapi

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestExamples validates each example of the document by the schema beside it.
func TestExamples(t *testing.T) {
	text, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	e := examples{t: t, doc: doc, compiler: compiler}
	e.walk("", doc)
	if e.count < 250 {
		t.Errorf("only %d examples", e.count)
	}
}

type examples struct {
	t        *testing.T
	doc      any
	compiler *jsonschema.Compiler
	count    int
}

// walk finds objects with a schema and examples: media types, parameters and headers. path is a
// JSON pointer.
func (e *examples) walk(path string, node any) {
	switch node := node.(type) {
	case []any:
		for i, item := range node {
			e.walk(fmt.Sprintf("%s/%d", path, i), item)
		}
	case map[string]any:
		if _, ok := node["schema"].(map[string]any); ok {
			e.judge(path, node)
		}
		for _, name := range slices.Sorted(maps.Keys(node)) {
			if name != "example" && name != "examples" {
				e.walk(path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), node[name])
			}
		}
	}
}

func (e *examples) judge(path string, node map[string]any) {
	values := map[string]any{}
	if value, ok := node["example"]; ok {
		values["example"] = value
	}
	named, _ := node["examples"].(map[string]any)
	for name, example := range named {
		values[name] = e.resolve(example)["value"]
	}
	if len(values) == 0 {
		return
	}
	schema, err := e.compiler.Compile("openapi.json#" + path + "/schema")
	if err != nil {
		e.t.Errorf("%s: %v", path, err)
		return
	}
	for name, value := range values {
		e.count++
		if err := schema.Validate(value); err != nil {
			e.t.Errorf("%s, %s: %v", path, name, err)
		}
	}
}

// resolve follows a reference.
func (e *examples) resolve(node any) map[string]any {
	object, _ := node.(map[string]any)
	ref, ok := object["$ref"].(string)
	if !ok {
		return object
	}
	at := e.doc
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		at = at.(map[string]any)[name]
	}
	return e.resolve(at)
}
