package openfga

import (
	"fmt"
	"slices"
	"strings"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/schema"
)

// Print writes types in OpenFGA's language, version 1.1 of its schema.
func Print(types []schema.Type) importer.Printed {
	p := printer{Printing: importer.NewPrinting(types), types: types}
	p.line(0, "model")
	p.line(1, "schema 1.1")
	for _, name := range p.BuiltIn {
		p.line(0, "\ntype %s", name)
		if name == schema.GroupType {
			p.line(1, "relations")
			p.line(2, "define member: [user, application, group#member]")
		}
	}
	for _, t := range types {
		p.typ(t)
	}
	for _, c := range p.Conditions {
		var parameters []string
		for _, parameter := range c.Parameters {
			parameters = append(parameters, parameter.Name+": "+parameter.Type)
		}
		p.line(0, "\ncondition %s(%s) {", c.Name, strings.Join(parameters, ", "))
		p.line(1, "%s", c.Expression)
		p.line(0, "}")
	}
	return importer.Printed{Text: p.text.String(), Lost: p.Lost}
}

type printer struct {
	*importer.Printing
	types []schema.Type
	text  strings.Builder

	at       string // the relation that is printed, for messages
	subjects string // its subject types
	directly int    // how often they have been printed
}

func (p *printer) line(depth int, format string, args ...any) {
	p.text.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&p.text, format+"\n", args...)
}

func (p *printer) typ(t schema.Type) {
	p.line(0, "\ntype %s", t.Name)
	if t.Description != "" {
		p.Lose("the description of type %s", t.Name)
	}
	if len(t.Relations) > 0 {
		p.line(1, "relations")
	}
	for _, r := range t.Relations {
		p.at = t.Name + "#" + r.Name
		p.subjects, p.directly = p.restrictions(t, r), 0
		rewrites := r.Rewrites
		if len(rewrites) == 0 {
			rewrites = []schema.Rewrite{{Kind: schema.This}}
		}
		text := p.union(rewrites)
		if p.directly > 1 {
			p.Lose("%s uses its own relations in several places", p.at)
		}
		p.line(2, "define %s: %s", r.Name, text)
	}
}

// restrictions returns the subject types of a relation. Any of its tuples may have any condition
// of its type.
func (p *printer) restrictions(t schema.Type, r schema.Relation) string {
	var all []string
	for _, s := range importer.SubjectTypes(p.types, r) {
		all = append(all, s.String())
		for _, c := range t.Conditions {
			all = append(all, s.String()+" with "+c.Name)
		}
	}
	if len(all) == 0 && (len(r.Rewrites) == 0 || importer.HasThis(r.Rewrites)) {
		p.Lose("%s takes no subjects", p.at)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// union prints operands of which one has to hold. The relation's own tuples have to come first.
func (p *printer) union(operands []schema.Rewrite) string {
	operands = importer.Flat(schema.Union, operands)
	slices.SortStableFunc(operands, func(a, b schema.Rewrite) int {
		switch {
		case importer.HasThis([]schema.Rewrite{a}) == importer.HasThis([]schema.Rewrite{b}):
			return 0
		case importer.HasThis([]schema.Rewrite{a}):
			return -1
		}
		return 1
	})
	return p.list(operands, " or ")
}

func (p *printer) list(operands []schema.Rewrite, operator string) string {
	var all []string
	for i, rw := range operands {
		if i > 0 && importer.HasThis([]schema.Rewrite{rw}) {
			p.Lose("%s uses its own relations after other operands", p.at)
		}
		all = append(all, p.operand(rw, len(operands) > 1))
	}
	return strings.Join(all, operator)
}

// operand prints a rewrite, in parentheses if it is beside others.
func (p *printer) operand(rw schema.Rewrite, beside bool) string {
	var text string
	switch rw.Kind {
	case schema.This:
		p.directly++
		return p.subjects
	case schema.Self:
		p.Lose("%s includes the resource itself", p.at)
		return "self"
	case schema.Computed:
		return rw.Relation
	case schema.TupleToUserset:
		if rw.Mode == schema.All {
			p.Lose("%s requires %s of all %s", p.at, rw.Computed, rw.Tupleset)
		}
		p.link(rw.Tupleset)
		return rw.Computed + " from " + rw.Tupleset
	case schema.Union, schema.Intersection:
		operands := importer.Flat(rw.Kind, rw.Children)
		if len(operands) == 1 {
			return p.operand(operands[0], beside)
		}
		if text = p.union(operands); rw.Kind == schema.Intersection {
			text = p.list(operands, " and ")
		}
	case schema.Exclusion:
		text = p.list([]schema.Rewrite{*rw.Base, *rw.Subtract}, " but not ")
	}
	if beside {
		return "(" + text + ")"
	}
	return text
}

// link reports links that OpenFGA does not follow: relations that are more than their tuples, or
// name more than single objects.
func (p *printer) link(name string) {
	typ, _, _ := strings.Cut(p.at, "#")
	for _, t := range p.types {
		for _, r := range t.Relations {
			if t.Name != typ || r.Name != name {
				continue
			}
			if len(r.Rewrites) > 0 || len(t.Conditions) > 0 ||
				slices.ContainsFunc(importer.SubjectTypes(p.types, r), func(s schema.SubjectType) bool { return s.Wildcard || s.Relation != "" }) {
				p.Lose("%s follows %s, which is more than relations to single objects", p.at, name)
			}
		}
	}
}
