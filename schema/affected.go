package schema

import (
	"cmp"
	"reflect"
	"slices"
)

// RelationName names a relation of a type.
type RelationName struct{ Type, Relation string }

// Affected lists, in order, the relations of before whose sets may differ if after takes the
// place of before and the tuples stay the same. The sets of all others are equal. Tuples that
// only one of the two allows are not considered.
//
// A relation is affected if its rewrites or the conditions of its type differ, if after does
// not have it, or if it depends on an affected relation or on a new one.
func Affected(before, after *Compiled) []RelationName {
	affected := map[relationKey]bool{}
	for key := range after.relations {
		affected[key] = before.relations[key] == nil
	}
	for key, was := range before.relations {
		is := after.relations[key]
		affected[key] = is == nil || !sameRewrites(was.relation, is.relation) ||
			!sameConditions(before.byName[key.typ], after.byName[key.typ])
	}
	dependents := map[relationKey][]relationKey{}
	both := []*Compiled{before, after}
	open := [][]relationKey{before.open(), after.open()} // those that are not affected
	for _, c := range both {
		for _, d := range c.dependencies() {
			dependents[d.to] = append(dependents[d.to], d.from)
		}
	}
	var todo []relationKey
	for key, ok := range affected {
		if ok {
			todo = append(todo, key)
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		add := func(from relationKey) {
			if !affected[from] {
				affected[from] = true
				todo = append(todo, from)
			}
		}
		for _, from := range dependents[at] {
			add(from)
		}
		// Of open relations there is no list of what they depend on, which would be long.
		for i, c := range both {
			open[i] = slices.DeleteFunc(open[i], func(from relationKey) bool {
				if c.Allows(from.typ, from.relation, SubjectType{Type: at.typ, Relation: at.relation}) == Allowed {
					add(from)
				}
				return affected[from]
			})
		}
	}
	var names []RelationName
	for key := range before.relations {
		if affected[key] {
			names = append(names, RelationName{key.typ, key.relation})
		}
	}
	slices.SortFunc(names, func(a, b RelationName) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Relation, b.Relation))
	})
	return names
}

// AffectedActions lists, in order, the actions of a type of before whose answers may differ:
// those that after maps to another relation, or to one of these.
func AffectedActions(before, after *Compiled, typ string, affected []RelationName) []string {
	var names []string
	for _, action := range before.Actions(typ) {
		was, _ := before.ActionRelation(typ, action)
		is, _ := after.ActionRelation(typ, action)
		if was != is || slices.Contains(affected, RelationName{typ, was}) {
			names = append(names, action)
		}
	}
	return names
}

func sameRewrites(a, b *Relation) bool {
	return slices.EqualFunc(storeRewrites(a.Rewrites), storeRewrites(b.Rewrites), func(x, y storedRewrite) bool { return reflect.DeepEqual(x, y) })
}

// sameConditions reports whether each condition of a has the same meaning in b. Tuples that name
// a condition which b does not have are not allowed by it.
func sameConditions(a, b *Type) bool {
	if b == nil {
		return false
	}
	expressions := map[string]string{}
	for _, d := range b.Conditions {
		expressions[d.Name] = d.Expression
	}
	for _, d := range a.Conditions {
		if now, ok := expressions[d.Name]; ok && now != d.Expression {
			return false
		}
	}
	return true
}

// open returns the relations that take tuples with subjects of every type.
func (c *Compiled) open() []relationKey {
	var keys []relationKey
	for key, info := range c.relations {
		if info.direct && info.relation.Subjects == nil {
			keys = append(keys, key)
		}
	}
	return keys
}
