package spicedb

import (
	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema"
	"stonetown/schema/condition"
)

// outlines returns the members of the definitions that [importer.Data.BuiltIns] reads.
func (m *model) outlines() (all []schema.Type, group importer.Place) {
	for _, d := range m.definitions {
		all = append(all, outline(d))
		if d.Name == schema.GroupType {
			group = place(d.Pos)
		}
	}
	return all, group
}

func outline(d *definition) schema.Type {
	t := schema.Type{Name: d.Name}
	for _, member := range d.Members {
		r := schema.Relation{Name: member.name()}
		if member.Permission != nil {
			r.Rewrites = []schema.Rewrite{{Kind: schema.Computed}}
		} else {
			for _, s := range member.Relation.Subjects {
				if s.With != "" {
					t.Conditions = []condition.Definition{{}}
				}
				r.Subjects = appendOnce(r.Subjects, schema.SubjectType{Type: s.Type, Relation: s.Relation, Wildcard: s.Wildcard})
			}
		}
		t.Relations = append(t.Relations, r)
	}
	return t
}

// rename assigns the translated names.
func (m *model) rename() {
	types, relations, conditions := map[string]importer.Place{}, map[string]importer.Place{}, map[string]importer.Place{}
	for _, d := range m.definitions {
		types[d.Name] = place(d.Pos)
		for _, member := range d.Members {
			source.First(relations, member.name(), place(member.Pos))
		}
	}
	for _, c := range m.caveats {
		conditions[c.Name] = place(c.Pos)
	}
	m.typeNames, m.relationNames, m.conditionNames = m.data.RenameAll(types, relations, conditions, func(name string) bool { return m.builtIn[name] })
}

func appendOnce[T comparable](list []T, v T) []T {
	for _, have := range list {
		if have == v {
			return list
		}
	}
	return append(list, v)
}
