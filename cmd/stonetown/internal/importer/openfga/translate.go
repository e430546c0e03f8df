package openfga

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema"
)

// translate creates the resource types and compiles them.
func (m *model) translate() error {
	kept := map[string][]*relation{}
	for _, d := range m.definitions {
		if m.builtIn[d.name] {
			continue
		}
		t := schema.Type{Name: m.typeNames[d.name]}
		original := map[string]string{}
		for _, r := range d.relations {
			if m.leftOut[r.key] != "" {
				continue
			}
			name := m.relationNames[r.relation]
			t.Relations = append(t.Relations, schema.Relation{Name: name, Rewrites: m.rewrites(r), Subjects: m.subjects(&t, r)})
			kept[t.Name] = append(kept[t.Name], r)
			original[r.relation] = name
		}
		importer.PinActions(&t, original)
		m.data.Types = append(m.data.Types, t)
	}
	var err error
	if m.compiled, err = schema.Compile(m.data.Types); err != nil {
		return m.misfit(err, kept)
	}
	return nil
}

// subjects returns the subjects of a relation. Their conditions are added to the type.
func (m *model) subjects(t *schema.Type, r *relation) []schema.SubjectType {
	var kinds []schema.SubjectType
	conditional := false
	for _, s := range r.subjects {
		kinds = appendOnce(kinds, schema.SubjectType{
			Type: m.typeNames[s.GetType()], Relation: m.relationNames[s.GetRelation()], Wildcard: s.GetWildcard() != nil,
		})
		name := s.GetCondition()
		if name == "" {
			continue
		}
		conditional = true
		have := false
		for i := range t.Conditions {
			have = have || t.Conditions[i].Name == m.conditionNames[name]
		}
		if !have {
			t.Conditions = append(t.Conditions, m.conditions[name])
		}
	}
	if conditional {
		m.data.Find(r.at, importer.Widened, fmt.Sprintf("any tuple of %s may stand on any condition of %s, or on none", r.key, r.typ))
	}
	return kinds
}

// rewrites returns the operands of a relation as a union; none if only its tuples are read.
func (m *model) rewrites(r *relation) []schema.Rewrite {
	if _, direct := r.rewrite.GetUserset().(*openfgav1.Userset_This); direct {
		return nil
	}
	rw := m.rewrite(r.rewrite)
	if rw.Kind == schema.Union {
		return rw.Children
	}
	return []schema.Rewrite{rw}
}

func (m *model) rewrite(from *openfgav1.Userset) schema.Rewrite {
	var parts []schema.Rewrite
	for _, child := range operands(from) {
		parts = append(parts, m.rewrite(child))
	}
	switch u := from.GetUserset().(type) {
	case *openfgav1.Userset_ComputedUserset:
		return schema.Rewrite{Kind: schema.Computed, Relation: m.relationNames[u.ComputedUserset.GetRelation()]}
	case *openfgav1.Userset_TupleToUserset:
		return schema.Rewrite{
			Kind:     schema.TupleToUserset,
			Tupleset: m.relationNames[u.TupleToUserset.GetTupleset().GetRelation()],
			Computed: m.relationNames[u.TupleToUserset.GetComputedUserset().GetRelation()],
		}
	case *openfgav1.Userset_Union:
		return schema.Rewrite{Kind: schema.Union, Children: parts}
	case *openfgav1.Userset_Intersection:
		return schema.Rewrite{Kind: schema.Intersection, Children: parts}
	case *openfgav1.Userset_Difference:
		return schema.Rewrite{Kind: schema.Exclusion, Base: &parts[0], Subtract: &parts[1]}
	}
	return schema.Rewrite{Kind: schema.This}
}

// misfit is an error of the compiler, at the place of its subject.
func (m *model) misfit(err error, kept map[string][]*relation) error {
	var at *schema.Error
	if !errors.As(err, &at) {
		return source.Errorf(importer.Place{File: m.where.file}, "%v", err)
	}
	for _, d := range m.definitions {
		if m.typeNames[d.name] != at.Type || m.builtIn[d.name] {
			continue
		}
		where, subject := d.at, "type "+d.name
		if number, ok := strings.CutPrefix(at.Path, "relations["); ok {
			number, _, _ = strings.Cut(number, "]")
			if i, err := strconv.Atoi(number); err == nil && i < len(kept[at.Type]) {
				r := kept[at.Type][i]
				where, subject = r.at, r.String()
			}
		}
		return source.Errorf(where, "%s: %s", subject, at.Message)
	}
	return source.Errorf(importer.Place{File: m.where.file}, "%v", err)
}
