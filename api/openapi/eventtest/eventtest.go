// Package eventtest validates events in tests by the webhooks section of the OpenAPI document.
//
// A test passes it the events that the product has emitted, or the bodies that a receiver of
// webhooks got. An event that the document does not describe fails the test.
package eventtest

import (
	"bytes"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"stonetown/api/openapi"
)

// Data requires the data of an event of a type, as emitted, to be as its schema.
func Data(t testing.TB, eventType string, data []byte) {
	t.Helper()
	value, ok := validate(t, catalogue(), eventType, eventType, data)
	if members, _ := value.(map[string]any); ok && members["truncated"] != nil {
		t.Errorf("%s: the data is truncated", eventType)
	}
}

// Body requires the body of a request to a receiver to be as the webhook of its event_type.
func Body(t testing.TB, body []byte) {
	t.Helper()
	var name string
	if value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body)); err == nil {
		members, _ := value.(map[string]any)
		name, _ = members["event_type"].(string)
	}
	validate(t, bodies(), name, "openapi.json#/webhooks/"+name+"/post/requestBody/content/application~1json/schema", body)
}

// schemas are compiled when they are first used, because the document has many.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	known    map[string]bool // types of events
	compiled map[string]*jsonschema.Schema
}

// catalogue has the schemas of data, at the names of the types.
var catalogue = sync.OnceValue(func() *schemas {
	s := newSchemas()
	for _, e := range openapi.EventTypes() {
		s.add(e.Name, e.Schema)
	}
	return s
})

// bodies has the schemas of the document.
var bodies = sync.OnceValue(func() *schemas {
	s := newSchemas()
	text, err := openapi.DataPlane.JSON()
	if err != nil {
		panic(err)
	}
	s.add("openapi.json", text)
	return s
})

func newSchemas() *schemas {
	s := &schemas{compiler: jsonschema.NewCompiler(), known: map[string]bool{}, compiled: map[string]*jsonschema.Schema{}}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	for _, e := range openapi.EventTypes() {
		s.known[e.Name] = true
	}
	return s
}

func (s *schemas) add(at string, text []byte) {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = s.compiler.AddResource(at, schema)
	}
	if err != nil {
		panic(err)
	}
}

func (s *schemas) at(place string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiled[place] == nil {
		schema, err := s.compiler.Compile(place)
		if err != nil {
			return nil, err
		}
		s.compiled[place] = schema
	}
	return s.compiled[place], nil
}

// validate validates text by the schema at a place; ok is false if it is not valid.
func validate(t testing.TB, s *schemas, eventType, place string, text []byte) (value any, ok bool) {
	t.Helper()
	if !s.known[eventType] {
		t.Errorf("the document does not have the event type %q: %.1000s", eventType, text)
		return nil, false
	}
	schema, err := s.at(place)
	if err != nil {
		t.Fatal(err)
	}
	if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: the document does not allow %.1000s: %v", eventType, text, err)
	}
	return value, err == nil
}
