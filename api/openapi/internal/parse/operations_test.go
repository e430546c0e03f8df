package parse

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestOperationsThatCannotBeEnforced(t *testing.T) {
	for name, text := range map[string]string{
		"no id":       `{tags: [t]}`,
		"no tag":      `{operationId: x}`,
		"two tags":    `{operationId: x, tags: [t, u]}`,
		"two scopes":  `{operationId: x, tags: [t], security: [{bearer: [a, b]}]}`,
		"no scope":    `{operationId: x, tags: [t], security: [{bearer: []}]}`,
		"alternative": `{operationId: x, tags: [t], security: [{bearer: [a]}, {}]}`,
		"any token":   `{operationId: x, tags: [t], x-rate-limit: none, security: [{bearer: []}, {bearer: [a]}]}`,
		"no token":    `{operationId: x, tags: [t], x-rate-limit: none, security: [{bearer: [a]}, {bearer: []}, {}]}`,
		"any cookie":  `{operationId: x, tags: [t], x-rate-limit: none, security: [{bearer: [a]}, {bearer: []}, {cookie: []}]}`,
		"two bodies":  `{operationId: x, tags: [t], x-rate-limit: none, security: [], requestBody: {content: {a/b: {}, c/d: {}}}}`,
		"no limit":    `{operationId: x, tags: [t], security: []}`,
		"no family":   `{operationId: x, tags: [t], x-rate-limit: other, security: []}`,
		"no key":      `{operationId: x, tags: [t], x-rate-limit: admin, security: [{bearer: ["a:write"]}], responses: {"429": {}}}`,
		"no 429":      `{operationId: x, tags: [t], x-rate-limit: authz, security: []}`,
		"open stream": `{operationId: x, tags: [t], x-rate-limit: none, x-streaming: true, security: []}`,
		"a 429":       `{operationId: x, tags: [t], x-rate-limit: none, security: [], responses: {"429": {}}}`,
		"a key":       `{operationId: x, tags: [t], x-rate-limit: none, security: [{bearer: ["a:read"]}], parameters: [{$ref: "#/components/parameters/IdempotencyKey"}]}`,
	} {
		var o operation
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if op, err := o.web("GET", "/", false); err == nil {
			t.Errorf("%s: accepted as %+v", name, op)
		}
	}
}

// Where roles decide, operations have a token without scopes, and all that write take a key.
func TestOperationsByRole(t *testing.T) {
	for text, accepted := range map[string]bool{
		`{security: [{bearer: []}]}`:         true,
		`{security: []}`:                     true,
		`{security: [{bearer: ["a:read"]}]}`: false,
		`{security: [{bearer: []}], parameters: [{$ref: "#/components/parameters/IdempotencyKey"}]}`: false,
	} {
		o := operation{ID: "x", Tags: []string{"t"}, RateLimit: "none"}
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		op, err := o.web("GET", "/", true)
		if (err == nil) != accepted || accepted && op.AnyScope != (len(o.Security) > 0) {
			t.Errorf("%s: %v, %+v", text, err, op)
		}
	}
	o := operation{ID: "x", Tags: []string{"t"}, RateLimit: "none", Security: []map[string][]string{{"bearer": {}}}}
	if op, err := o.web("POST", "/", true); err == nil {
		t.Errorf("a write without a key was accepted as %+v", op)
	}
}
