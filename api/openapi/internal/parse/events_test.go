package parse

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestEventTypesThatCannotBeDescribed(t *testing.T) {
	components := map[string]yaml.Node{}
	for name, text := range map[string]string{
		"no summary":   `{post: {requestBody: {content: {application/json: {schema: {allOf: [{}, {properties: {data: {type: object}}}]}}}}}}`,
		"no data":      `{post: {summary: s, requestBody: {content: {application/json: {schema: {allOf: [{}, {}]}}}}}}`,
		"no body":      `{post: {summary: s}}`,
		"no component": `{post: {summary: s, requestBody: {content: {application/json: {schema: {allOf: [{}, {properties: {data: {$ref: "#/components/schemas/None"}}}]}}}}}}`,
		"no schema":    `{post: {summary: s, requestBody: {content: {application/json: {schema: {allOf: [{}, {properties: {data: {$ref: "#/components/parameters/None"}}}]}}}}}}`,
	} {
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(text), &node); err != nil {
			t.Fatal(err)
		}
		if e, err := eventType("a.b", node.Content[0], components); err == nil {
			t.Errorf("%s: accepted as %s", name, e.Schema)
		}
	}
}
