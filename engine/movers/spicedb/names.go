package spicedb

import (
	"stonetown/engine/movers"
	"stonetown/schema"
)

// findBuiltIn finds the definitions that mean what the built-in types of the
// same name do.
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
	for _, d := range m.definitions {
		for _, member := range d.Members {
			if member.Relation == nil {
				continue
			}
			for _, s := range member.Relation.Subjects {
				if s.Type == schema.GroupType && s.Relation == "" {
					return
				}
			}
		}
	}
	m.builtIn[schema.GroupType] = true
	if len(outline.Relations[0].Subjects) < 3 {
		m.world.Find(place(d.Pos), movers.Widened, "members of a group may be users, applications and members of groups")
	}
}

// outline is a definition as far as [movers.IsBuiltIn] looks at it.
func (m *model) outline(d *definition) schema.Type {
	t := schema.Type{Name: d.Name}
	for _, member := range d.Members {
		r := schema.Relation{Name: member.name()}
		if member.Permission != nil {
			r.Rewrites = []schema.Rewrite{{Kind: schema.Computed}}
		} else {
			for _, s := range member.Relation.Subjects {
				if s.With != "" {
					return schema.Type{} // no built-in type has conditions
				}
				r.Subjects = appendOnce(r.Subjects, schema.SubjectType{Type: s.Type, Relation: s.Relation, Wildcard: s.Wildcard})
			}
		}
		t.Relations = append(t.Relations, r)
	}
	return t
}

// rename gives everything its name here.
func (m *model) rename() {
	types, relations, conditions := map[string]movers.Place{}, map[string]movers.Place{}, map[string]movers.Place{}
	for _, d := range m.definitions {
		types[d.Name] = place(d.Pos)
		for _, member := range d.Members {
			first(relations, member.name(), place(member.Pos))
		}
	}
	for _, c := range m.caveats {
		conditions[c.Name] = place(c.Pos)
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
