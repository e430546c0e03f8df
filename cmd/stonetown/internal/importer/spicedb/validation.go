package spicedb

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// maxValidation is the maximum size of a validation file in bytes: its tree takes many times
// the memory of its text. Long lists of relationships have files of their own.
const maxValidation = 8 << 20

// document is a validation file.
type document struct {
	name     string
	lines    []string
	sections map[string]*yaml.Node
}

// validation reads a validation file.
func (r *reader) validation(name, text string) error {
	if len(text) > maxValidation {
		return source.Errorf(importer.Place{File: name}, "longer than %d bytes; relationships can stand in a file of their own, named by relationshipsFile", maxValidation)
	}
	d, err := r.open(name, text)
	if err != nil {
		return err
	}
	m, err := r.schemaOf(d)
	if err != nil {
		return err
	}
	if err := r.relationshipsOf(d, m); err != nil {
		return err
	}
	for _, section := range []string{"assertions", "validation"} {
		n := d.sections[section]
		if n == nil {
			continue
		}
		if m == nil {
			return source.Errorf(d.at(n), "%s need a schema, and the file has none", section)
		}
		a := asserter{model: m, document: d}
		if section == "assertions" {
			err = a.assertions(n)
		} else {
			err = a.expectations(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line ([0-9]+): (.*)`)

func (r *reader) open(name, text string) (*document, error) {
	d := &document{name: name, lines: strings.Split(text, "\n"), sections: map[string]*yaml.Node{}}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		if parts := yamlLine.FindStringSubmatch(err.Error()); parts != nil {
			line, _ := strconv.Atoi(parts[1])
			return nil, source.Errorf(importer.Place{File: name, Line: line}, "%s", parts[2])
		}
		return nil, source.Errorf(importer.Place{File: name}, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(root.Content) == 0 {
		return nil, source.Errorf(importer.Place{File: name}, "empty")
	}
	pairs, err := d.pairs(root.Content[0])
	if err != nil {
		return nil, err
	}
	for _, pair := range pairs {
		switch key := pair.key.Value; key {
		case "schema", "schemaFile", "relationships", "relationshipsFile", "assertions", "validation":
			if d.sections[key] != nil {
				return nil, source.Errorf(d.at(pair.key), "%s stands twice", key)
			}
			if pair.value.Tag != "!!null" {
				d.sections[key] = pair.value
			}
		default:
			r.data.Find(d.at(pair.key), importer.Unsupported, "the section "+source.Quoted(key)+" is not known and is left out")
		}
	}
	return d, nil
}

func (r *reader) schemaOf(d *document) (*model, error) {
	name, text, lines, err := r.section(d, "schema", "schemaFile", maxSchema)
	if err != nil || name == "" {
		return nil, err
	}
	return r.schema(name, text, lines)
}

func (r *reader) relationshipsOf(d *document, m *model) error {
	name, text, lines, err := r.section(d, "relationships", "relationshipsFile", maxFile)
	if err != nil || name == "" {
		return err
	}
	return r.relationships(name, text, lines, m)
}

// section is a text in the document or in a file that the document names.
func (r *reader) section(d *document, inline, file string, limit int) (name, text string, lines []int, err error) {
	here, there := d.sections[inline], d.sections[file]
	switch {
	case here != nil && there != nil:
		return "", "", nil, source.Errorf(d.at(there), "%s and %s cannot both be given", inline, file)
	case here != nil:
		text, err = d.text(here)
		return d.name, text, source.Lines(d.lines, here), err
	case there != nil:
		if text, err = d.text(there); err != nil {
			return "", "", nil, err
		}
		name, text, err = r.files.Referred(d.at(there), text, limit)
		return name, text, nil, err
	}
	return "", "", nil, nil
}

func (d *document) at(n *yaml.Node) importer.Place { return importer.Place{File: d.name, Line: n.Line} }

func (d *document) text(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", source.Errorf(d.at(n), "must be a text")
	}
	return n.Value, nil
}

// items returns the elements of a list.
func (d *document) items(n *yaml.Node) ([]*yaml.Node, error) {
	if n.Tag == "!!null" {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, source.Errorf(d.at(n), "must be a list")
	}
	return n.Content, nil
}

type pair struct{ key, value *yaml.Node }

func (d *document) pairs(n *yaml.Node) ([]pair, error) {
	if n.Tag == "!!null" {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, source.Errorf(d.at(n), "must be a mapping")
	}
	pairs := make([]pair, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if _, err := d.text(key); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{key, n.Content[i+1]})
	}
	return pairs, nil
}
