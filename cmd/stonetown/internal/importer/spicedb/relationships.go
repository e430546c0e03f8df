package spicedb

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

const (
	typePattern = `[A-Za-z0-9_]+(?:/[A-Za-z0-9_]+)*`
	idPattern   = `[A-Za-z0-9/_|\-=+]+`
)

var (
	resourcePattern = regexp.MustCompile(`^(` + typePattern + `):(` + idPattern + `)#([A-Za-z0-9_]+)$`)
	subjectPattern  = regexp.MustCompile(`^(` + typePattern + `):(` + idPattern + `|\*)(?:#([A-Za-z0-9_]+|\.\.\.))?$`)
	// The qualifiers follow the subject, a caveat before an expiration.
	termsPattern = regexp.MustCompile(`^(?:\[(` + typePattern + `)(?::(\{.*\}))?\])?(?:\[expiration:([0-9TZ:.+-]+)\])?$`)
)

// written is a relationship as it is written.
type written struct {
	resource tuplestore.Object
	relation string
	subject  tuplestore.Subject
	caveat   string
	context  []byte
	expires  time.Time
}

func parseRelationship(text string) (w written, err error) {
	resource, rest, found := strings.Cut(text, "@")
	if !found {
		return w, errors.New("not of the form type:id#relation@type:id")
	}
	if w.resource, w.relation, err = parseResource(resource); err != nil {
		return w, err
	}
	subject, terms := rest, ""
	if i := strings.IndexByte(rest, '['); i >= 0 {
		subject, terms = rest[:i], rest[i:]
	}
	if w.subject, err = parseSubject(subject); err != nil {
		return w, err
	}
	parts := termsPattern.FindStringSubmatch(terms)
	if parts == nil {
		return w, fmt.Errorf("%.200q is not of the form [caveat:{...}][expiration:time]", terms)
	}
	w.caveat = parts[1]
	if parts[2] != "" {
		if _, err := parseContext(parts[2]); err != nil {
			return w, err
		}
		w.context = []byte(parts[2])
	}
	if parts[3] != "" {
		if w.expires, err = time.Parse(time.RFC3339Nano, parts[3]); err != nil {
			return w, fmt.Errorf("%.200q is not a time of RFC 3339", parts[3])
		}
	}
	return w, nil
}

func parseResource(text string) (o tuplestore.Object, relation string, err error) {
	parts := resourcePattern.FindStringSubmatch(text)
	if parts == nil {
		return o, "", fmt.Errorf("%.200q is not of the form type:id#relation", text)
	}
	return tuplestore.Object{Type: parts[1], ID: parts[2]}, parts[3], nil
}

func parseSubject(text string) (s tuplestore.Subject, err error) {
	parts := subjectPattern.FindStringSubmatch(text)
	if parts == nil {
		return s, fmt.Errorf("%.200q is not of the form type:id, type:id#relation or type:*", text)
	}
	s = tuplestore.Subject{Type: parts[1], ID: parts[2], Relation: parts[3]}
	if s.Relation == "..." {
		s.Relation = ""
	}
	if s.ID == tuplestore.Wildcard && s.Relation != "" {
		return s, fmt.Errorf("%.200q is a wildcard with a relation", text)
	}
	return s, nil
}

func parseContext(text string) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil || values == nil || strings.TrimSpace(text[d.InputOffset():]) != "" {
		return nil, errors.New("the context is not a JSON object")
	}
	return values, nil
}

// relationships reads relationships, one on each line, and adds those that the model allows to
// the data. Without a model, names stay the same as far as they are valid.
func (r *reader) relationships(name, text string, lines []int, m *model) error {
	type found struct {
		written
		at importer.Place
	}
	var all []found
	seen := map[string]importer.Place{}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		at := importer.Place{File: name, Line: number + 1}
		if lines != nil {
			at.Line = lines[number]
		}
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		w, err := parseRelationship(line)
		if err != nil {
			return source.Errorf(at, "%v", err)
		}
		key := w.resource.String() + "#" + w.relation + "@" + w.subject.String()
		if first, ok := seen[key]; ok {
			r.data.Find(at, importer.Unsupported, fmt.Sprintf("%s stands in line %d already, this one is left out", source.Clip(key), first.Line))
			continue
		}
		seen[key] = at
		all = append(all, found{w, at})
	}
	translate := (*model).operation
	if m == nil {
		m = &model{data: r.data}
		types, relations, conditions := map[string]importer.Place{}, map[string]importer.Place{}, map[string]importer.Place{}
		for _, w := range all {
			source.First(types, w.resource.Type, w.at)
			source.First(types, w.subject.Type, w.at)
			source.First(relations, w.relation, w.at)
			if w.subject.Relation != "" {
				source.First(relations, w.subject.Relation, w.at)
			}
			if w.caveat != "" {
				source.First(conditions, w.caveat, w.at)
			}
		}
		if n := max(len(types), len(relations), len(conditions)); n > schema.MaxDocument {
			return source.Errorf(importer.Place{File: name}, "more than %d types or relations", schema.MaxDocument)
		}
		m.typeNames, m.relationNames, m.conditionNames = m.data.RenameAll(types, relations, conditions, importer.IsShared)
		translate = (*model).unchecked
	}
	for _, w := range all {
		op, problem := translate(m, w.written)
		if problem != "" {
			r.data.Find(w.at, importer.Unsupported, fmt.Sprintf("%s#%s@%s is left out: %s", source.Clip(w.resource.String()), w.relation, source.Clip(w.subject.String()), problem))
			continue
		}
		r.data.Relations = append(r.data.Relations, op)
	}
	return nil
}

// operation translates a relationship that the schema allows, or returns the reason why it is
// not allowed.
func (m *model) operation(w written) (op engine.WriteOp, problem string) {
	if problem := m.relationProblem(w.resource.Type, w.relation); problem != "" {
		return op, problem
	}
	if problem := m.subjectProblem(w.subject); problem != "" {
		return op, problem
	}
	member := m.members[key{w.resource.Type, w.relation}]
	if member.Relation == nil {
		return op, w.relation + " is a permission"
	}
	if op, problem = m.unchecked(w); problem != "" {
		return op, problem
	}
	if refusal := m.compiled.Allows(op.Resource.Type, op.Relation, schema.SubjectType(op.Subject.Shape())); refusal != schema.Allowed {
		return op, "the relation does not list this kind of subject"
	}
	if w.caveat == "" {
		return op, ""
	}
	if m.declared[w.caveat] == nil {
		return op, fmt.Sprintf("caveat %s does not exist", w.caveat)
	}
	c := m.compiled.Condition(op.Resource.Type, op.Condition)
	if c == nil {
		return op, fmt.Sprintf("no relation of %s lists caveat %s", w.resource.Type, w.caveat)
	}
	context, err := c.Normalize(op.Context)
	if err != nil {
		return op, err.Error()
	}
	op.Context = []byte(context)
	return op, ""
}

// unchecked translates a relationship without the schema.
func (m *model) unchecked(w written) (op engine.WriteOp, problem string) {
	switch {
	case len(w.resource.ID) > engine.MaxID || len(w.subject.ID) > engine.MaxID:
		return op, fmt.Sprintf("an ID of more than %d bytes", engine.MaxID)
	case !w.expires.IsZero() && w.expires.UnixMicro() <= 0:
		return op, "it expired before 1970"
	}
	op = engine.WriteOp{
		Resource: m.object(w.resource), Relation: m.relationNames[w.relation], Subject: m.subject(w.subject),
		ExpiresAt: w.expires, Context: w.context,
	}
	if w.caveat != "" {
		op.Condition = m.conditionNames[w.caveat]
	}
	if standsForMembers(op.Subject) {
		return op, "a group as a subject stands for its members here"
	}
	return op, ""
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

// relationProblem returns the reason why a relation or permission cannot have relationships.
func (m *model) relationProblem(typ, relation string) string {
	k := key{typ, relation}
	switch {
	case m.types[typ] == nil:
		return fmt.Sprintf("definition %s does not exist", typ)
	case m.members[k] == nil:
		return fmt.Sprintf("%s has no relation or permission %s", typ, relation)
	case m.leftOut[k] != "":
		return fmt.Sprintf("%s is left out", k)
	}
	return ""
}

func (m *model) subjectProblem(s tuplestore.Subject) string {
	if s.Relation != "" {
		return m.relationProblem(s.Type, s.Relation)
	}
	if m.types[s.Type] == nil {
		return fmt.Sprintf("definition %s does not exist", s.Type)
	}
	return ""
}
