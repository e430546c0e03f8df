package importer

import (
	"fmt"
	"maps"
	"slices"

	"stonetown/schema"
	"stonetown/schema/condition"
)

// Printed is the text of resource types in the language of another engine. If nothing is lost, to
// read it gives the same types; only the order of the operands of a union may differ.
type Printed struct {
	Text string
	Lost []string // what the language cannot say, for users
}

// Printing has what the printers of all languages need to know of the types.
type Printing struct {
	// BuiltIn are the built-in types that relations name, in a stable order. Other engines have
	// to declare them.
	BuiltIn []string
	// Conditions are those of all types: in other engines conditions belong to no type.
	Conditions []condition.Definition
	Lost       []string
}

// NewPrinting prepares types for a printer.
func NewPrinting(types []schema.Type) *Printing {
	p := new(Printing)
	named := map[string]bool{}
	for _, t := range types {
		p.conditions(t)
		p.actions(t)
		if t.Deprecated != "" {
			p.Lose("type %s is deprecated: %s", t.Name, t.Deprecated)
		}
		for _, r := range t.Relations {
			if r.Deprecated != "" {
				p.Lose("%s#%s is deprecated: %s", t.Name, r.Name, r.Deprecated)
			}
			if r.Cardinality == schema.One {
				p.Lose("%s#%s takes one subject", t.Name, r.Name)
			}
			if takesTuples(r) && r.Subjects == nil {
				p.Lose("%s#%s takes subjects of every type; it is printed with those that are defined", t.Name, r.Name)
			}
			for _, s := range SubjectTypes(types, r) {
				switch {
				case schema.IsSystem(s.Type):
					named[s.Type] = true
				case !slices.ContainsFunc(types, func(t schema.Type) bool { return t.Name == s.Type }):
					p.Lose("%s#%s takes subjects of type %s, which is not defined", t.Name, r.Name, s.Type)
				}
			}
		}
	}
	if named[schema.GroupType] {
		named[schema.UserType], named[schema.ApplicationType] = true, true // its members
	}
	for _, name := range []string{schema.UserType, schema.ApplicationType, schema.GroupType} {
		if named[name] {
			p.BuiltIn = append(p.BuiltIn, name)
		}
		delete(named, name)
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		p.Lose("type %s is part of this product", name)
	}
	return p
}

// Lose adds something that the language cannot say.
func (p *Printing) Lose(format string, args ...any) {
	p.Lost = append(p.Lost, fmt.Sprintf(format, args...))
}

func (p *Printing) conditions(t schema.Type) {
	for _, c := range t.Conditions {
		i := slices.IndexFunc(p.Conditions, func(have condition.Definition) bool { return have.Name == c.Name })
		switch {
		case i < 0:
			p.Conditions = append(p.Conditions, c)
		case p.Conditions[i].Expression != c.Expression || !slices.Equal(p.Conditions[i].Parameters, c.Parameters):
			p.Lose("condition %s of type %s differs from that of another type", c.Name, t.Name)
		}
	}
	used := slices.ContainsFunc(t.Relations, takesTuples)
	if len(t.Conditions) > 0 && !used {
		p.Lose("no relation of type %s can have its conditions", t.Name)
	}
}

// actions reports the actions that other engines, which know only relations, do not have.
func (p *Printing) actions(t schema.Type) {
	names := map[string]string{}
	for _, r := range t.Relations {
		names[r.Name] = r.Name
	}
	read := schema.Type{Actions: map[string]string{}} // the actions of a type that is read
	PinActions(&read, names)
	for _, action := range slices.Sorted(maps.Keys(t.Actions)) {
		if relation := t.Actions[action]; read.Actions[action] != relation && action != relation {
			p.Lose("action %s of type %s is relation %s", action, t.Name, relation)
		}
	}
	for action, relation := range map[string]string{"delete": "owner", "edit": "editor", "view": "viewer"} {
		if names[action] != "" && names[relation] != "" && t.Actions[action] == "" {
			p.Lose("action %s of type %s is relation %s, although there is a relation %s", action, t.Name, relation, action)
		}
	}
}

// SubjectTypes returns the subjects of a relation, each once. For a relation that takes every type they are the
// objects of all types that are defined, users, applications and groups.
func SubjectTypes(types []schema.Type, r schema.Relation) []schema.SubjectType {
	if !takesTuples(r) {
		return nil
	}
	if r.Subjects != nil {
		var subjects []schema.SubjectType
		for _, s := range r.Subjects {
			if !slices.Contains(subjects, s) {
				subjects = append(subjects, s)
			}
		}
		return subjects
	}
	subjects := []schema.SubjectType{{Type: schema.UserType}, {Type: schema.ApplicationType}, {Type: schema.GroupType, Relation: schema.GroupMember}}
	for _, t := range types {
		subjects = append(subjects, schema.SubjectType{Type: t.Name})
	}
	return subjects
}

func takesTuples(r schema.Relation) bool { return len(r.Rewrites) == 0 || HasThis(r.Rewrites) }

// HasThis reports whether rewrites use the tuples of their relation.
func HasThis(rewrites []schema.Rewrite) bool {
	return slices.ContainsFunc(rewrites, func(rw schema.Rewrite) bool {
		return rw.Kind == schema.This || HasThis(rw.Children) ||
			rw.Base != nil && HasThis([]schema.Rewrite{*rw.Base, *rw.Subtract})
	})
}

// Flat returns operands with those of the same kind, union or intersection, replaced by theirs.
func Flat(kind schema.Kind, operands []schema.Rewrite) []schema.Rewrite {
	var all []schema.Rewrite
	for _, rw := range operands {
		if rw.Kind == kind || len(rw.Children) == 1 && (rw.Kind == schema.Union || rw.Kind == schema.Intersection) {
			all = append(all, Flat(kind, rw.Children)...)
			continue
		}
		all = append(all, rw)
	}
	return all
}
