// Package native reads tests of a model in the format of this product: one YAML file with types,
// relations and assertions.
//
//	types: types.yaml               # a file beside this one, or the types themselves
//	relations:
//	  - document:q3#parent@folder:2026
//	  - relation: document:q3#viewer@user:bob
//	    expires_at: 2026-12-01T00:00:00Z
//	    condition: {name: office, context: {open: true}}
//	tests:
//	  - name: viewers of a folder view its documents
//	    at: 2026-11-22T12:00:00Z    # the time of the questions; without it, now
//	    context: {open: true}
//	    relations: [folder:2026#viewer@user:ann]    # for this test only
//	    allow:
//	      - user:ann view document:q3
//	      - question: user:ann view document:q3
//	        reasons: [document:q3#parent@folder:2026]   # steps of the proof
//	    deny: [user:eve view document:q3]
//	    undecided: [user:cid view document:q3]          # for want of values
//	    resources:
//	      - {subject: user:ann, action: view, type: document, ids: [q3]}
//	    subjects:
//	      - {resource: document:q3, action: view, type: user, ids: [ann, bob]}
package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"

	strict "github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/engine"
	"stonetown/internal/definitions"
	"stonetown/internal/notation"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// maxFile is the size of a file, in bytes.
const maxFile = 64 << 20

type document struct {
	Types     yaml.Node   `yaml:"types"`
	Relations []yaml.Node `yaml:"relations"`
	Tests     []yaml.Node `yaml:"tests"`
}

type test struct {
	Name      string         `yaml:"name"`
	At        time.Time      `yaml:"at"`
	Context   map[string]any `yaml:"context"`
	Relations []yaml.Node    `yaml:"relations"`
	Allow     []yaml.Node    `yaml:"allow"`
	Deny      []yaml.Node    `yaml:"deny"`
	Undecided []yaml.Node    `yaml:"undecided"`
	Resources []yaml.Node    `yaml:"resources"`
	Subjects  []yaml.Node    `yaml:"subjects"`
}

type relation struct {
	Relation  string    `yaml:"relation"`
	ExpiresAt time.Time `yaml:"expires_at"`
	Condition struct {
		Name    string         `yaml:"name"`
		Context map[string]any `yaml:"context"`
	} `yaml:"condition"`
}

type question struct {
	Question string   `yaml:"question"`
	Reasons  []string `yaml:"reasons"`
}

type resourceList struct {
	Subject string   `yaml:"subject"`
	Action  string   `yaml:"action"`
	Type    string   `yaml:"type"`
	IDs     []string `yaml:"ids"`
}

type subjectList struct {
	Resource string   `yaml:"resource"`
	Action   string   `yaml:"action"`
	Type     string   `yaml:"type"` // or type#relation
	IDs      []string `yaml:"ids"`
}

// Read reads a file and the file of types that it refers to.
func Read(files fs.FS, name string) (*importer.Data, error) {
	r := reader{files: source.Files{FS: files}, name: name, data: new(importer.Data)}
	text, err := r.files.Text(name, maxFile)
	if err != nil {
		return nil, err
	}
	var d document
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&d); err != nil && !errors.Is(err, io.EOF) {
		return nil, source.Errorf(importer.Place{File: name}, "%v", err)
	}
	if decoder.Decode(new(yaml.Node)) == nil {
		return nil, source.Errorf(importer.Place{File: name}, "a second YAML document")
	}
	if err := r.types(&d.Types); err != nil {
		return nil, err
	}
	if r.data.Relations, err = r.relations(d.Relations); err != nil {
		return nil, err
	}
	for i := range d.Tests {
		if err := r.test(&d.Tests[i]); err != nil {
			return nil, err
		}
	}
	return r.data, nil
}

// Is reports whether a YAML file with these members has this format.
func Is(members map[string]yaml.Node) bool {
	_, types := members["types"]
	return types
}

type reader struct {
	files source.Files
	name  string
	data  *importer.Data
}

func (r *reader) at(n *yaml.Node) importer.Place { return importer.Place{File: r.name, Line: n.Line} }

// decode decodes a node and refuses members that v does not have.
func (r *reader) decode(n *yaml.Node, v any) error {
	text, err := yaml.Marshal(n)
	if err != nil {
		return source.Errorf(r.at(n), "%v", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(v); err != nil {
		// Its line numbers count from the node.
		return source.Errorf(r.at(n), "%s", strings.TrimPrefix(lineNumber.ReplaceAllString(err.Error(), ""), "yaml: "))
	}
	return nil
}

var lineNumber = regexp.MustCompile(`line \d+: `)

// types reads the types, or the file with the name that stands in their place.
func (r *reader) types(n *yaml.Node) error {
	if n.IsZero() {
		return source.Errorf(importer.Place{File: r.name}, "has no types")
	}
	place := r.at(n)
	var text []byte
	if n.Kind == yaml.ScalarNode {
		file, content, err := r.files.Referred(place, n.Value, maxFile)
		if err != nil {
			return err
		}
		place, text = importer.Place{File: file}, []byte(content)
	} else {
		var err error
		if text, err = yaml.Marshal(n); err != nil {
			return source.Errorf(place, "%v", err)
		}
	}
	types, err := definitions.Parse(text)
	if err != nil {
		return source.Errorf(place, "%v", err)
	}
	for _, d := range types {
		var in engine.TypeDocument
		if err := strict.Unmarshal(d.JSON, &in); err != nil {
			return source.Errorf(place, "resource type %s: %v", source.Quoted(d.Name), err)
		}
		r.data.Types = append(r.data.Types, engine.TypeOf(in))
	}
	if _, err := schema.Compile(r.data.Types); err != nil {
		var invalid *schema.Error
		if errors.As(err, &invalid) {
			return source.Errorf(place, "resource type %s, %s: %v", source.Quoted(invalid.Type), invalid.Path, err)
		}
		return source.Errorf(place, "%v", err)
	}
	return nil
}

func (r *reader) relations(nodes []yaml.Node) ([]engine.WriteOp, error) {
	var ops []engine.WriteOp
	for i := range nodes {
		n := &nodes[i]
		in := relation{Relation: n.Value}
		if n.Kind != yaml.ScalarNode {
			if err := r.decode(n, &in); err != nil {
				return nil, err
			}
		}
		op, err := parseRelation(in.Relation)
		if err != nil {
			return nil, source.Errorf(r.at(n), "%v", err)
		}
		op.ExpiresAt, op.Condition = in.ExpiresAt, in.Condition.Name
		if in.Condition.Context != nil {
			if op.Context, err = json.Marshal(in.Condition.Context); err != nil {
				return nil, source.Errorf(r.at(n), "the context cannot be written as JSON: %v", err)
			}
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// parseRelation parses resource#relation@subject.
func parseRelation(text string) (engine.WriteOp, error) {
	object, relation, who, ok := notation.CutTuple(text)
	if !ok {
		return engine.WriteOp{}, fmt.Errorf("%s is not a relation: resource#relation@subject, such as document:q3#viewer@user:ann", source.Quoted(text))
	}
	resource, err := parseResource(object)
	if err != nil {
		return engine.WriteOp{}, err
	}
	subject, err := parseSubject(who)
	return engine.WriteOp{Resource: resource, Relation: relation, Subject: subject}, err
}

func parseResource(text string) (tuplestore.Object, error) {
	ref, err := notation.ReadRef(text)
	return tuplestore.Object{Type: ref.Type, ID: ref.ExternalID}, err
}

func parseSubject(text string) (tuplestore.Subject, error) {
	s, err := notation.ReadSubject(text)
	return tuplestore.Subject(s), err
}

// test reads the assertions of a test.
func (r *reader) test(n *yaml.Node) error {
	var in test
	if err := n.Decode(&in); err != nil {
		return source.Errorf(r.at(n), "%v", err)
	}
	if err := r.decode(n, new(test)); err != nil { // refuses unknown members
		return err
	}
	contextual, err := r.relations(in.Relations)
	if err != nil {
		return err
	}
	if len(contextual) > engine.MaxContextual {
		return source.Errorf(r.at(n), "%d relations of a test, at most %d are allowed", len(contextual), engine.MaxContextual)
	}
	add := func(n *yaml.Node, a importer.Assertion) {
		a.At, a.Name, a.Context, a.Contextual, a.Instant = r.at(n), in.Name, in.Context, contextual, in.At
		r.data.Assertions = append(r.data.Assertions, a)
	}
	for _, expected := range []struct {
		nodes []yaml.Node
		want  importer.Answer
	}{{in.Allow, importer.Allowed}, {in.Deny, importer.Denied}, {in.Undecided, importer.Undecided}} {
		for i := range expected.nodes {
			n := &expected.nodes[i]
			c, err := r.check(n, expected.want)
			if err != nil {
				return err
			}
			add(n, importer.Assertion{Check: c})
		}
	}
	for i := range in.Resources {
		n := &in.Resources[i]
		var list resourceList
		if err := r.decode(n, &list); err != nil {
			return err
		}
		subject, err := parseSubject(list.Subject)
		if err != nil {
			return source.Errorf(r.at(n), "%v", err)
		}
		add(n, importer.Assertion{Resources: &importer.Resources{Subject: subject, Action: list.Action, Type: list.Type, Want: list.IDs}})
	}
	for i := range in.Subjects {
		n := &in.Subjects[i]
		var list subjectList
		if err := r.decode(n, &list); err != nil {
			return err
		}
		resource, err := parseResource(list.Resource)
		if err != nil {
			return source.Errorf(r.at(n), "%v", err)
		}
		typ, relation, _ := strings.Cut(list.Type, "#")
		add(n, importer.Assertion{Subjects: &importer.Subjects{Resource: resource, Action: list.Action, Type: typ, Relation: relation, Want: list.IDs}})
	}
	return nil
}

func (r *reader) check(n *yaml.Node, want importer.Answer) (*importer.Check, error) {
	in := question{Question: n.Value}
	if n.Kind != yaml.ScalarNode {
		if err := r.decode(n, &in); err != nil {
			return nil, err
		}
	}
	if len(in.Reasons) > 0 && want != importer.Allowed {
		return nil, source.Errorf(r.at(n), "only allowed questions have reasons")
	}
	words := strings.Fields(in.Question)
	if len(words) != 3 {
		return nil, source.Errorf(r.at(n), "%s is not a question: SUBJECT ACTION RESOURCE, such as user:ann view document:q3", source.Quoted(in.Question))
	}
	subject, err := parseSubject(words[0])
	if err != nil {
		return nil, source.Errorf(r.at(n), "%v", err)
	}
	resource, err := parseResource(words[2])
	if err != nil {
		return nil, source.Errorf(r.at(n), "%v", err)
	}
	return &importer.Check{Subject: subject, Action: words[1], Resource: resource, Want: want, Reasons: in.Reasons}, nil
}
