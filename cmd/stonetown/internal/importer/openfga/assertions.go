package openfga

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// The limits are far more than files have in practice.
const (
	maxAssertions = 100_000
	maxFilters    = 100 // of one question
)

// tester translates the tests of a store file.
type tester struct {
	*model
	*document
	*reader
	left int // number of assertions that can still be added

	contextual []engine.WriteOp // of the test that is read
}

func (t *tester) tests(n *yaml.Node) error {
	items, err := t.items(n)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := t.test(item); err != nil {
			return err
		}
	}
	return nil
}

func (t *tester) test(n *yaml.Node) error {
	members, err := t.members(n, t.passOver("test"),
		"name", "description", "tuples", "tuple_file", "tuple_files", "check", "list_objects", "list_users")
	if err != nil {
		return err
	}
	tuples, err := t.reader.tuplesOf(t.document, members)
	if err != nil {
		return err
	}
	if t.contextual, err = t.operations(tuples, t.model); err != nil {
		return err
	}
	if len(t.contextual) == 0 {
		t.contextual = nil
	}
	if len(t.contextual) > engine.MaxContextual {
		t.reader.data.Find(t.at(n), importer.Unsupported, fmt.Sprintf(
			"a test is left out: its %d tuples would be contextual tuples of each question, of which there may be %d", len(t.contextual), engine.MaxContextual))
		return nil
	}
	for _, kind := range []struct {
		name string
		read func(*yaml.Node) error
	}{{"check", t.check}, {"list_objects", t.listObjects}, {"list_users", t.listUsers}} {
		if members[kind.name] == nil {
			continue
		}
		items, err := t.items(members[kind.name])
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := kind.read(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// common reads the members that all kinds of questions have.
func (t *tester) common(n *yaml.Node, what string, known ...string) (members map[string]*yaml.Node, context map[string]any, assertions []pair, err error) {
	members, err = t.members(n, t.passOver(what), append(known, "context", "assertions")...)
	if err != nil {
		return nil, nil, nil, err
	}
	if members["context"] != nil {
		if context, err = t.document.object(members["context"]); err != nil {
			return nil, nil, nil, err
		}
	}
	if members["assertions"] != nil {
		assertions, err = t.pairs(members["assertions"])
	}
	return members, context, assertions, err
}

func (t *tester) check(n *yaml.Node) error {
	members, context, assertions, err := t.common(n, "check", "user", "users", "object", "objects")
	if err != nil {
		return err
	}
	users, err := t.oneOrMore(n, members, "user", "users")
	if err != nil {
		return err
	}
	objects, err := t.oneOrMore(n, members, "object", "objects")
	if err != nil {
		return err
	}
	for _, a := range assertions {
		allowed, err := t.boolean(a.value)
		if err != nil {
			return err
		}
		want := importer.Denied
		if allowed {
			want = importer.Allowed
		}
		for _, user := range users {
			for _, object := range objects {
				resource, s, problem := t.question(user.text, a.key, object.text)
				c := importer.Check{Subject: t.subject(s), Action: t.action(a.key), Resource: t.model.object(resource), Want: want}
				err := t.add(a, object.text+"#"+a.key+" and "+user.text, problem, importer.Assertion{Check: &c, Context: context})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (t *tester) oneOrMore(n *yaml.Node, members map[string]*yaml.Node, one, more string) ([]located, error) {
	switch single, several := members[one], members[more]; {
	case single != nil && several != nil:
		return nil, source.Errorf(t.at(several), "%s and %s cannot both be given", one, more)
	case several != nil:
		return t.texts(several)
	case single != nil:
		text, err := t.scalar(single)
		return []located{{text, t.at(single)}}, err
	}
	return nil, source.Errorf(t.at(n), "%s or %s is missing", one, more)
}

// question parses a question, or returns the reason why it cannot be translated.
func (t *tester) question(user, relation, object string) (o tuplestore.Object, s tuplestore.Subject, problem string) {
	o, err := parseObject(object)
	if err != nil {
		return o, s, err.Error()
	}
	if s, problem = t.asker(user); problem != "" {
		return o, s, problem
	}
	if problem := t.relationProblem(key{o.Type, relation}); problem != "" {
		return o, s, problem
	}
	return o, s, tooLong(o.ID)
}

// asker returns the subject of a question.
func (t *tester) asker(user string) (s tuplestore.Subject, problem string) {
	s, err := parseUser(user)
	if err != nil {
		return s, err.Error()
	}
	if problem := t.subjectProblem(s); problem != "" {
		return s, problem
	}
	if standsForMembers(t.subject(s)) {
		return s, "a group as a subject stands for its members here"
	}
	return s, tooLong(s.ID)
}

// action returns the action of a question about a relation: the original name if that can be an
// action, because the types map those names.
func (t *tester) action(relation string) string {
	if schema.IsAction(relation) {
		return relation
	}
	return t.relationNames[relation]
}

// add adds an assertion, or reports the problem with it.
func (t *tester) add(a pair, about, problem string, assertion importer.Assertion) error {
	if t.left--; t.left < 0 {
		return source.Errorf(a.at, "more than %d assertions", maxAssertions)
	}
	if problem != "" {
		t.reader.data.Find(a.at, importer.Unsupported, fmt.Sprintf("an assertion about %s is left out: %s", source.Clip(about), problem))
		return nil
	}
	assertion.At, assertion.Contextual = a.at, t.contextual
	t.reader.data.Assertions = append(t.reader.data.Assertions, assertion)
	return nil
}
