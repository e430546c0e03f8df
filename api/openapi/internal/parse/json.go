// Package parse reads OpenAPI documents. It knows nothing that is generated from one, so that the
// generator, package derive, can use it.
package parse

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// JSON returns the document as JSON, with its members in the original order.
func JSON(document []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := appendJSON(&b, &root); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// appendJSON writes a node. Maps of Go would lose the order of members.
func appendJSON(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return appendJSON(b, n.Content[0])
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			name, err := json.Marshal(n.Content[i].Value)
			if err != nil {
				return err
			}
			b.Write(name)
			b.WriteByte(':')
			if err := appendJSON(b, n.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := appendJSON(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		var v any
		if n.Tag == "!!timestamp" { // YAML recognizes dates, JSON does not
			v = n.Value
		} else if err := n.Decode(&v); err != nil {
			return err
		}
		text, err := json.Marshal(v)
		b.Write(text)
		return err
	}
	return fmt.Errorf("line %d: aliases are not supported", n.Line)
}
