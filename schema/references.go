package schema

import "fmt"

// validateReferences validates references between types. A type that is not defined yet may
// be named, because types are defined one after another, and no tuple can name it before.
func (c *Compiled) validateReferences() error {
	for i := range c.Types {
		t := &c.Types[i]
		for j := range t.Relations {
			if err := c.validateSubjects(t, j); err != nil {
				return err
			}
		}
		for j := range t.Relations {
			if err := c.validateArrows(t, j); err != nil {
				return err
			}
		}
		if err := validateProductive(t); err != nil {
			return err
		}
	}
	return nil
}

func (c *Compiled) validateSubjects(t *Type, index int) error {
	r := &t.Relations[index]
	if n := len(r.Subjects); n > MaxSubjects {
		return fieldError(t.Name, fmt.Sprintf("relations[%d].subjects", index), "too_many", "%d subject types, at most %d are allowed", n, MaxSubjects)
	}
	for k, s := range r.Subjects {
		path := fmt.Sprintf("relations[%d].subjects[%d]", index, k)
		if !namePattern.MatchString(s.Type) || s.Relation != "" && !namePattern.MatchString(s.Relation) {
			return fieldError(t.Name, path, "subject_type_invalid", "%q is not of the form type, type#relation or type:*", s)
		}
		if target := c.byName[s.Type]; target != nil && s.Relation != "" && target.relation(s.Relation) == nil {
			return fieldError(t.Name, path, "subject_type_invalid", "type %q has no relation %q", s.Type, s.Relation)
		}
	}
	return nil
}

// validateArrows refuses a tuple_to_userset whose computed relation none of the types that
// may be linked has.
func (c *Compiled) validateArrows(t *Type, index int) error {
	for j := range t.Relations[index].Rewrites {
		var err error
		t.Relations[index].Rewrites[j].visit(func(rw *Rewrite) {
			if err != nil || rw.Kind != TupleToUserset || c.canLink(t, rw) {
				return
			}
			err = rewriteError(t.Name, fmt.Sprintf("relations[%d].rewrites[%d]", index, j), "unknown_relation",
				"no type that relation %q may name has a relation %q", rw.Tupleset, rw.Computed)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Compiled) canLink(t *Type, rw *Rewrite) bool {
	subjects := t.relation(rw.Tupleset).Subjects
	if subjects == nil {
		return true
	}
	for _, s := range subjects {
		if target := c.byName[s.Type]; target == nil || target.relation(rw.Computed) != nil {
			return true
		}
	}
	return false
}

// validateProductive refuses relations that only refer to each other, whose sets are always
// empty.
func validateProductive(t *Type) error {
	productive := map[string]bool{}
	var can func(rw *Rewrite) bool
	can = func(rw *Rewrite) bool {
		switch rw.Kind {
		case Computed:
			return productive[rw.Relation]
		case Union:
			for i := range rw.Children {
				if can(&rw.Children[i]) {
					return true
				}
			}
			return false
		case Intersection:
			for i := range rw.Children {
				if !can(&rw.Children[i]) {
					return false
				}
			}
			return true
		case Exclusion:
			return can(rw.Base)
		default:
			return true
		}
	}
	for grown := true; grown; {
		grown = false
		for i := range t.Relations {
			r := &t.Relations[i]
			if productive[r.Name] {
				continue
			}
			ok := len(r.Rewrites) == 0
			for j := range r.Rewrites {
				ok = ok || can(&r.Rewrites[j])
			}
			if ok {
				productive[r.Name] = true
				grown = true
			}
		}
	}
	for i := range t.Relations {
		if !productive[t.Relations[i].Name] {
			return rewriteError(t.Name, fmt.Sprintf("relations[%d].rewrites[0]", i), "cycle_without_this",
				"relation %q is defined only by itself, so it is always empty", t.Relations[i].Name)
		}
	}
	return nil
}
