package definitions

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Text returns types as YAML that [Parse] reads: a list, in which what is short has one line. It is
// empty if there are none.
func Text(types []Type) (string, error) {
	if len(types) == 0 {
		return "", nil
	}
	text, err := json.Marshal(types)
	if err != nil {
		return "", err
	}
	list, err := nodeOf(text)
	if err != nil {
		return "", err
	}
	for _, one := range list.Content {
		for _, member := range one.Content {
			compact(member)
		}
	}
	var b strings.Builder
	err = encode(&b, list)
	return b.String(), err
}

// WriteYAML writes JSON as YAML and keeps the order of members.
func WriteYAML(w io.Writer, text json.RawMessage) error {
	node, err := nodeOf(text)
	if err != nil {
		return err
	}
	return encode(w, node)
}

func encode(w io.Writer, node *yaml.Node) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return err
	}
	return encoder.Close()
}

func nodeOf(text []byte) (*yaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return next(decoder)
}

// next reads the next value.
func next(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	node := new(yaml.Node)
	if number, ok := token.(json.Number); ok { // its digits stay unchanged
		node.Kind, node.Value = yaml.ScalarNode, number.String()
		return node, nil
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return node, node.Encode(token)
	}
	node.Kind = yaml.SequenceNode
	if delim == '{' {
		node.Kind = yaml.MappingNode
	}
	for decoder.More() { // the names of members are values of their own
		child, err := next(decoder)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, child)
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle
	}
	_, err = decoder.Token() // the closing bracket
	return node, err
}

// maxLine is the length of the values that are printed in one line.
const maxLine = 80

// compact puts lists of words, and objects of words and such lists, in one line. It returns the
// length of the line; 0: there are several.
func compact(node *yaml.Node) int {
	if node.Kind == yaml.ScalarNode {
		if strings.Contains(node.Value, "\n") {
			return 0
		}
		return len(node.Value) + 2
	}
	length, one := 2, true
	for _, child := range node.Content {
		n := compact(child)
		length += n
		one = one && n > 0 && (node.Kind == yaml.MappingNode || child.Kind == yaml.ScalarNode)
	}
	if !one || length > maxLine {
		return 0
	}
	node.Style = yaml.FlowStyle
	return length
}
