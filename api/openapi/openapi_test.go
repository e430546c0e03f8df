package openapi

import (
	"encoding/json"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestJSONSaysTheSame(t *testing.T) {
	text, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON, fromYAML any
	if err := json.Unmarshal(text, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(YAML(), &fromYAML); err != nil {
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

func TestOperationsThatCannotBeEnforced(t *testing.T) {
	for name, text := range map[string]string{
		"no id":       `{tags: [t]}`,
		"no tag":      `{operationId: x}`,
		"two tags":    `{operationId: x, tags: [t, u]}`,
		"two scopes":  `{operationId: x, tags: [t], security: [{bearer: [a, b]}]}`,
		"no scope":    `{operationId: x, tags: [t], security: [{bearer: []}]}`,
		"alternative": `{operationId: x, tags: [t], security: [{bearer: [a]}, {}]}`,
		"two bodies":  `{operationId: x, tags: [t], security: [], requestBody: {content: {a/b: {}, c/d: {}}}}`,
	} {
		var o operation
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if op, err := o.web("GET", "/"); err == nil {
			t.Errorf("%s: accepted as %+v", name, op)
		}
	}
}
