package openfga

import (
	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// inline is the condition that stands for conditions in the tuples themselves.
const inline = "$expression"

// resolve refuses models that OpenFGA refuses as well: names without a definition, links that
// are not direct relations, direct relations without subject types.
func (m *model) resolve() error {
	for _, name := range m.conditionsInOrder() {
		c := m.declared[name]
		if c.GetName() != name {
			return source.Errorf(m.where.ofCondition(name), "condition %s is called %s in its definition", source.Quoted(name), source.Quoted(c.GetName()))
		}
	}
	for _, d := range m.definitions {
		for _, r := range d.relations {
			for _, s := range r.subjects {
				if err := m.resolveSubject(r, s); err != nil {
					return err
				}
			}
			direct := false
			if err := m.resolveRewrite(r, r.rewrite, &direct); err != nil {
				return err
			}
			if direct && len(r.subjects) == 0 {
				return source.Errorf(r.at, "%s takes tuples, but of no type", r.key)
			}
			if !direct && len(r.subjects) > 0 {
				return source.Errorf(r.at, "%s takes no tuples, but has types for them", r.key)
			}
		}
	}
	return nil
}

func (m *model) resolveSubject(r *relation, s *openfgav1.RelationReference) error {
	if m.types[s.GetType()] == nil {
		return source.Errorf(r.at, "%s names type %s, which does not exist", r.key, source.Quoted(s.GetType()))
	}
	if _, userset := s.GetRelationOrWildcard().(*openfgav1.RelationReference_Relation); userset {
		if err := m.mustExist(r.at, key{s.GetType(), s.GetRelation()}); err != nil {
			return err
		}
	}
	if c := s.GetCondition(); c != "" && c != inline && m.declared[c] == nil {
		return source.Errorf(r.at, "%s names condition %s, which does not exist", r.key, source.Quoted(c))
	}
	return nil
}

func (m *model) mustExist(at importer.Place, k key) error {
	if m.relations[k] == nil {
		return source.Errorf(at, "type %s has no relation %s", k.typ, source.Quoted(k.relation))
	}
	return nil
}

// resolveRewrite also reports whether tuples of the relation itself are read.
func (m *model) resolveRewrite(r *relation, rw *openfgav1.Userset, direct *bool) error {
	switch u := rw.GetUserset().(type) {
	case *openfgav1.Userset_This:
		*direct = true
	case *openfgav1.Userset_ComputedUserset:
		if object := u.ComputedUserset.GetObject(); object != "" {
			return source.Errorf(r.at, "%s refers to the object %s, which has no meaning", r.key, source.Quoted(object))
		}
		return m.mustExist(r.at, key{r.typ, u.ComputedUserset.GetRelation()})
	case *openfgav1.Userset_TupleToUserset:
		return m.resolveLink(r, u.TupleToUserset)
	default:
		for _, child := range operands(rw) {
			if err := m.resolveRewrite(r, child, direct); err != nil {
				return err
			}
		}
		if len(operands(rw)) == 0 {
			return source.Errorf(r.at, "%s has an empty definition", r.key)
		}
	}
	return nil
}

func (m *model) resolveLink(r *relation, t *openfgav1.TupleToUserset) error {
	k := key{r.typ, t.GetTupleset().GetRelation()}
	if err := m.mustExist(r.at, k); err != nil {
		return err
	}
	links := m.relations[k]
	if _, ok := links.rewrite.GetUserset().(*openfgav1.Userset_This); !ok {
		return source.Errorf(r.at, "%s goes on from %s, which is more than its tuples", r.key, k)
	}
	leads := false
	computed := t.GetComputedUserset().GetRelation()
	for _, s := range links.subjects {
		if s.GetRelationOrWildcard() != nil {
			return source.Errorf(r.at, "%s goes on from %s, which may name more than single objects", r.key, k)
		}
		leads = leads || m.relations[key{s.GetType(), computed}] != nil
	}
	if !leads {
		return source.Errorf(r.at, "%s goes on from %s, which leads to no type with a relation %s", r.key, k, source.Quoted(computed))
	}
	return nil
}

// operands returns the operands of a union, an intersection or a difference.
func operands(rw *openfgav1.Userset) []*openfgav1.Userset {
	switch u := rw.GetUserset().(type) {
	case *openfgav1.Userset_Union:
		return u.Union.GetChild()
	case *openfgav1.Userset_Intersection:
		return u.Intersection.GetChild()
	case *openfgav1.Userset_Difference:
		return []*openfgav1.Userset{u.Difference.GetBase(), u.Difference.GetSubtract()}
	}
	return nil
}
