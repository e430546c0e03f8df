package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"stonetown/api/openapi"
)

// document has the parts of an OpenAPI document that the reference shows. References are not
// followed, but become links.
type document struct {
	Info struct {
		Description string `yaml:"description"`
	} `yaml:"info"`
	Tags []struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	} `yaml:"tags"`
	Paths      ordered[pathItem] `yaml:"paths"`
	Webhooks   ordered[pathItem] `yaml:"webhooks"`
	Components struct {
		Parameters map[string]parameter `yaml:"parameters"`
		Responses  map[string]response  `yaml:"responses"`
		Examples   map[string]example   `yaml:"examples"`
		Schemas    ordered[schema]      `yaml:"schemas"`
	} `yaml:"components"`
}

type operation struct {
	ID          string                 `yaml:"operationId"`
	Tags        []string               `yaml:"tags"`
	Summary     string                 `yaml:"summary"`
	Description string                 `yaml:"description"`
	Security    *[]map[string][]string `yaml:"security"` // nil: that of the document, a bearer token
	Permission  string                 `yaml:"x-permission"`
	Parameters  []parameter            `yaml:"parameters"`
	Body        struct {
		Required bool           `yaml:"required"`
		Content  ordered[media] `yaml:"content"`
	} `yaml:"requestBody"`
	Codes     map[string][]string `yaml:"x-error-codes"` // by status
	Responses ordered[response]   `yaml:"responses"`
}

type parameter struct {
	Ref         string    `yaml:"$ref"`
	Name        string    `yaml:"name"`
	In          string    `yaml:"in"`
	Required    bool      `yaml:"required"`
	Description string    `yaml:"description"`
	Schema      schema    `yaml:"schema"`
	Example     yaml.Node `yaml:"example"`
}

type response struct {
	Ref         string         `yaml:"$ref"`
	Description string         `yaml:"description"`
	Codes       []string       `yaml:"x-error-codes"`
	Content     ordered[media] `yaml:"content"`
}

type media struct {
	Schema   schema           `yaml:"schema"`
	Example  yaml.Node        `yaml:"example"`
	Examples ordered[example] `yaml:"examples"`
}

type example struct {
	Ref   string    `yaml:"$ref"`
	Value yaml.Node `yaml:"value"`
}

type schema struct {
	Ref         string          `yaml:"$ref"`
	Type        any             `yaml:"type"` // a text or a list
	Format      string          `yaml:"format"`
	Description string          `yaml:"description"`
	Enum        []any           `yaml:"enum"`
	Const       any             `yaml:"const"`
	Default     any             `yaml:"default"`
	Minimum     any             `yaml:"minimum"`
	Maximum     any             `yaml:"maximum"`
	MinLength   any             `yaml:"minLength"`
	MaxLength   any             `yaml:"maxLength"`
	MaxItems    any             `yaml:"maxItems"`
	Pattern     string          `yaml:"pattern"`
	Items       *schema         `yaml:"items"`
	Properties  ordered[schema] `yaml:"properties"`
	Required    []string        `yaml:"required"`
	AllOf       []schema        `yaml:"allOf"`
	AnyOf       []schema        `yaml:"anyOf"`
	OneOf       []schema        `yaml:"oneOf"`
}

// ordered is a mapping in the order of the document.
type ordered[T any] []named[T]

type named[T any] struct {
	Name  string
	Value T
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (o *ordered[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: not a mapping", n.Line)
	}
	for i := 0; i < len(n.Content); i += 2 {
		item := named[T]{Name: n.Content[i].Value}
		if err := n.Content[i+1].Decode(&item.Value); err != nil {
			return err
		}
		*o = append(*o, item)
	}
	return nil
}

// pathItem are the operations of a path by their methods.
type pathItem ordered[operation]

// UnmarshalYAML implements [yaml.Unmarshaler]. Parameters of the path are those of each operation.
func (p *pathItem) UnmarshalYAML(n *yaml.Node) error {
	var members ordered[yaml.Node]
	if err := n.Decode(&members); err != nil {
		return err
	}
	var common []parameter
	for _, m := range members {
		if m.Name == "parameters" {
			if err := m.Value.Decode(&common); err != nil {
				return err
			}
			continue
		}
		o := named[operation]{Name: m.Name}
		if err := m.Value.Decode(&o.Value); err != nil {
			return err
		}
		o.Value.Parameters = slices.Concat(common, o.Value.Parameters)
		*p = append(*p, o)
	}
	return nil
}

// read parses a document.
func read(text []byte) (d document, err error) {
	err = yaml.Unmarshal(text, &d)
	return d, err
}

// component returns the name of the component to which a reference leads.
func component(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// parameter returns a parameter, or that of a reference.
func (d *document) parameter(p parameter) parameter {
	if p.Ref != "" {
		return d.Components.Parameters[component(p.Ref)]
	}
	return p
}

// response returns a response, or that of a reference.
func (d *document) response(r response) response {
	if r.Ref != "" {
		return d.Components.Responses[component(r.Ref)]
	}
	return r
}

// example returns the first example of a body as JSON, or nothing.
func (d *document) example(m media) (string, error) {
	node := m.Example
	if node.IsZero() && len(m.Examples) > 0 {
		e := m.Examples[0].Value
		if e.Ref != "" {
			e = d.Components.Examples[component(e.Ref)]
		}
		node = e.Value
	}
	if node.IsZero() {
		return "", nil
	}
	text, err := yaml.Marshal(&node)
	if err == nil {
		text, err = openapi.Document{YAML: text}.JSON()
	}
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, "", "  ")
	return b.String(), err
}

// needs states the credentials that an operation requires.
func (o *operation) needs() string {
	if o.Permission != "" {
		return "Requires the permission `" + o.Permission + "`."
	}
	if o.Security == nil {
		return "Requires a bearer token."
	}
	var ways []string
	for _, way := range *o.Security {
		scopes, bearer := way["bearer"]
		switch {
		case len(way) == 0:
			return "Works without credentials."
		case bearer && len(scopes) > 0:
			ways = append(ways, "a bearer token with the scope `"+strings.Join(scopes, "` and `")+"`")
		case bearer:
			ways = append(ways, "a bearer token")
		default:
			for scheme := range way { // one
				ways = append(ways, "`"+scheme+"`")
			}
		}
	}
	if len(ways) == 0 {
		return "Works without credentials."
	}
	return "Requires " + strings.Join(ways, ", or ") + "."
}

// authorized reports whether an operation takes a bearer token.
func (o *operation) authorized() bool {
	return o.Security == nil || slices.ContainsFunc(*o.Security, func(way map[string][]string) bool { _, ok := way["bearer"]; return ok })
}
