package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// EventType describes a type of event.
type EventType struct {
	Name        string // such as user.created
	Description string // a sentence that states when the event happens
	Category    string // the part of the name before the dot
	// Schema is a JSON Schema (draft 2020-12) of the event's data. It refers to nothing outside
	// of itself.
	Schema json.RawMessage
}

// EventTypes returns the types of all events, in the order of the section webhooks of a document.
func EventTypes(document []byte) ([]EventType, error) {
	var doc struct {
		Webhooks   yaml.Node `yaml:"webhooks"`
		Components struct {
			Schemas map[string]yaml.Node `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	var types []EventType
	for i := 0; i < len(doc.Webhooks.Content); i += 2 {
		t, err := eventType(doc.Webhooks.Content[i].Value, doc.Webhooks.Content[i+1], doc.Components.Schemas)
		if err != nil {
			return nil, fmt.Errorf("webhook %s: %w", t.Name, err)
		}
		types = append(types, t)
	}
	return types, nil
}

// eventType returns the type of the event that a webhook delivers. The schema of the body is
// allOf: that of all events, and one with the data of this event.
func eventType(name string, webhook *yaml.Node, components map[string]yaml.Node) (t EventType, err error) {
	t.Name = name
	t.Category, _, _ = strings.Cut(name, ".")
	var w struct {
		Post struct {
			Summary string `yaml:"summary"`
			Body    struct {
				Content map[string]struct {
					Schema struct {
						AllOf []struct {
							Properties struct {
								Data yaml.Node `yaml:"data"`
							} `yaml:"properties"`
						} `yaml:"allOf"`
					} `yaml:"schema"`
				} `yaml:"content"`
			} `yaml:"requestBody"`
		} `yaml:"post"`
	}
	if err := webhook.Decode(&w); err != nil {
		return t, err
	}
	t.Description = w.Post.Summary
	parts := w.Post.Body.Content["application/json"].Schema.AllOf
	if len(parts) != 2 || parts[1].Properties.Data.IsZero() || t.Description == "" {
		return t, fmt.Errorf("needs a summary, and a schema of its data in the second part of allOf")
	}
	t.Schema, err = selfContained(&parts[1].Properties.Data, components)
	return t, err
}

const (
	componentRef  = "#/components/schemas/"
	definitionRef = "#/$defs/"
)

// selfContained returns a schema of the document as a JSON Schema with the components that it
// refers to, directly and by others, as its definitions.
func selfContained(schema *yaml.Node, components map[string]yaml.Node) (json.RawMessage, error) {
	root := mapping(scalar("$schema"), scalar("https://json-schema.org/draft/2020-12/schema"))
	definitions := mapping()
	var names []string // of components, by their first reference
	seen := map[string]bool{}
	found := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	root.Content = append(root.Content, asJSONSchema(schema, found).Content...)
	for i := 0; i < len(names); i++ { // names grows
		component, ok := components[names[i]]
		if !ok {
			return nil, fmt.Errorf("component %s does not exist", names[i])
		}
		definitions.Content = append(definitions.Content, scalar(names[i]), asJSONSchema(&component, found))
	}
	if len(names) > 0 {
		root.Content = append(root.Content, scalar("$defs"), definitions)
	}
	var b bytes.Buffer
	err := appendJSON(&b, root)
	return b.Bytes(), err
}

// asJSONSchema returns a copy of a schema of the document in which references to components
// are references to definitions, and example, which is OpenAPI's own, is examples. It calls
// found with the name of each component.
func asJSONSchema(n *yaml.Node, found func(name string)) *yaml.Node {
	changed := *n
	changed.Content = make([]*yaml.Node, 0, len(n.Content))
	if n.Kind != yaml.MappingNode {
		for _, item := range n.Content {
			changed.Content = append(changed.Content, asJSONSchema(item, found))
		}
		return &changed
	}
	for i := 0; i < len(n.Content); i += 2 {
		keyword, value := n.Content[i], n.Content[i+1]
		switch keyword.Value {
		case "$ref":
			name := strings.TrimPrefix(value.Value, componentRef)
			found(name)
			value = scalar(definitionRef + name)
		case "example":
			keyword = scalar("examples")
			value = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{value}}
		case "properties": // its keys are names and not keywords
			properties := mapping()
			for j := 0; j < len(value.Content); j += 2 {
				properties.Content = append(properties.Content, value.Content[j], asJSONSchema(value.Content[j+1], found))
			}
			value = properties
		case "const", "enum", "default", "required": // values, not schemas
		default:
			value = asJSONSchema(value, found)
		}
		changed.Content = append(changed.Content, keyword, value)
	}
	return &changed
}

func mapping(keysAndValues ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: keysAndValues}
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}
