package openfga

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// document is a YAML file. It is read from its nodes, because they have their lines.
type document struct {
	name  string
	lines []string
	root  *yaml.Node
	// budget is the number of nodes that can still be visited: with aliases few nodes can stand
	// for very many.
	budget int
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line ([0-9]+): (.*)`)

func openYAML(name, text string) (*document, error) {
	at := importer.Place{File: name}
	if len(text) > maxYAML {
		return nil, source.Errorf(at, "longer than %d bytes; long lists of tuples can stand in .csv or .jsonl files", maxYAML)
	}
	var root yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil, source.Errorf(at, "empty")
	} else if err != nil {
		return nil, misread(at, err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		at.Line = second.Line
		return nil, source.Errorf(at, "a second document begins here, only one can be read")
	} else if !errors.Is(err, io.EOF) {
		return nil, misread(at, err)
	}
	if len(root.Content) == 0 {
		return nil, source.Errorf(at, "empty")
	}
	d := &document{name: name, lines: strings.Split(text, "\n"), root: root.Content[0]}
	d.budget = 1_000_000 + 4*len(text)
	return d, nil
}

func misread(at importer.Place, err error) error {
	if parts := yamlLine.FindStringSubmatch(err.Error()); parts != nil {
		at.Line, _ = strconv.Atoi(parts[1])
		return source.Errorf(at, "%s", parts[2])
	}
	return source.Errorf(at, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
}

func (d *document) at(n *yaml.Node) importer.Place { return importer.Place{File: d.name, Line: n.Line} }

func (d *document) isList() bool { return d.root.Kind == yaml.SequenceNode }

// see returns the node, or the target of an alias.
func (d *document) see(n *yaml.Node) (*yaml.Node, error) {
	if d.budget--; d.budget < 0 {
		return nil, source.Errorf(d.at(n), "aliases make the file too large")
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// scalar returns the text of a node of any type, because ids can look like numbers.
func (d *document) scalar(n *yaml.Node) (string, error) {
	n, err := d.see(n)
	if err != nil {
		return "", err
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		return "", source.Errorf(d.at(n), "must be a text")
	}
	return n.Value, nil
}

func (d *document) boolean(n *yaml.Node) (bool, error) {
	n, err := d.see(n)
	if err != nil {
		return false, err
	}
	var b bool
	if n.Kind != yaml.ScalarNode || isNull(n) || n.Decode(&b) != nil {
		return false, source.Errorf(d.at(n), "must be true or false")
	}
	return b, nil
}

// items returns the elements of a list.
func (d *document) items(n *yaml.Node) ([]*yaml.Node, error) {
	n, err := d.see(n)
	switch {
	case err != nil:
		return nil, err
	case isNull(n):
		return nil, nil
	case n.Kind != yaml.SequenceNode:
		return nil, source.Errorf(d.at(n), "must be a list")
	}
	return n.Content, nil
}

// texts returns the elements of a list of texts.
func (d *document) texts(n *yaml.Node) ([]located, error) {
	items, err := d.items(n)
	if err != nil {
		return nil, err
	}
	texts := make([]located, len(items))
	for i, item := range items {
		text, err := d.scalar(item)
		if err != nil {
			return nil, err
		}
		texts[i] = located{text, d.at(item)}
	}
	return texts, nil
}

type located struct {
	text string
	at   importer.Place
}

type pair struct {
	key   string
	at    importer.Place
	value *yaml.Node
}

// pairs returns the members of a mapping, and refuses duplicates.
func (d *document) pairs(n *yaml.Node) ([]pair, error) {
	n, err := d.see(n)
	switch {
	case err != nil:
		return nil, err
	case isNull(n):
		return nil, nil
	case n.Kind != yaml.MappingNode:
		return nil, source.Errorf(d.at(n), "must be a mapping")
	}
	seen := map[string]bool{}
	pairs := make([]pair, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, at := n.Content[i], d.at(n.Content[i])
		if key.ShortTag() == "!!merge" {
			return nil, source.Errorf(at, "merge keys (<<) are not supported, write the members out")
		}
		name, err := d.scalar(key)
		if err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, source.Errorf(at, "%s stands twice", source.Quoted(name))
		}
		seen[name] = true
		pairs = append(pairs, pair{name, at, n.Content[i+1]})
	}
	return pairs, nil
}

// members returns the members of a mapping with certain names. unknown handles others.
func (d *document) members(n *yaml.Node, unknown func(pair) error, known ...string) (map[string]*yaml.Node, error) {
	pairs, err := d.pairs(n)
	if err != nil {
		return nil, err
	}
	members := map[string]*yaml.Node{}
	for _, p := range pairs {
		found := false
		for _, name := range known {
			found = found || name == p.key
		}
		value, err := d.see(p.value)
		if err != nil {
			return nil, err
		}
		switch {
		case !found:
			if err := unknown(p); err != nil {
				return nil, err
			}
		case !isNull(value):
			members[p.key] = p.value
		}
	}
	return members, nil
}

// maxNesting is the maximum depth of the values of a context. With aliases it could be
// infinite.
const maxNesting = 32

// object returns a mapping as decoded JSON, with numbers as [json.Number].
func (d *document) object(n *yaml.Node) (map[string]any, error) {
	v, err := d.value(n, 0)
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, source.Errorf(d.at(n), "must be a mapping")
	}
	return object, nil
}

func (d *document) value(n *yaml.Node, depth int) (any, error) {
	n, err := d.see(n)
	if err != nil {
		return nil, err
	}
	if depth > maxNesting {
		return nil, source.Errorf(d.at(n), "nested more than %d deep", maxNesting)
	}
	switch n.Kind {
	case yaml.ScalarNode:
		v, err := scalarValue(n)
		if err != nil {
			return nil, source.Errorf(d.at(n), "%v", err)
		}
		return v, nil
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			if list[i], err = d.value(item, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	pairs, err := d.pairs(n)
	if err != nil {
		return nil, err
	}
	object := make(map[string]any, len(pairs))
	for _, p := range pairs {
		if object[p.key], err = d.value(p.value, depth+1); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func scalarValue(n *yaml.Node) (any, error) {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		err := n.Decode(&b)
		return b, err
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return json.Number(strconv.FormatInt(i, 10)), nil
		}
		var u uint64
		if n.Decode(&u) == nil {
			return json.Number(strconv.FormatUint(u, 10)), nil
		}
		return nil, fmt.Errorf("%s is not a number of 64 bits", source.Quoted(n.Value))
	case "!!float":
		var f float64
		if n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%s is not a number that JSON has", source.Quoted(n.Value))
		}
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
	case "!!str", "!!timestamp": // a time without quotes is a text like one with quotes
		return n.Value, nil
	default:
		return nil, fmt.Errorf("a value of type %s has no equivalent in JSON", source.Quoted(tag))
	}
}
