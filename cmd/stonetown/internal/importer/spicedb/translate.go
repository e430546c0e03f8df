package spicedb

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema"
)

// translate creates the types of the definitions and compiles them.
func (m *model) translate() error {
	kept := map[string][]*member{}
	for _, d := range m.definitions {
		m.findWidened(d)
		if m.builtIn[d.Name] {
			continue
		}
		t := schema.Type{Name: m.typeNames[d.Name]}
		if len(d.Doc) <= schema.MaxText {
			t.Description = d.Doc
		}
		original := map[string]string{}
		for _, member := range d.Members {
			k := key{d.Name, member.name()}
			if m.leftOut[k] != "" {
				continue
			}
			r := schema.Relation{Name: m.relationNames[k.relation]}
			switch {
			case member.Relation != nil:
				m.relation(&t, &r, member.Relation)
			case m.isEmpty(k):
				// A relation that can have no subject.
				r.Subjects = []schema.SubjectType{}
			default:
				r.Rewrites = m.rewrites(d, member.Permission)
			}
			t.Relations = append(t.Relations, r)
			kept[t.Name] = append(kept[t.Name], member)
			original[k.relation] = r.Name
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

// relation sets the subjects of a relation, and adds their conditions to the type.
func (m *model) relation(t *schema.Type, r *schema.Relation, from *relation) {
	for _, s := range from.Subjects {
		kind := schema.SubjectType{Type: m.typeNames[s.Type], Wildcard: s.Wildcard}
		if s.Relation != "" {
			kind.Relation = m.relationNames[s.Relation]
		}
		r.Subjects = appendOnce(r.Subjects, kind)
		if s.With == "" {
			continue
		}
		have := false
		for i := range t.Conditions {
			have = have || t.Conditions[i].Name == m.conditionNames[s.With]
		}
		if !have {
			t.Conditions = append(t.Conditions, m.conditions[s.With])
		}
	}
}

// findWidened reports requirements of the schema that this product does not have.
func (m *model) findWidened(d *definition) {
	for _, member := range d.Members {
		k := key{d.Name, member.name()}
		if m.leftOut[k] != "" {
			continue
		}
		if member.Permission != nil {
			if len(member.Permission.Annotation) > 0 {
				m.data.Find(place(member.Pos), importer.Widened, fmt.Sprintf("that %s is for %s only is not checked", k, strings.Join(member.Permission.Annotation, " and ")))
			}
			continue
		}
		caveats, expires := false, false
		for _, s := range member.Relation.Subjects {
			caveats, expires = caveats || s.With != "", expires || s.Expires
		}
		if caveats {
			m.data.Find(place(member.Pos), importer.Widened, fmt.Sprintf("any tuple of %s may stand on any condition of %s, or on none", k, d.Name))
		}
		if expires {
			m.data.Find(place(member.Pos), importer.Widened, fmt.Sprintf("tuples of %s may have an expiration and need not, as everywhere", k))
		}
	}
}

// misfit is an error of the compiler, at the place of its subject.
func (m *model) misfit(err error, kept map[string][]*member) error {
	var at *schema.Error
	if !errors.As(err, &at) {
		return err
	}
	for _, d := range m.definitions {
		if m.typeNames[d.Name] != at.Type || m.builtIn[d.Name] {
			continue
		}
		where := place(d.Pos)
		if number, ok := strings.CutPrefix(at.Path, "relations["); ok {
			number, _, _ = strings.Cut(number, "]")
			if i, err := strconv.Atoi(number); err == nil && i < len(kept[at.Type]) {
				where = place(kept[at.Type][i].Pos)
			}
		}
		return source.Errorf(where, "%s", at.Message)
	}
	return err
}
