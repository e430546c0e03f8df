package spicedb

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// maxAssertions is far more than files have in practice.
const maxAssertions = 100_000

// asserter translates the parts of a validation file that expect answers.
type asserter struct {
	*model
	*document
}

// assertions reads the section assertions: checks, by the expected answer.
func (a *asserter) assertions(n *yaml.Node) error {
	pairs, err := a.pairs(n)
	if err != nil {
		return err
	}
	wants := map[string]importer.Answer{"assertTrue": importer.Allowed, "assertFalse": importer.Denied, "assertCaveated": importer.Undecided}
	for _, p := range pairs {
		want, ok := wants[p.key.Value]
		if !ok {
			a.data.Find(a.at(p.key), importer.Unsupported, "assertions of the kind "+source.Quoted(p.key.Value)+" are not known and left out")
			continue
		}
		items, err := a.items(p.value)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := a.assertion(item, want); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *asserter) assertion(n *yaml.Node, want importer.Answer) error {
	text, err := a.text(n)
	if err != nil {
		return err
	}
	question, given, hasContext := strings.Cut(strings.TrimSpace(text), " with ")
	w, err := parseRelationship(strings.TrimSpace(question))
	if err != nil {
		return source.Errorf(a.at(n), "%v", err)
	}
	var context map[string]any
	if hasContext {
		if context, err = parseContext(given); err != nil {
			return source.Errorf(a.at(n), "%v", err)
		}
	}
	if w.caveat != "" || !w.expires.IsZero() {
		a.data.Find(a.at(n), importer.Unsupported, "a question has no caveat or expiration, that of the assertion is left out")
	}
	return a.check(a.at(n), w.resource, w.relation, w.subject, context, want)
}

// check adds a check, or reports why it cannot be translated.
func (a *asserter) check(at importer.Place, resource tuplestore.Object, relation string, s tuplestore.Subject, context map[string]any, want importer.Answer) error {
	problem := a.relationProblem(resource.Type, relation)
	if problem == "" {
		problem = a.subjectProblem(s)
	}
	switch {
	case problem != "":
	case len(s.ID) > engine.MaxID || len(resource.ID) > engine.MaxID:
		problem = fmt.Sprintf("an ID of more than %d bytes", engine.MaxID)
	case standsForMembers(a.subject(s)):
		problem = "a group as a subject stands for its members here"
	}
	if problem != "" {
		a.data.Find(at, importer.Unsupported, fmt.Sprintf("an assertion about %s#%s and %s is left out: %s", source.Clip(resource.String()), relation, source.Clip(s.String()), problem))
		return nil
	}
	return a.add(importer.Assertion{At: at, Context: context, Check: &importer.Check{
		Subject: a.subject(s), Action: a.action(relation), Resource: a.object(resource), Want: want,
	}})
}

func (a *asserter) add(assertion importer.Assertion) error {
	if len(a.data.Assertions) == maxAssertions {
		return source.Errorf(assertion.At, "more than %d assertions", maxAssertions)
	}
	a.data.Assertions = append(a.data.Assertions, assertion)
	return nil
}

// action returns the action of a check for a relation: the original name if that can be an
// action, because the types map those names.
func (a *asserter) action(relation string) string {
	if schema.IsAction(relation) {
		return relation
	}
	return a.relationNames[relation]
}

// expectations reads the section validation: for a relation of a resource, all subjects that an
// expansion returns.
func (a *asserter) expectations(n *yaml.Node) error {
	pairs, err := a.pairs(n)
	if err != nil {
		return err
	}
	if len(pairs) > 0 {
		a.data.Find(a.at(n), importer.Widened, "expected relations are compared by their subjects, not by the relations through which these are found")
	}
	for _, p := range pairs {
		if err := a.expectation(p); err != nil {
			return err
		}
	}
	return nil
}

// expected are the expected subjects of one type.
type expected struct {
	ids      []string
	everyone bool
	caveated bool
}

func (a *asserter) expectation(p pair) error {
	resource, relation, err := parseResource(strings.TrimSpace(p.key.Value))
	if err != nil {
		return source.Errorf(a.at(p.key), "%v", err)
	}
	items, err := a.items(p.value)
	if err != nil {
		return err
	}
	if problem := a.relationProblem(resource.Type, relation); problem != "" {
		a.data.Find(a.at(p.key), importer.Unsupported, fmt.Sprintf("the subjects expected for %s#%s are left out: %s", source.Clip(resource.String()), relation, problem))
		return nil
	}
	kinds := map[string]*expected{}
	var order []string
	for _, item := range items {
		text, err := a.text(item)
		if err != nil {
			return err
		}
		s, caveated, except, err := parseExpected(text)
		if err != nil {
			return source.Errorf(a.at(item), "%v", err)
		}
		want := importer.Allowed
		if caveated {
			want = importer.Undecided
		}
		if err := a.check(a.at(item), resource, relation, s, nil, want); err != nil {
			return err
		}
		for _, e := range except {
			want := importer.Denied
			if e.caveated {
				want = importer.Undecided
			}
			if err := a.check(a.at(item), resource, relation, e.subject, nil, want); err != nil {
				return err
			}
			caveated = caveated || e.caveated
		}
		if s.Relation != "" || a.subjectProblem(s) != "" || standsForMembers(a.subject(s)) {
			continue
		}
		kind := kinds[s.Type]
		if kind == nil {
			kind = &expected{}
			kinds[s.Type] = kind
			order = append(order, s.Type)
		}
		kind.ids = append(kind.ids, s.ID)
		kind.everyone = kind.everyone || s.ID == tuplestore.Wildcard
		kind.caveated = kind.caveated || caveated
	}
	if len(items) == 0 {
		order = a.plainTypes()
	}
	for _, typ := range order {
		kind := kinds[typ]
		if kind == nil {
			kind = &expected{}
		}
		if err := a.subjects(a.at(p.key), resource, relation, typ, kind); err != nil {
			return err
		}
	}
	return nil
}

// subjects expects a list of the subjects of a type. A list with a wildcard also names other
// subjects of the expansion, which the engines list differently; a list with caveats cannot be
// decided without their values.
func (a *asserter) subjects(at importer.Place, resource tuplestore.Object, relation, typ string, kind *expected) error {
	if kind.caveated {
		a.data.Find(at, importer.Unsupported, fmt.Sprintf("the subjects %s of %s#%s are compared one by one, not as a list, since some depend on caveats", typ, source.Clip(resource.String()), relation))
		return nil
	}
	return a.add(importer.Assertion{At: at, Subjects: &importer.Subjects{
		Resource: a.object(resource), Action: a.action(relation), Type: a.typeNames[typ], Want: kind.ids, Partial: kind.everyone,
	}})
}

// plainTypes are the types of objects that are subjects somewhere.
func (m *model) plainTypes() []string {
	var types []string
	for _, d := range m.definitions {
		for _, member := range d.Members {
			if member.Relation == nil {
				continue
			}
			for _, s := range member.Relation.Subjects {
				if s.Relation == "" {
					types = append(types, s.Type)
				}
			}
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

var expectedPattern = regexp.MustCompile(`^([^\s\[\]]+)(\[\.\.\.\])?(?:\s+-\s+\{([^}]+)\})?$`)

type exception struct {
	subject  tuplestore.Subject
	caveated bool
}

// parseExpected parses an expected subject: [user:ann], or [user:ann[...]] for a subject that
// depends on a caveat, or [user:* - {user:bob, user:eve[...]}].
func parseExpected(text string) (s tuplestore.Subject, caveated bool, except []exception, err error) {
	from, to := strings.IndexByte(text, '['), strings.LastIndexByte(text, ']')
	if from < 0 || to < from {
		return s, false, nil, errors.New("an expected subject stands in brackets: [user:ann] is <document:1#view>")
	}
	parts := expectedPattern.FindStringSubmatch(strings.TrimSpace(text[from+1 : to]))
	if parts == nil {
		return s, false, nil, fmt.Errorf("%s is not a subject", source.Quoted(text[from:to+1]))
	}
	if s, err = parseSubject(parts[1]); err != nil {
		return s, false, nil, err
	}
	if parts[3] != "" {
		for e := range strings.SplitSeq(parts[3], ",") {
			e, caveated := strings.CutSuffix(strings.TrimSpace(e), "[...]")
			excepted, err := parseSubject(e)
			if err != nil {
				return s, false, nil, err
			}
			except = append(except, exception{excepted, caveated})
		}
	}
	return s, parts[2] != "", except, nil
}
