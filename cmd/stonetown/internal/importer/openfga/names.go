package openfga

import (
	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema"
	"stonetown/schema/condition"
)

// outlines returns the members of the types that [importer.Data.BuiltIns] reads.
func (m *model) outlines() (all []schema.Type, group importer.Place) {
	for _, d := range m.definitions {
		all = append(all, outline(d))
		if d.name == schema.GroupType && len(d.relations) > 0 {
			group = d.relations[0].at
		}
	}
	return all, group
}

func outline(d *definition) schema.Type {
	t := schema.Type{Name: d.name}
	for _, r := range d.relations {
		o := schema.Relation{Name: r.relation}
		if _, direct := r.rewrite.GetUserset().(*openfgav1.Userset_This); !direct {
			o.Rewrites = []schema.Rewrite{{Kind: schema.Computed}}
		}
		for _, s := range r.subjects {
			if s.GetCondition() != "" {
				t.Conditions = []condition.Definition{{}}
			}
			o.Subjects = appendOnce(o.Subjects, schema.SubjectType{Type: s.GetType(), Relation: s.GetRelation(), Wildcard: s.GetWildcard() != nil})
		}
		t.Relations = append(t.Relations, o)
	}
	return t
}

// rename assigns the translated names.
func (m *model) rename() {
	types, relations, conditions := map[string]importer.Place{}, map[string]importer.Place{}, map[string]importer.Place{}
	for _, d := range m.definitions {
		types[d.name] = d.at
		for _, r := range d.relations {
			source.First(relations, r.relation, r.at)
		}
	}
	for name := range m.declared {
		conditions[name] = m.where.ofCondition(name)
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
