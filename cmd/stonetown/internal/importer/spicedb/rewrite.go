package spicedb

import "stonetown/schema"

// nobody is the empty set during the translation of an expression. The schema of this product
// has no rewrite for it: it is removed, or the whole permission is empty.
var nobody = schema.Rewrite{}

func isNobody(rw *schema.Rewrite) bool { return rw.Kind == "" }

// isEmpty reports whether only nil is left of a permission. A permission that refers to itself,
// directly or through others, is not empty; it is translated as it is, which has the same
// meaning.
func (m *model) isEmpty(k key) bool {
	empty, known := m.empty[k]
	member := m.members[k]
	if known || member == nil || member.Permission == nil || m.asked > maxNesting {
		return empty
	}
	m.asked++
	defer func() { m.asked-- }()
	m.empty[k] = false
	m.empty[k] = len(m.rewrites(m.types[k.typ], member.Permission)) == 0
	return m.empty[k]
}

// rewrites returns the operands of a permission as a union.
func (m *model) rewrites(d *definition, p *permission) []schema.Rewrite {
	rw := m.expression(d, p.Expression)
	switch {
	case isNobody(&rw):
		return nil
	case rw.Kind == schema.Union:
		return rw.Children
	}
	return []schema.Rewrite{rw}
}

// expression combines all subtracted operands: a-b-c is a-(b+c).
func (m *model) expression(d *definition, e *expression) schema.Rewrite {
	base := m.intersection(d, e.Terms[0])
	subtracted := make([]schema.Rewrite, 0, len(e.Terms)-1)
	for _, i := range e.Terms[1:] {
		subtracted = append(subtracted, m.intersection(d, i))
	}
	subtract := unite(subtracted)
	if isNobody(&base) || isNobody(&subtract) {
		return base
	}
	return schema.Rewrite{Kind: schema.Exclusion, Base: &base, Subtract: &subtract}
}

func (m *model) intersection(d *definition, i *intersection) schema.Rewrite {
	var all []schema.Rewrite
	for _, u := range i.Terms {
		parts := make([]schema.Rewrite, 0, len(u.Terms))
		for _, o := range u.Terms {
			parts = append(parts, m.operand(d, o))
		}
		rw := unite(parts)
		switch {
		case isNobody(&rw):
			return nobody
		case rw.Kind == schema.Intersection:
			all = append(all, rw.Children...)
		default:
			all = append(all, rw)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return schema.Rewrite{Kind: schema.Intersection, Children: all}
}

func unite(parts []schema.Rewrite) schema.Rewrite {
	var some []schema.Rewrite
	for _, rw := range parts {
		switch {
		case isNobody(&rw):
		case rw.Kind == schema.Union:
			some = append(some, rw.Children...)
		default:
			some = append(some, rw)
		}
	}
	switch len(some) {
	case 0:
		return nobody
	case 1:
		return some[0]
	}
	return schema.Rewrite{Kind: schema.Union, Children: some}
}

func (m *model) operand(d *definition, o *operand) schema.Rewrite {
	switch {
	case o.Group != nil:
		return m.expression(d, o.Group)
	case m.isSelf(o):
		return schema.Rewrite{Kind: schema.Self}
	case o.Nil, len(o.Arrows) == 0 && m.isEmpty(key{d.Name, o.Name}):
		return nobody
	case len(o.Arrows) > 0:
		relation, all := o.Arrows[0].target()
		if !m.leads(d, o.Name, relation) {
			return nobody
		}
		rw := schema.Rewrite{Kind: schema.TupleToUserset, Tupleset: m.relationNames[o.Name], Computed: m.relationNames[relation]}
		if all {
			rw.Mode = schema.All
		}
		return rw
	}
	return schema.Rewrite{Kind: schema.Computed, Relation: m.relationNames[o.Name]}
}

// leads reports whether an arrow has a target: an arrow whose relation no linked type has is an
// empty set in SpiceDB and an error here.
func (m *model) leads(d *definition, links, relation string) bool {
	from := m.members[key{d.Name, links}].Relation
	if from == nil {
		return true // the whole relation is left out
	}
	for _, s := range from.Subjects {
		if m.members[key{s.Type, relation}] != nil {
			return true
		}
	}
	return false
}
