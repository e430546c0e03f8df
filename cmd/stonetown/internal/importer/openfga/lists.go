package openfga

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/tuplestore"
)

func (t *tester) required(n *yaml.Node, members map[string]*yaml.Node, name string) (string, error) {
	if members[name] == nil {
		return "", source.Errorf(t.at(n), "%s is missing", name)
	}
	return t.scalar(members[name])
}

func (t *tester) listObjects(n *yaml.Node) error {
	members, context, assertions, err := t.common(n, "list_objects", "user", "type")
	if err != nil {
		return err
	}
	user, err := t.required(n, members, "user")
	if err != nil {
		return err
	}
	typ, err := t.required(n, members, "type")
	if err != nil {
		return err
	}
	s, who := t.asker(user)
	for _, a := range assertions {
		objects, err := t.texts(a.value)
		if err != nil {
			return err
		}
		problem := t.relationProblem(key{typ, a.key})
		if problem == "" {
			problem = who
		}
		want := make([]string, 0, len(objects))
		for _, object := range objects {
			o, err := parseObject(object.text)
			switch {
			case err != nil:
				problem = err.Error()
			case o.Type != typ:
				problem = fmt.Sprintf("%s is not of type %s", source.Quoted(object.text), source.Clip(typ))
			}
			want = append(want, o.ID)
		}
		list := importer.Resources{Subject: t.subject(s), Action: t.action(a.key), Type: t.typeNames[typ], Want: want}
		err = t.add(a, "the objects "+typ+" with "+a.key+" for "+user, problem, importer.Assertion{Resources: &list, Context: context})
		if err != nil {
			return err
		}
	}
	return nil
}

// filter is a kind of subjects in a question of list_users.
type filter struct{ typ, relation string }

func (f filter) String() string {
	if f.relation == "" {
		return f.typ
	}
	return key(f).String()
}

func (t *tester) listUsers(n *yaml.Node) error {
	members, context, assertions, err := t.common(n, "list_users", "object", "user_filter")
	if err != nil {
		return err
	}
	object, err := t.required(n, members, "object")
	if err != nil {
		return err
	}
	if members["user_filter"] == nil {
		return source.Errorf(t.at(n), "user_filter is missing")
	}
	filters, err := t.filters(members["user_filter"])
	if err != nil {
		return err
	}
	for _, a := range assertions {
		answer, err := t.members(a.value, t.passOver("list of users"), "users")
		if err != nil {
			return err
		}
		var users []located
		if answer["users"] != nil {
			if users, err = t.texts(answer["users"]); err != nil {
				return err
			}
		}
		wants, fault := sortOut(filters, users)
		resource, err := parseObject(object)
		if err != nil {
			fault = err.Error()
		} else if problem := t.relationProblem(key{resource.Type, a.key}); problem != "" {
			fault = problem
		} else if problem := tooLong(resource.ID); problem != "" {
			fault = problem
		}
		for i, f := range filters {
			problem := fault
			if problem == "" {
				problem = t.filterProblem(f)
			}
			list := importer.Subjects{
				Resource: t.model.object(resource), Action: t.action(a.key),
				Type: t.typeNames[f.typ], Relation: t.relationNames[f.relation], Want: wants[i],
			}
			err := t.add(a, "the users "+f.String()+" of "+object+"#"+a.key, problem, importer.Assertion{Subjects: &list, Context: context})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tester) filters(n *yaml.Node) ([]filter, error) {
	items, err := t.items(n)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 || len(items) > maxFilters {
		return nil, source.Errorf(t.at(n), "user_filter has %d kinds of users, 1 to %d can be read", len(items), maxFilters)
	}
	var filters []filter
	for _, item := range items {
		members, err := t.members(item, t.refuse, "type", "relation")
		if err != nil {
			return nil, err
		}
		var f filter
		if f.typ, err = t.required(item, members, "type"); err != nil {
			return nil, err
		}
		if members["relation"] != nil {
			if f.relation, err = t.scalar(members["relation"]); err != nil {
				return nil, err
			}
		}
		filters = appendOnce(filters, f)
	}
	return filters, nil
}

func (t *tester) filterProblem(f filter) string {
	s := tuplestore.Subject{Type: f.typ, Relation: f.relation}
	if problem := t.subjectProblem(s); problem != "" {
		return problem
	}
	if standsForMembers(t.subject(s)) {
		return "a group as a subject stands for its members here"
	}
	return ""
}

// sortOut assigns the users to the filters of their kind.
func sortOut(filters []filter, users []located) (wants [][]string, problem string) {
	wants = make([][]string, len(filters))
	for i := range wants {
		wants[i] = []string{}
	}
	for _, user := range users {
		s, err := parseUser(user.text)
		if err != nil {
			return wants, err.Error()
		}
		matches := false
		for i, f := range filters {
			if f == (filter{s.Type, s.Relation}) {
				wants[i] = append(wants[i], s.ID)
				matches = true
			}
		}
		if !matches {
			return wants, fmt.Sprintf("%s is not of a kind that user_filter names", source.Quoted(user.text))
		}
	}
	return wants, ""
}
