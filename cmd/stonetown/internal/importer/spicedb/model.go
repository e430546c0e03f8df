package spicedb

import (
	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema"
	"stonetown/schema/condition"
)

// model is a schema during its translation. All keys are the original names.
type model struct {
	*sources
	data *importer.Data

	types    map[string]*definition
	members  map[key]*member
	declared map[string]*caveat

	// builtIn are the definitions that every tenant has.
	builtIn map[string]bool
	// The translated names.
	typeNames, relationNames, conditionNames map[string]string

	conditions map[string]condition.Definition
	// refused are the caveats that are not valid conditions here, with the reasons.
	refused map[string]string
	// leftOut are the relations and permissions that are not translated, with the reasons.
	leftOut map[key]string
	// empty stores whether a permission has no members.
	empty map[key]bool
	asked int // open calls of isEmpty

	compiled *schema.Compiled
}

// key names a relation or permission of a definition.
type key struct{ typ, relation string }

func (k key) String() string { return k.typ + "#" + k.relation }

// schema parses the text of a schema and adds its types to the data.
func (r *reader) schema(name, source string, lines []int) (*model, error) {
	s, err := r.collect(name, source, lines)
	if err != nil {
		return nil, err
	}
	m := &model{
		sources: s, data: r.data,
		types: map[string]*definition{}, members: map[key]*member{}, declared: map[string]*caveat{},
		conditions: map[string]condition.Definition{}, refused: map[string]string{},
		leftOut: map[key]string{}, empty: map[key]bool{},
	}
	for _, c := range s.caveats {
		m.declared[c.Name] = c
	}
	for _, d := range s.definitions {
		m.types[d.Name] = d
		for _, member := range d.Members {
			m.members[key{d.Name, member.name()}] = member
		}
	}
	if err := m.resolve(); err != nil {
		return nil, err
	}
	m.builtIn = m.data.BuiltIns(m.outlines())
	m.rename()
	m.translateCaveats()
	m.leaveOut()
	return m, m.translate()
}

// resolve refuses names without a definition.
func (m *model) resolve() error {
	for _, d := range m.definitions {
		for _, member := range d.Members {
			if member.Permission != nil {
				if err := m.resolveExpression(d, member.Permission.Expression); err != nil {
					return err
				}
				continue
			}
			for _, s := range member.Relation.Subjects {
				if err := m.resolveSubject(s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// resolveSubject also distinguishes the word expiration from a caveat of that name, and a
// subject without a relation from one with the relation "...".
func (m *model) resolveSubject(s *subject) error {
	at := place(s.Pos)
	if s.With == "expiration" && (m.flags["expiration"] || m.declared[s.With] == nil) {
		s.With, s.Expires = "", true
	}
	if s.Relation == "..." {
		s.Relation = ""
	}
	if m.types[s.Type] == nil {
		return source.Errorf(at, "definition %s does not exist", s.Type)
	}
	if s.Relation != "" && m.members[key{s.Type, s.Relation}] == nil {
		return source.Errorf(at, "%s has no relation or permission %s", s.Type, s.Relation)
	}
	if s.With != "" && m.declared[s.With] == nil {
		return source.Errorf(at, "caveat %s does not exist", s.With)
	}
	return nil
}

func (m *model) resolveExpression(d *definition, e *expression) error {
	var err error
	operands(e, func(o *operand) {
		if err != nil || m.isSelf(o) || o.Name == "" {
			return
		}
		if m.members[key{d.Name, o.Name}] == nil {
			err = source.Errorf(place(o.Pos), "%s has no relation or permission %s", d.Name, o.Name)
			return
		}
		if len(o.Arrows) > 1 {
			err = source.Errorf(place(o.Arrows[1].Pos), "an arrow cannot follow another: name the first in a permission of its own")
			return
		}
		for _, a := range o.Arrows {
			if a.Function != "" && a.Function != "any" && a.Function != "all" {
				err = source.Errorf(place(a.Pos), "%s is not a function of arrows: these are any and all", a.Function)
			}
		}
	})
	return err
}

// operands visits the operands of an expression, also those in parentheses.
func operands(e *expression, visit func(*operand)) {
	for _, i := range e.Terms {
		for _, u := range i.Terms {
			for _, o := range u.Terms {
				if o.Group != nil {
					operands(o.Group, visit)
				} else {
					visit(o)
				}
			}
		}
	}
}

// isSelf reports whether an operand is the resource itself, which is a word of the language
// only if the schema enables it.
func (m *model) isSelf(o *operand) bool {
	return o.Name == "self" && m.flags["self"] && len(o.Arrows) == 0
}

// target returns the relation of an arrow, and whether all linked objects must have it.
func (a *arrow) target() (relation string, all bool) {
	if a.Function != "" {
		return a.Of, a.Function == "all"
	}
	return a.Target, false
}
