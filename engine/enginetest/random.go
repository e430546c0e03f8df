package enginetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

// RandomTypes draws resource types that compile: every kind of rewrite, open
// and restricted relations, recursion, links in all directions.
func RandomTypes(r *rand.Rand) []schema.Type {
	for {
		types := randomTypes(r)
		if _, err := schema.Compile(types); err == nil {
			return types
		}
	}
}

var (
	typeNames     = []string{"doc", "folder", "team"}
	relationNames = []string{"a", "b", "c", "d", "e"}
	conditions    = []condition.Definition{
		{Name: "one", Expression: "x", Parameters: []condition.Parameter{{Name: "x", Type: "bool"}}},
		{Name: "two", Expression: "x || y", Parameters: []condition.Parameter{{Name: "x", Type: "bool"}, {Name: "y", Type: "bool"}}},
	}
)

func randomTypes(r *rand.Rand) []schema.Type {
	types := make([]schema.Type, 1+r.IntN(len(typeNames)))
	for i := range types {
		types[i].Name = typeNames[i]
		types[i].Conditions = conditions
		for j := range 2 + r.IntN(len(relationNames)-1) {
			rel := schema.Relation{Name: relationNames[j]}
			for range r.IntN(4) { // none: direct
				rel.Rewrites = append(rel.Rewrites, randomRewrite(r, 0))
			}
			if r.IntN(3) > 0 {
				rel.Subjects = randomSubjectTypes(r)
			}
			types[i].Relations = append(types[i].Relations, rel)
		}
	}
	if r.IntN(3) > 0 {
		recurse(r, &types[r.IntN(len(types))])
	}
	return types
}

// recurse makes a relation of a type subtract a set that leads back to it, along links or
// usersets that tuples often name.
func recurse(r *rand.Rand, t *schema.Type) {
	at, link := r.IntN(len(t.Relations)), r.IntN(len(t.Relations))
	if at == link {
		return
	}
	self, via := t.Relations[at].Name, t.Relations[link].Name
	t.Relations[link].Rewrites = nil
	base := schema.Rewrite{Kind: schema.This}
	if r.IntN(3) == 0 {
		base = randomRewrite(r, 1)
	}
	if r.IntN(3) == 0 { // both sides are recursive
		along := schema.Rewrite{Kind: schema.TupleToUserset, Tupleset: via, Computed: self}
		base = schema.Rewrite{Kind: pick(r, []schema.Kind{schema.Union, schema.Intersection}), Children: []schema.Rewrite{base, along}}
	}
	subtract := schema.Rewrite{Kind: schema.TupleToUserset, Tupleset: via, Computed: self, Mode: pick(r, []schema.Mode{schema.Any, schema.All})}
	t.Relations[link].Subjects = []schema.SubjectType{{Type: t.Name}}
	if r.IntN(3) == 0 {
		subtract = schema.Rewrite{Kind: schema.Computed, Relation: via}
		t.Relations[link].Subjects = []schema.SubjectType{{Type: schema.UserType}, {Type: t.Name, Relation: self}}
	}
	if r.IntN(2) == 0 {
		subtract = schema.Rewrite{Kind: schema.Union, Children: []schema.Rewrite{subtract, randomRewrite(r, 2)}}
	}
	t.Relations[at].Rewrites = append(t.Relations[at].Rewrites[:0], schema.Rewrite{Kind: schema.Exclusion, Base: &base, Subtract: &subtract})
	if r.IntN(2) == 0 {
		t.Relations[at].Rewrites = append(t.Relations[at].Rewrites, randomRewrite(r, 1))
	}
}

func randomSubjectTypes(r *rand.Rand) []schema.SubjectType {
	subjects := []schema.SubjectType{{Type: schema.UserType}}
	for range r.IntN(5) {
		switch r.IntN(5) {
		case 0:
			subjects = append(subjects, schema.SubjectType{Type: schema.UserType, Wildcard: true})
		case 1:
			subjects = append(subjects, schema.SubjectType{Type: schema.GroupType, Relation: schema.GroupMember})
		case 2:
			subjects = append(subjects, schema.SubjectType{Type: pick(r, typeNames)})
		default:
			subjects = append(subjects, schema.SubjectType{Type: pick(r, typeNames), Relation: pick(r, relationNames)})
		}
	}
	return subjects
}

func randomRewrite(r *rand.Rand, depth int) schema.Rewrite {
	kinds := 10
	if depth == 3 {
		kinds = 7
	}
	switch r.IntN(kinds) {
	case 0, 1:
		return schema.Rewrite{Kind: schema.This}
	case 2, 3:
		return schema.Rewrite{Kind: schema.Computed, Relation: pick(r, relationNames)}
	case 4, 5:
		return schema.Rewrite{
			Kind: schema.TupleToUserset, Tupleset: pick(r, relationNames), Computed: pick(r, relationNames), Mode: pick(r, []schema.Mode{"", schema.Any, schema.All}),
		}
	case 6:
		return schema.Rewrite{Kind: schema.Self}
	case 7, 8:
		kind := schema.Union
		if r.IntN(2) == 0 {
			kind = schema.Intersection
		}
		rw := schema.Rewrite{Kind: kind}
		for range 1 + r.IntN(3) {
			rw.Children = append(rw.Children, randomRewrite(r, depth+1))
		}
		return rw
	default:
		base, subtract := randomRewrite(r, depth+1), randomRewrite(r, depth+1)
		return schema.Rewrite{Kind: schema.Exclusion, Base: &base, Subtract: &subtract}
	}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// universe draws tuples and questions over few objects, so that they often share one.
type universe struct {
	rand     *rand.Rand
	types    []schema.Type
	compiled *schema.Compiled
	objects  int // per type
	users    int
	soon     bool // relations expire at about the present, too
}

func (u *universe) object() tuplestore.Object {
	return tuplestore.Object{Type: pick(u.rand, u.types).Name, ID: fmt.Sprint(u.rand.IntN(u.objects))}
}

// node draws a node of a defined type or, sometimes, of a group.
func (u *universe) node() tuplestore.Node {
	if u.rand.IntN(6) == 0 {
		return tuplestore.Node{Object: tuplestore.Object{Type: schema.GroupType, ID: fmt.Sprint(u.rand.IntN(u.objects))}, Relation: schema.GroupMember}
	}
	t := pick(u.rand, u.types)
	return tuplestore.Node{Object: tuplestore.Object{Type: t.Name, ID: fmt.Sprint(u.rand.IntN(u.objects))}, Relation: pick(u.rand, t.Relations).Name}
}

// tuple draws a tuple that the schema allows.
func (u *universe) tuple() (tuplestore.Tuple, bool) {
	for range 20 {
		node := u.node()
		kinds := u.compiled.Subjects(node.Object.Type, node.Relation)
		if len(kinds) == 0 {
			continue
		}
		kind := pick(u.rand, kinds)
		s := tuplestore.Subject{Type: kind.Type, ID: fmt.Sprint(u.rand.IntN(max(u.objects, u.users))), Relation: kind.Relation}
		switch {
		case kind.Wildcard:
			s.ID = tuplestore.Wildcard
		case kind.Type == schema.GroupType && kind.Relation == "":
			continue // a group as a subject represents its members
		}
		return tuplestore.Tuple{Object: node.Object, Relation: node.Relation, Subject: s}, true
	}
	return tuplestore.Tuple{}, false
}

// subject draws the subject of a question: mostly users, sometimes a userset, an object or
// the wildcard of a type.
func (u *universe) subject() tuplestore.Subject {
	if u.rand.IntN(8) == 0 {
		return tuplestore.Subject{Type: pick(u.rand, []string{schema.UserType, schema.UserType, pick(u.rand, u.types).Name}), ID: tuplestore.Wildcard}
	}
	switch u.rand.IntN(8) {
	case 0:
		n := u.node()
		return tuplestore.Subject{Type: n.Object.Type, ID: n.Object.ID, Relation: n.Relation}
	case 1:
		o := u.object()
		return tuplestore.Subject{Type: o.Type, ID: o.ID}
	default:
		return tuplestore.Subject{Type: schema.UserType, ID: fmt.Sprint(u.rand.IntN(u.users))}
	}
}

// op draws a relation to be written, one in four with a qualifier.
func (u *universe) op() (engine.WriteOp, bool) {
	t, ok := u.tuple()
	op := engine.WriteOp{Resource: t.Object, Relation: t.Relation, Subject: t.Subject}
	if !ok || u.rand.IntN(4) > 0 {
		return op, ok
	}
	switch u.rand.IntN(5) {
	case 0:
		op.ExpiresAt = time.Unix(1_000_000_000, 0)
	case 1:
		op.ExpiresAt = time.Unix(30_000_000_000, 0)
	case 2, 3:
		if u.soon {
			op.ExpiresAt = time.Now().Add(time.Duration(u.rand.IntN(50_000)-10_000) * time.Microsecond)
		}
	}
	if t.Object.Type != schema.GroupType && u.rand.IntN(3) > 0 {
		op.Condition = pick(u.rand, conditions).Name
		if u.rand.IntN(3) == 0 {
			op.Context = []byte(fmt.Sprintf(`{"x":%t}`, u.rand.IntN(2) == 0))
		}
	}
	return op, true
}

// values draws the context of a request: all parameters, some or none.
func (u *universe) values() map[string]any {
	values := map[string]any{}
	for _, name := range []string{"x", "y"} {
		if u.rand.IntN(4) > 0 {
			values[name] = u.rand.IntN(2) == 0
		}
	}
	return values
}
