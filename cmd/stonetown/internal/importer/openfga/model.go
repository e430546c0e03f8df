package openfga

import (
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema"
	"stonetown/schema/condition"
)

// model is an authorization model during its translation. All keys are the original names.
type model struct {
	data  *importer.Data
	where *declarations

	definitions []*definition
	types       map[string]*definition
	relations   map[key]*relation
	declared    map[string]*openfgav1.Condition

	// builtIn are the types that every tenant has.
	builtIn map[string]bool
	// The translated names.
	typeNames, relationNames, conditionNames map[string]string

	conditions map[string]condition.Definition
	// refused are the conditions that cannot be compiled here, with the reasons.
	refused map[string]string
	// leftOut are the relations that are not translated, with the reasons.
	leftOut map[key]string

	compiled *schema.Compiled
}

// key names a relation of a type.
type key struct{ typ, relation string }

func (k key) String() string { return k.typ + "#" + k.relation }

type definition struct {
	name      string
	at        importer.Place
	relations []*relation // in the order of the file, if it is known
}

type relation struct {
	key
	at       importer.Place
	rewrite  *openfgav1.Userset
	subjects []*openfgav1.RelationReference
}

// model reads a file with a model and adds its types to the data.
func (r *reader) model(name, text string) (*model, error) {
	switch kindOf(name) {
	case ".mod":
		proto, where, err := r.modules(name, text)
		if err != nil {
			return nil, err
		}
		return r.translated(proto, where)
	case ".json":
		proto, err := jsonModel(name, text)
		if err != nil {
			return nil, err
		}
		return r.translated(proto, newDeclarations(name))
	}
	return r.dsl(name, text, nil, nil)
}

// dsl reads a model in the language of OpenFGA.
func (r *reader) dsl(name, text string, d *document, numbers []int) (*model, error) {
	s, err := prepare(name, text, d, numbers)
	if err != nil {
		return nil, err
	}
	if s.isModule() {
		return nil, source.Errorf(s.at(0), "a module is only a part of a model; give the fga.mod file that lists it")
	}
	proto, err := s.parse()
	if err != nil {
		return nil, err
	}
	where := newDeclarations(name)
	where.find(s)
	return r.translated(proto, where)
}

func (r *reader) translated(proto *openfgav1.AuthorizationModel, where *declarations) (*model, error) {
	m := &model{
		data: r.data, where: where,
		types: map[string]*definition{}, relations: map[key]*relation{},
		declared:   proto.GetConditions(),
		conditions: map[string]condition.Definition{}, refused: map[string]string{},
		leftOut: map[key]string{},
	}
	if err := m.collect(proto); err != nil {
		return nil, err
	}
	if err := m.resolve(); err != nil {
		return nil, err
	}
	m.builtIn = m.data.BuiltIns(m.outlines())
	m.rename()
	m.translateConditions()
	m.leaveOut()
	return m, m.translate()
}

// collect reads the parts of the model from its wire form.
func (m *model) collect(proto *openfgav1.AuthorizationModel) error {
	at := importer.Place{File: m.where.file}
	switch version := proto.GetSchemaVersion(); version {
	case "1.1", "1.2":
	case "1.0":
		return source.Errorf(at, "schema version 1.0 does not say which subjects a relation has, and OpenFGA has retired it: migrate the model to 1.1 first")
	default:
		return source.Errorf(at, "schema version %s is not supported; use 1.1 or 1.2", source.Quoted(version))
	}
	if n := len(proto.GetConditions()); n > schema.MaxDocument {
		return source.Errorf(at, "%d conditions, at most %d can be read", n, schema.MaxDocument)
	}
	for _, t := range proto.GetTypeDefinitions() {
		d := &definition{name: t.GetType(), at: m.where.ofType(t.GetType())}
		if !isName(d.name) {
			return source.Errorf(d.at, "%s cannot be the name of a type", source.Quoted(d.name))
		}
		if m.types[d.name] != nil {
			return source.Errorf(d.at, "type %s is defined twice", d.name)
		}
		m.types[d.name] = d
		m.definitions = append(m.definitions, d)
		metadata := t.GetMetadata().GetRelations()
		for name, rewrite := range t.GetRelations() {
			k := key{d.name, name}
			r := &relation{k, m.where.ofRelation(k), rewrite, metadata[name].GetDirectlyRelatedUserTypes()}
			if !isName(name) {
				return source.Errorf(r.at, "%s cannot be the name of a relation", source.Quoted(name))
			}
			m.relations[k] = r
			d.relations = append(d.relations, r)
		}
		slices.SortFunc(d.relations, inOrder)
		if len(m.types) > schema.MaxTypes || len(m.relations) > schema.MaxDocument {
			return source.Errorf(d.at, "more than %d types or %d relations", schema.MaxTypes, schema.MaxDocument)
		}
	}
	if len(m.types) == 0 {
		return source.Errorf(at, "no types are defined")
	}
	return nil
}

// inOrder compares by file, line and name, because extensions come from other files.
func inOrder(a, b *relation) int {
	if c := strings.Compare(a.at.File, b.at.File); c != 0 {
		return c
	}
	if a.at.Line != b.at.Line {
		return a.at.Line - b.at.Line
	}
	return strings.Compare(a.relation, b.relation)
}

// maxName is the maximum length of a type's name in OpenFGA, in bytes.
const maxName = 254

// isName reports whether a name of a type or relation is valid in OpenFGA.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return strings.ContainsRune(":#@*", r) || isSpace(r)
	})
}

// conditionsInOrder returns the declared conditions in a stable order.
func (m *model) conditionsInOrder() []string { return slices.Sorted(maps.Keys(m.declared)) }
