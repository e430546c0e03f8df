// Package importertest compares types for the tests of readers and printers.
package importertest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/schema"
)

// Meaning returns lines that are equal for types with the same meaning and names: a line for each
// relation, action and condition. The order of relations and of the operands of unions does not
// matter. Descriptions and times are left out.
func Meaning(types []schema.Type) []string {
	compiled, err := schema.Compile(types)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, t := range types {
		all = append(all, "type "+t.Name)
		for _, r := range t.Relations {
			line := fmt.Sprintf("%s#%s %s", t.Name, r.Name, union(r.Rewrites))
			if len(r.Rewrites) == 0 {
				line = fmt.Sprintf("%s#%s this", t.Name, r.Name)
			}
			if strings.Contains(line, "this") {
				subjects := make([]string, 0, len(r.Subjects))
				for _, s := range r.Subjects {
					subjects = append(subjects, s.String())
				}
				slices.Sort(subjects)
				line += fmt.Sprint(" ", slices.Compact(subjects), r.Subjects == nil)
			}
			all = append(all, line)
		}
		for _, action := range compiled.Actions(t.Name) {
			relation, _ := compiled.ActionRelation(t.Name, action)
			all = append(all, fmt.Sprintf("%s %s is %s", t.Name, action, relation))
		}
		for _, c := range t.Conditions {
			all = append(all, fmt.Sprintf("%s if %s%v %s", t.Name, c.Name, c.Parameters, strings.Join(strings.Fields(c.Expression), " ")))
		}
	}
	slices.Sort(all)
	return all
}

func union(operands []schema.Rewrite) string {
	var all []string
	for _, rw := range importer.Flat(schema.Union, operands) {
		all = append(all, text(rw))
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, " or ") + ")"
}

func text(rw schema.Rewrite) string {
	switch rw.Kind {
	case schema.Computed:
		return rw.Relation
	case schema.TupleToUserset:
		return fmt.Sprintf("%s of %s %s", rw.Computed, cmp.Or(rw.Mode, schema.Any), rw.Tupleset)
	case schema.Union:
		return union([]schema.Rewrite{rw})
	case schema.Intersection:
		var all []string
		for _, operand := range importer.Flat(schema.Intersection, rw.Children) {
			all = append(all, text(operand))
		}
		if len(all) == 1 {
			return all[0]
		}
		return "(" + strings.Join(all, " and ") + ")"
	case schema.Exclusion:
		base, subtracted := only(*rw.Base), []schema.Rewrite{*rw.Subtract}
		for base.Kind == schema.Exclusion { // a - b - c is a without b or c
			subtracted = append(subtracted, *base.Subtract)
			base = only(*base.Base)
		}
		return "(" + text(base) + " without " + union(subtracted) + ")"
	}
	return string(rw.Kind)
}

// only returns the operand of a union or intersection of one, and other rewrites as they are.
func only(rw schema.Rewrite) schema.Rewrite {
	if rw.Kind == schema.Union || rw.Kind == schema.Intersection {
		if all := importer.Flat(rw.Kind, rw.Children); len(all) == 1 {
			return only(all[0])
		}
	}
	return rw
}
