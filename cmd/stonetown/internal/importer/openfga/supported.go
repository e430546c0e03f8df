package openfga

import (
	"fmt"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema"
)

// leaveOut finds the relations that cannot be translated, and all that depend on them.
func (m *model) leaveOut() {
	for k, r := range m.relations {
		if why := m.obstacle(r); why != "" {
			m.leftOut[k] = why
		}
	}
	m.spread()
	for _, d := range m.definitions {
		for _, r := range d.relations {
			if why := m.leftOut[r.key]; why != "" {
				m.data.Find(r.at, importer.Unsupported, fmt.Sprintf("%s is left out: %s", r.key, why))
			}
		}
	}
}

// obstacle returns the reason why a relation by itself has no equivalent.
func (m *model) obstacle(r *relation) string {
	for _, s := range r.subjects {
		switch c := s.GetCondition(); {
		case c == inline:
			return "its tuples may bring conditions of their own (" + inline + ")"
		case c != "" && m.refused[c] != "":
			return fmt.Sprintf("it uses condition %s, which is left out", source.Clip(c))
		}
	}
	switch size, depth := measure(r.rewrite); {
	case size > schema.MaxRewrites:
		return fmt.Sprintf("its definition has more than %d parts", schema.MaxRewrites)
	case depth > schema.MaxDepth:
		return fmt.Sprintf("its definition is nested more than %d deep", schema.MaxDepth)
	}
	return ""
}

func measure(rw *openfgav1.Userset) (size, depth int) {
	for _, child := range operands(rw) {
		n, deep := measure(child)
		size, depth = size+n, max(depth, deep)
	}
	return size + 1, depth + 1
}

// spread leaves out relations that use one that is left out. Of several reasons it returns the
// nearest, in a stable order.
func (m *model) spread() {
	users := map[key][]key{}
	var todo []key
	for _, d := range m.definitions {
		for _, r := range d.relations {
			m.uses(r, func(used key) { users[used] = append(users[used], r.key) })
			if m.leftOut[r.key] != "" {
				todo = append(todo, r.key)
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

// uses visits the relations whose members can be members of a relation, and those that it links
// to.
func (m *model) uses(r *relation, visit func(key)) {
	for _, s := range r.subjects {
		if s.GetRelation() != "" {
			visit(key{s.GetType(), s.GetRelation()})
		}
	}
	m.usesOf(r, r.rewrite, visit)
}

func (m *model) usesOf(r *relation, rw *openfgav1.Userset, visit func(key)) {
	switch u := rw.GetUserset().(type) {
	case *openfgav1.Userset_ComputedUserset:
		visit(key{r.typ, u.ComputedUserset.GetRelation()})
	case *openfgav1.Userset_TupleToUserset:
		links := key{r.typ, u.TupleToUserset.GetTupleset().GetRelation()}
		visit(links)
		for _, s := range m.relations[links].subjects {
			visit(key{s.GetType(), u.TupleToUserset.GetComputedUserset().GetRelation()})
		}
	}
	for _, child := range operands(rw) {
		m.usesOf(r, child, visit)
	}
}
