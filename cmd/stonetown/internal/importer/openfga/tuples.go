package openfga

import (
	"encoding/json"
	"fmt"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/engine"
	"stonetown/schema"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

// written is a tuple as it is written.
type written struct {
	at                     importer.Place
	user, relation, object string
	condition              string
	context                map[string]any // of the condition; decoded JSON
}

// field is one of the three texts of every tuple.
type field struct {
	name  string
	value *string
}

func (w *written) fields() []field {
	return []field{{"user", &w.user}, {"relation", &w.relation}, {"object", &w.object}}
}

// incomplete is the error of a tuple that lacks a text.
func (w *written) incomplete() error {
	for _, f := range w.fields() {
		if *f.value == "" {
			return source.Errorf(w.at, "a tuple without %s", f.name)
		}
	}
	return nil
}

func (w written) String() string {
	return fmt.Sprintf("%s#%s@%s", source.Clip(w.object), source.Clip(w.relation), source.Clip(w.user))
}

// parsed is a tuple with its parts, under the original names.
type parsed struct {
	written
	resource tuplestore.Object
	subject  tuplestore.Subject
}

// parse parses a tuple, or returns the reason why it cannot be translated.
func (w written) parse() (p parsed, problem string) {
	p.written = w
	var err error
	if p.resource, err = parseObject(w.object); err != nil {
		return p, err.Error()
	}
	if p.subject, err = parseUser(w.user); err != nil {
		return p, err.Error()
	}
	if !isName(w.relation) {
		return p, source.Quoted(w.relation) + " cannot be the name of a relation"
	}
	return p, ""
}

func parseObject(text string) (tuplestore.Object, error) {
	typ, id, _ := strings.Cut(text, ":")
	if !isName(typ) || !isID(id) {
		return tuplestore.Object{}, fmt.Errorf("%s is not of the form type:id", source.Quoted(text))
	}
	return tuplestore.Object{Type: typ, ID: id}, nil
}

// parseUser parses type:id, type:id#relation or type:*.
func parseUser(text string) (tuplestore.Subject, error) {
	object, relation, userset := strings.Cut(text, "#")
	typ, id, _ := strings.Cut(object, ":")
	everyone := id == tuplestore.Wildcard && !userset
	if !isName(typ) || !isID(id) && !everyone || userset && !isName(relation) {
		return tuplestore.Subject{}, fmt.Errorf("%s is not of the form type:id, type:id#relation or type:*", source.Quoted(text))
	}
	return tuplestore.Subject{Type: typ, ID: id, Relation: relation}, nil
}

// isID accepts more than some versions of OpenFGA, because every id in a store was valid in
// some version.
func isID(s string) bool {
	return s != "" && s != tuplestore.Wildcard && !strings.ContainsFunc(s, func(r rune) bool { return r == '#' || isSpace(r) })
}

// isSpace reports whether a character is a space or a control character.
func isSpace(r rune) bool { return r <= ' ' || r == 0x7f }

// operations translates the tuples that the model allows. Without a model, names stay the same
// as far as they are valid. All tuples that are left out are in the report.
func (r *reader) operations(tuples []written, m *model) ([]engine.WriteOp, error) {
	seen := make(map[string]importer.Place, len(tuples))
	all := make([]parsed, 0, len(tuples))
	for _, w := range tuples {
		p, problem := w.parse()
		if problem != "" {
			r.data.Find(w.at, importer.Unsupported, fmt.Sprintf("%s is left out: %s", w, problem))
			continue
		}
		k := w.object + "#" + w.relation + "@" + w.user
		if before, ok := seen[k]; ok {
			r.data.Find(w.at, importer.Unsupported, fmt.Sprintf("%s is left out: it stands in %s already", w, spot(before)))
			continue
		}
		seen[k] = w.at
		all = append(all, p)
	}
	translate := (*model).operation
	if m == nil {
		m = &model{data: r.data}
		if err := m.nameAfter(all); err != nil {
			return nil, err
		}
		translate = (*model).unchecked
	}
	ops := make([]engine.WriteOp, 0, len(all))
	for _, p := range all {
		op, problem := translate(m, p)
		if problem != "" {
			r.data.Find(p.at, importer.Unsupported, fmt.Sprintf("%s is left out: %s", p, problem))
			continue
		}
		ops = append(ops, op)
	}
	return ops, nil
}

func spot(at importer.Place) string {
	if at.Line == 0 {
		return at.File
	}
	return fmt.Sprintf("%s:%d", at.File, at.Line)
}

// nameAfter assigns the translated names for tuples without a model.
func (m *model) nameAfter(tuples []parsed) error {
	types, relations, conditions := map[string]importer.Place{}, map[string]importer.Place{}, map[string]importer.Place{}
	for _, p := range tuples {
		source.First(types, p.resource.Type, p.at)
		source.First(types, p.subject.Type, p.at)
		source.First(relations, p.relation, p.at)
		if p.subject.Relation != "" {
			source.First(relations, p.subject.Relation, p.at)
		}
		if p.condition != "" {
			source.First(conditions, p.condition, p.at)
		}
		if n := max(len(types), len(relations), len(conditions)); n > schema.MaxDocument {
			return source.Errorf(p.at, "the tuples have more than %d types, relations or conditions", schema.MaxDocument)
		}
	}
	m.typeNames, m.relationNames, m.conditionNames = m.data.RenameAll(types, relations, conditions, importer.IsShared)
	return nil
}

// operation translates a tuple that the model allows, or returns the reason why it is not
// allowed.
func (m *model) operation(p parsed) (op engine.WriteOp, problem string) {
	k := key{p.resource.Type, p.relation}
	if problem := m.relationProblem(k); problem != "" {
		return op, problem
	}
	if problem := m.subjectProblem(p.subject); problem != "" {
		return op, problem
	}
	if problem := m.relations[k].refuses(p); problem != "" {
		return op, problem
	}
	if op, problem = m.unchecked(p); problem != "" {
		return op, problem
	}
	if m.compiled.Allows(op.Resource.Type, op.Relation, schema.SubjectType(op.Subject.Shape())) != schema.Allowed {
		return op, "the relation does not list this kind of subject"
	}
	if op.Condition == "" {
		return op, ""
	}
	context, err := m.compiled.Condition(op.Resource.Type, op.Condition).Normalize(op.Context)
	if err != nil {
		return op, err.Error()
	}
	op.Context = []byte(context)
	return op, ""
}

// refuses returns the reason why the relation does not allow a tuple. Here tuples can have any
// condition of the type, or none, so the requirement of the model is checked now: OpenFGA
// ignores a tuple without the required condition.
func (r *relation) refuses(p parsed) string {
	kind := false
	for _, s := range r.subjects {
		if s.GetType() != p.subject.Type || s.GetRelation() != p.subject.Relation ||
			isWildcard(s) != (p.subject.ID == tuplestore.Wildcard) {
			continue
		}
		if s.GetCondition() == p.condition {
			return ""
		}
		kind = true
	}
	switch {
	case !kind:
		return "the relation does not list this kind of subject"
	case p.condition == "":
		return "the relation allows this kind of subject only on a condition"
	}
	return fmt.Sprintf("the relation does not allow this kind of subject on condition %s", source.Clip(p.condition))
}

func isWildcard(s *openfgav1.RelationReference) bool { return s.GetWildcard() != nil }

// unchecked translates a tuple without the model.
func (m *model) unchecked(p parsed) (op engine.WriteOp, problem string) {
	if problem := tooLong(p.resource.ID, p.subject.ID); problem != "" {
		return op, problem
	}
	op = engine.WriteOp{Resource: m.object(p.resource), Relation: m.relationNames[p.relation], Subject: m.subject(p.subject)}
	if standsForMembers(op.Subject) {
		return op, "a group as a subject stands for its members here"
	}
	if p.condition == "" {
		return op, ""
	}
	op.Condition = m.conditionNames[p.condition]
	if len(p.context) > 0 {
		var err error
		if op.Context, err = json.Marshal(p.context); err != nil {
			return op, "the context is not JSON"
		}
		if len(op.Context) > condition.MaxContext {
			return op, fmt.Sprintf("a context of more than %d bytes", condition.MaxContext)
		}
	}
	return op, ""
}

func tooLong(ids ...string) string {
	for _, id := range ids {
		if len(id) > engine.MaxID {
			return fmt.Sprintf("an ID of more than %d bytes", engine.MaxID)
		}
	}
	return ""
}

func (m *model) object(o tuplestore.Object) tuplestore.Object {
	return tuplestore.Object{Type: m.typeNames[o.Type], ID: o.ID}
}

func (m *model) subject(s tuplestore.Subject) tuplestore.Subject {
	return tuplestore.Subject{Type: m.typeNames[s.Type], ID: s.ID, Relation: m.relationNames[s.Relation]}
}

// standsForMembers reports whether a subject has another meaning here: its members instead of
// itself.
func standsForMembers(s tuplestore.Subject) bool {
	return s.Type == schema.GroupType && s.Relation == "" && s.ID != tuplestore.Wildcard
}

// relationProblem returns the reason why a relation cannot have tuples.
func (m *model) relationProblem(k key) string {
	switch {
	case m.types[k.typ] == nil:
		return fmt.Sprintf("type %s does not exist", source.Clip(k.typ))
	case m.relations[k] == nil:
		return fmt.Sprintf("type %s has no relation %s", k.typ, source.Clip(k.relation))
	case m.leftOut[k] != "":
		return fmt.Sprintf("%s is left out", k)
	}
	return ""
}

func (m *model) subjectProblem(s tuplestore.Subject) string {
	if s.Relation != "" {
		return m.relationProblem(key{s.Type, s.Relation})
	}
	if m.types[s.Type] == nil {
		return fmt.Sprintf("type %s does not exist", source.Clip(s.Type))
	}
	return ""
}
