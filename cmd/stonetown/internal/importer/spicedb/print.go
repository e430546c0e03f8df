package spicedb

import (
	"fmt"
	"slices"
	"strings"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/schema"
)

// Print writes types in SpiceDB's language. It has relations, which take tuples, and permissions,
// which are derived, but nothing that is both.
func Print(types []schema.Type) importer.Printed {
	p := printer{Printing: importer.NewPrinting(types), types: types}
	for _, c := range p.Conditions {
		var parameters []string
		for _, parameter := range c.Parameters {
			parameters = append(parameters, parameter.Name+" "+parameter.Type)
			if strings.Contains(parameter.Type, "uint") {
				p.Lose("parameter %s of condition %s may not be negative", parameter.Name, c.Name)
			}
		}
		p.line("caveat %s(%s) {\n\t%s\n}\n", c.Name, strings.Join(parameters, ", "), c.Expression)
	}
	for _, name := range p.BuiltIn {
		if name == schema.GroupType {
			p.line("definition group {\n\trelation member: user | application | group#member\n}\n")
			continue
		}
		p.line("definition %s {}\n", name)
	}
	for _, t := range types {
		p.typ(t)
	}
	text := strings.TrimSuffix(p.text.String(), "\n")
	if p.self {
		text = "use self\n\n" + text
	}
	return importer.Printed{Text: text, Lost: p.Lost}
}

type printer struct {
	*importer.Printing
	types []schema.Type
	text  strings.Builder

	at     string // the relation that is printed, for messages
	direct string // the name for its own tuples
	self   bool   // a permission includes the resource itself
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *printer) typ(t schema.Type) {
	if strings.Contains(t.Description, "*/") {
		p.Lose("the description of type %s", t.Name)
	} else if t.Description != "" {
		p.line("/** %s */", t.Description)
	}
	p.line("definition %s {", t.Name)
	for _, r := range t.Relations {
		p.at = t.Name + "#" + r.Name
		switch {
		case len(r.Rewrites) == 0:
			p.relation(t, r, r.Name)
		case importer.HasThis(r.Rewrites):
			p.direct = r.Name + "_direct"
			p.Lose("%s is derived and takes relations of its own, which are %s in SpiceDB", p.at, p.direct)
			p.relation(t, r, p.direct)
			p.line("\tpermission %s = %s", r.Name, p.union(r.Rewrites))
		default:
			p.line("\tpermission %s = %s", r.Name, p.union(r.Rewrites))
		}
	}
	p.line("}\n")
}

// relation prints the subject types of a relation. Any of its tuples may have any condition of its
// type.
func (p *printer) relation(t schema.Type, r schema.Relation, name string) {
	subjects := importer.SubjectTypes(p.types, r)
	if len(subjects) == 0 {
		p.line("\tpermission %s = nil", name)
		return
	}
	var all []string
	for _, s := range subjects {
		all = append(all, s.String())
		for _, c := range t.Conditions {
			all = append(all, s.String()+" with "+c.Name)
		}
	}
	p.line("\trelation %s: %s", name, strings.Join(all, " | "))
}

func (p *printer) union(operands []schema.Rewrite) string {
	return p.list(importer.Flat(schema.Union, operands), " + ")
}

func (p *printer) list(operands []schema.Rewrite, operator string) string {
	var all []string
	for _, rw := range operands {
		all = append(all, p.operand(rw, len(operands) > 1))
	}
	return strings.Join(all, operator)
}

// operand prints a rewrite, in parentheses if it is beside others.
func (p *printer) operand(rw schema.Rewrite, beside bool) string {
	var text string
	switch rw.Kind {
	case schema.This:
		return p.direct
	case schema.Self:
		p.self = true
		return "self"
	case schema.Computed:
		return rw.Relation
	case schema.TupleToUserset:
		p.link(rw.Tupleset)
		if rw.Mode == schema.All {
			return fmt.Sprintf("%s.all(%s)", rw.Tupleset, rw.Computed)
		}
		return rw.Tupleset + "->" + rw.Computed
	case schema.Union, schema.Intersection:
		operands := importer.Flat(rw.Kind, rw.Children)
		if len(operands) == 1 {
			return p.operand(operands[0], beside)
		}
		if text = p.union(operands); rw.Kind == schema.Intersection {
			text = p.list(operands, " & ")
		}
	case schema.Exclusion:
		text = p.list([]schema.Rewrite{*rw.Base, *rw.Subtract}, " - ")
	}
	if beside {
		return "(" + text + ")"
	}
	return text
}

// link reports links that SpiceDB does not follow: from permissions, or to all objects of a type.
func (p *printer) link(name string) {
	typ, _, _ := strings.Cut(p.at, "#")
	for _, t := range p.types {
		for _, r := range t.Relations {
			if t.Name == typ && r.Name == name && (len(r.Rewrites) > 0 ||
				slices.ContainsFunc(importer.SubjectTypes(p.types, r), func(s schema.SubjectType) bool { return s.Wildcard })) {
				p.Lose("%s follows %s, which is derived or names all objects of a type", p.at, name)
			}
		}
	}
}
