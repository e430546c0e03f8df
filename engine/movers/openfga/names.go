package openfga

import (
	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"stonetown/engine/movers"
	"stonetown/schema"
)

// findBuiltIn finds the types that mean what the built-in types of the same name
// do.
func (m *model) findBuiltIn() {
	m.builtIn = map[string]bool{}
	for _, name := range []string{schema.UserType, schema.ApplicationType} {
		if d := m.types[name]; d != nil {
			m.builtIn[name] = movers.IsBuiltIn(m.outline(d))
		}
	}
	d := m.types[schema.GroupType]
	if d == nil {
		return
	}
	outline := m.outline(d)
	if !movers.IsBuiltIn(outline) {
		return
	}
	for _, s := range outline.Relations[0].Subjects {
		if s.Relation == "" && !m.builtIn[s.Type] {
			return
		}
	}
	// Here a group as a subject stands for its members, there for itself.
	for _, r := range m.relations {
		for _, s := range r.subjects {
			if s.GetType() == schema.GroupType && s.GetRelation() == "" {
				return
			}
		}
	}
	m.builtIn[schema.GroupType] = true
	if len(outline.Relations[0].Subjects) < 3 {
		m.world.Find(d.relations[0].at, movers.Widened, "members of a group may be users, applications and members of groups")
	}
}

// outline is a type as far as [movers.IsBuiltIn] looks at it.
func (m *model) outline(d *definition) schema.Type {
	t := schema.Type{Name: d.name}
	for _, r := range d.relations {
		o := schema.Relation{Name: r.relation}
		if _, direct := r.rewrite.GetUserset().(*openfgav1.Userset_This); !direct {
			o.Rewrites = []schema.Rewrite{{Kind: schema.Computed}}
		}
		for _, s := range r.subjects {
			if s.GetCondition() != "" {
				return schema.Type{} // no built-in type has conditions
			}
			o.Subjects = appendOnce(o.Subjects, schema.SubjectType{Type: s.GetType(), Relation: s.GetRelation(), Wildcard: s.GetWildcard() != nil})
		}
		t.Relations = append(t.Relations, o)
	}
	return t
}

// rename gives everything its name here.
func (m *model) rename() {
	types, relations, conditions := map[string]movers.Place{}, map[string]movers.Place{}, map[string]movers.Place{}
	for _, d := range m.definitions {
		types[d.name] = d.at
		for _, r := range d.relations {
			first(relations, r.relation, r.at)
		}
	}
	for name := range m.declared {
		conditions[name] = m.where.ofCondition(name)
	}
	m.renameAll(types, relations, conditions, func(name string) bool { return m.builtIn[name] })
}

func (m *model) renameAll(types, relations, conditions map[string]movers.Place, builtIn func(string) bool) {
	none := func(string) bool { return false }
	m.typeNames = m.world.Rename("type", types, func(name string) bool { return schema.IsReserved(name) && !builtIn(name) })
	m.relationNames = m.world.Rename("relation", relations, none)
	m.conditionNames = m.world.Rename("condition", conditions, none)
}

func appendOnce[T comparable](list []T, v T) []T {
	for _, have := range list {
		if have == v {
			return list
		}
	}
	return append(list, v)
}
