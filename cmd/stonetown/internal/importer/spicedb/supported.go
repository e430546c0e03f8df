package spicedb

import (
	"fmt"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/schema"
)

// leaveOut finds the relations that cannot be translated, and all that depend on them.
func (m *model) leaveOut() {
	for _, d := range m.definitions {
		for _, member := range d.Members {
			if why := m.obstacle(d, member); why != "" {
				m.leftOut[key{d.Name, member.name()}] = why
			}
		}
	}
	m.spread()
	for _, d := range m.definitions {
		for _, member := range d.Members {
			k := key{d.Name, member.name()}
			if why := m.leftOut[k]; why != "" {
				m.data.Find(place(member.Pos), importer.Unsupported, fmt.Sprintf("%s is left out: %s", k, why))
			}
		}
	}
}

// obstacle returns the reason why a relation or permission by itself has no equivalent.
func (m *model) obstacle(d *definition, member *member) string {
	why := ""
	if member.Relation != nil {
		for _, s := range member.Relation.Subjects {
			if s.With != "" && m.refused[s.With] != "" {
				why = fmt.Sprintf("it uses caveat %s, which is left out", s.With)
			}
		}
		return why
	}
	operands(member.Permission.Expression, func(o *operand) {
		for range o.Arrows {
			links := m.members[key{d.Name, o.Name}]
			if links.Relation == nil {
				why = fmt.Sprintf("an arrow starts from a relation, and %s is a permission", o.Name)
				continue
			}
			for _, s := range links.Relation.Subjects {
				if s.Wildcard {
					why = fmt.Sprintf("an arrow starts from single resources, and %s may name all of a type", o.Name)
				}
			}
		}
	})
	if why != "" {
		return why
	}
	size, depth := 0, 0
	for _, rw := range m.rewrites(d, member.Permission) {
		n, deep := measure(&rw)
		size, depth = size+n, max(depth, deep)
	}
	switch {
	case size > schema.MaxRewrites:
		return fmt.Sprintf("its expression has more than %d parts", schema.MaxRewrites)
	case depth > schema.MaxDepth:
		return fmt.Sprintf("its expression is nested more than %d deep", schema.MaxDepth)
	}
	return ""
}

func measure(rw *schema.Rewrite) (size, depth int) {
	for i := range rw.Children {
		n, deep := measure(&rw.Children[i])
		size, depth = size+n, max(depth, deep)
	}
	for _, side := range []*schema.Rewrite{rw.Base, rw.Subtract} {
		if side != nil {
			n, deep := measure(side)
			size, depth = size+n, max(depth, deep)
		}
	}
	return size + 1, depth + 1
}

// spread leaves out relations that use one that is left out: a set with too few members also
// excludes too few where it is subtracted.
func (m *model) spread() {
	users := map[key][]key{}
	var todo []key
	for _, d := range m.definitions {
		for _, member := range d.Members {
			k := key{d.Name, member.name()}
			m.uses(d, member, func(used key) { users[used] = append(users[used], k) })
			if m.leftOut[k] != "" {
				todo = append(todo, k)
			}
		}
	}
	for len(todo) > 0 {
		k := todo[0]
		todo = todo[1:]
		for _, user := range users[k] {
			if m.leftOut[user] == "" {
				m.leftOut[user] = fmt.Sprintf("it uses %s, which is left out", k)
				todo = append(todo, user)
			}
		}
	}
}

// uses visits the relations and permissions whose members can be members of a relation or
// permission.
func (m *model) uses(d *definition, member *member, visit func(key)) {
	if member.Relation != nil {
		for _, s := range member.Relation.Subjects {
			if s.Relation != "" {
				visit(key{s.Type, s.Relation})
			}
		}
		return
	}
	operands(member.Permission.Expression, func(o *operand) {
		if o.Nil || m.isSelf(o) {
			return
		}
		visit(key{d.Name, o.Name})
		for _, a := range o.Arrows {
			relation, _ := a.target()
			if links := m.members[key{d.Name, o.Name}].Relation; links != nil {
				for _, s := range links.Subjects {
					visit(key{s.Type, relation})
				}
			}
		}
	})
}
