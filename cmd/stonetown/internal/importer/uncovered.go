package importer

import (
	"context"
	"fmt"
	"slices"

	"stonetown/engine/assertions"
	"stonetown/schema"
	"stonetown/schema/condition"
)

// Uncovered lists the parts of the types that no assertion depends on: without a part, every
// assertion still holds. For each part in turn the types are changed and the assertions run, until
// one fails. All assertions must hold with the types as they are.
//
// The parts are the sources of each relation, the restrictions of intersections and exclusions, and
// the outcomes of conditions. Relations that only link resources are covered by what follows the
// links.
func Uncovered(ctx context.Context, w *Data) ([]string, error) {
	m, err := assertions.Load(ctx, withNever(w.Types), w.Relations, nil)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	var parts []string
	for v := range variants(w.Types) {
		if m.Define(ctx, v.types) != nil {
			continue // the changed type has no meaning, such as an operand too deep
		}
		covered := false
		for _, a := range w.Assertions {
			if covered = !a.Holds(a.Want(), m.Ask(ctx, a)); covered {
				break
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !covered {
			parts = append(parts, v.part)
		}
	}
	return parts, nil
}

// never is a relation without subjects that each type has beside its own.
const never = "stonetown_never"

func withNever(types []schema.Type) []schema.Type {
	types = slices.Clone(types)
	for i := range types {
		types[i].Relations = append(slices.Clone(types[i].Relations), schema.Relation{Name: never, Subjects: []schema.SubjectType{}})
	}
	return types
}

// variant is the types without one part.
type variant struct {
	part  string // for users
	types []schema.Type
}

// variants yields the types without each of their parts.
func variants(types []schema.Type) func(yield func(variant) bool) {
	links := linking(types)
	return func(yield func(variant) bool) {
		for i, t := range types {
			for j, r := range t.Relations {
				with := func(part string, rewrites []schema.Rewrite) bool {
					changed := withNever(types)
					changed[i].Relations[j].Rewrites = rewrites
					return yield(variant{fmt.Sprintf("%s#%s: %s", t.Name, r.Name, part), changed})
				}
				rewrites := r.Rewrites
				if len(rewrites) == 0 {
					rewrites = []schema.Rewrite{{Kind: schema.This}}
				}
				for k := range rewrites {
					for part, changed := range without(rewrites[k], links[schema.RelationName{Type: t.Name, Relation: r.Name}]) {
						all := slices.Clone(rewrites)
						all[k] = changed
						if !with(part, all) {
							return
						}
					}
				}
			}
			for j, c := range t.Conditions {
				for _, outcome := range []string{"true", "false"} {
					changed := withNever(types)
					changed[i].Conditions = slices.Clone(t.Conditions)
					// The parameters stay in use, because values may be stored for them.
					changed[i].Conditions[j] = condition.Definition{Name: c.Name, Parameters: c.Parameters, Expression: outcome}
					other := map[string]string{"true": "false", "false": "true"}[outcome]
					if !yield(variant{fmt.Sprintf("%s: condition %s is %s", t.Name, c.Name, other), changed}) {
						return
					}
				}
			}
		}
	}
}

// linking returns the relations whose tuples arrows follow.
func linking(types []schema.Type) map[schema.RelationName]bool {
	links := map[schema.RelationName]bool{}
	for _, t := range types {
		var visit func(rw *schema.Rewrite)
		visit = func(rw *schema.Rewrite) {
			if rw == nil {
				return
			}
			if rw.Kind == schema.TupleToUserset {
				links[schema.RelationName{Type: t.Name, Relation: rw.Tupleset}] = true
			}
			for i := range rw.Children {
				visit(&rw.Children[i])
			}
			visit(rw.Base)
			visit(rw.Subtract)
		}
		for _, r := range t.Relations {
			for i := range r.Rewrites {
				visit(&r.Rewrites[i])
			}
		}
	}
	return links
}

// without yields a rewrite without each of its parts, which are named for users. A part of a union
// becomes empty, and an operand of an intersection is left out. link: the relation's tuples are links.
func without(rw schema.Rewrite, link bool) func(yield func(string, schema.Rewrite) bool) {
	return func(yield func(string, schema.Rewrite) bool) {
		within(rw, link, yield)
	}
}

func within(rw schema.Rewrite, link bool, yield func(string, schema.Rewrite) bool) bool {
	// replaced yields rw with each variant of one of its operands.
	replaced := func(operand schema.Rewrite, set func(into *schema.Rewrite, operand schema.Rewrite)) bool {
		return within(operand, link, func(part string, changed schema.Rewrite) bool {
			whole := rw
			whole.Children = slices.Clone(rw.Children)
			set(&whole, changed)
			return yield(part, whole)
		})
	}
	switch rw.Kind {
	case schema.Union:
		for i := range rw.Children {
			if !replaced(rw.Children[i], func(into *schema.Rewrite, o schema.Rewrite) { into.Children[i] = o }) {
				return false
			}
		}
		return true
	case schema.Intersection:
		for i, child := range rw.Children {
			if len(rw.Children) > 1 {
				fewer := rw
				fewer.Children = slices.Delete(slices.Clone(rw.Children), i, i+1)
				if !yield("and "+describeRewrite(child), fewer) {
					return false
				}
			}
			if child.Kind == schema.Union || child.Kind == schema.Intersection || child.Kind == schema.Exclusion {
				if !replaced(child, func(into *schema.Rewrite, o schema.Rewrite) { into.Children[i] = o }) {
					return false
				}
			}
		}
		return true
	case schema.Exclusion:
		return replaced(*rw.Base, func(into *schema.Rewrite, o schema.Rewrite) { into.Base = &o }) &&
			within(*rw.Subtract, link, func(part string, changed schema.Rewrite) bool {
				whole := rw
				whole.Subtract = &changed
				return yield("without "+part, whole)
			})
	case schema.This:
		if link {
			return true
		}
	}
	return yield(describeRewrite(rw), schema.Rewrite{Kind: schema.Intersection, Children: []schema.Rewrite{rw, {Kind: schema.Computed, Relation: never}}})
}

// describeRewrite names a rewrite.
func describeRewrite(rw schema.Rewrite) string {
	switch rw.Kind {
	case schema.This:
		return "its own relations"
	case schema.Self:
		return "the resource itself"
	case schema.Computed:
		return rw.Relation
	case schema.TupleToUserset:
		if rw.Mode == schema.All {
			return rw.Computed + " of all " + rw.Tupleset
		}
		return rw.Computed + " of " + rw.Tupleset
	case schema.Exclusion:
		return describeRewrite(*rw.Base) + " without " + describeRewrite(*rw.Subtract)
	default:
		return string(rw.Kind)
	}
}
