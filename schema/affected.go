package schema

import (
	"cmp"
	"maps"
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
	for _, c := range []*Compiled{before, after} {
		for _, d := range slices.Concat(c.dependencies(), c.openDependencies()) {
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
		for _, from := range dependents[at] {
			if !affected[from] {
				affected[from] = true
				todo = append(todo, from)
			}
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

// openDependencies are the dependencies of open relations on the usersets that their tuples may
// name.
func (c *Compiled) openDependencies() []dependency {
	var found []dependency
	for key, info := range maps.All(c.relations) {
		if !info.direct || info.relation.Subjects != nil {
			continue
		}
		for _, s := range c.Subjects(key.typ, key.relation) {
			if s.Relation != "" {
				found = append(found, dependency{from: key, to: relationKey{s.Type, s.Relation}, byData: true})
			}
		}
	}
	return found
}
