// Package documenttest tests OpenAPI documents.
package documenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"stonetown/api/openapi"
	"stonetown/api/openapi/internal/parse"
)

// Test tests the forms of a document, and that it has at least least examples, all of them valid.
func Test(t *testing.T, d openapi.Document, least int) {
	t.Run("JSON", func(t *testing.T) { testJSON(t, d) })
	t.Run("operations", func(t *testing.T) { testOperations(t, d) })
	t.Run("collection", func(t *testing.T) { testCollection(t, d) })
	t.Run("examples", func(t *testing.T) { testExamples(t, d, least) })
}

// testJSON compares the JSON form with the original one.
func testJSON(t *testing.T, d openapi.Document) {
	text, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON, fromYAML any
	if err := json.Unmarshal(text, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(d.YAML, &fromYAML); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(fromYAML)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &fromYAML); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fromJSON, fromYAML) {
		t.Error("the JSON form differs from the document")
	}
}

// testOperations requires that the operations are those of the document.
func testOperations(t *testing.T, d openapi.Document) {
	operations, err := parse.Operations(d.YAML)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Operations, operations) {
		t.Error("operations.gen.go differs from the document: run `go generate ./api/...`")
	}
}

// testCollection requires that the collection has exactly the operations of the document, each
// with the example of its body.
func testCollection(t *testing.T, d openapi.Document) {
	type item struct {
		Item    []item
		Request *struct {
			Method string
			URL    struct{ Path []string }
			Body   struct{ Raw string }
		}
	}
	var c item
	if err := json.Unmarshal(d.Collection, &c); err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`^:(.*)$`)
	found := map[string]string{}
	var walk func(item)
	walk = func(i item) {
		if i.Request != nil {
			path := ""
			for _, segment := range i.Request.URL.Path {
				path += "/" + variable.ReplaceAllString(segment, "{$1}")
			}
			found[i.Request.Method+" "+path] = i.Request.Body.Raw
		}
		for _, child := range i.Item {
			walk(child)
		}
	}
	walk(c)
	for _, op := range d.Operations {
		key := op.Method + " " + op.Path
		body, ok := found[key]
		switch {
		case !ok:
			t.Errorf("%s is missing: run `make collection`", key)
		case op.MediaType == "application/json" && !json.Valid([]byte(body)):
			t.Errorf("%s has the body %q", key, body)
		}
		delete(found, key)
	}
	for key := range found {
		t.Errorf("%s is not in the document: run `make collection`", key)
	}
}

// testExamples validates each example of the document by the schema beside it.
func testExamples(t *testing.T, d openapi.Document, least int) {
	text, err := d.JSON()
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
	if e.count < least {
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
