package scim

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	filter "github.com/scim2/filter-parser/v2"
)

// Operation is an operation of a PATCH (RFC 7644 §3.5.2).
type Operation struct {
	Op    string `json:"op"` // add, replace or remove, in upper or lower case
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// MaxOperations is the maximum number of operations of a PATCH.
const MaxOperations = 1000

// target is the place that an operation changes.
type target struct {
	attribute *Attribute
	extension string      // URN; empty: the core schema
	where     *expression // of a multi-valued attribute; nil: all values
	sub       *Attribute  // nil: the attribute itself
}

// simplePath is a path without a filter, which needs no parser.
var simplePath = regexp.MustCompile(`^(?:(urn:[A-Za-z0-9:._-]+):)?([A-Za-z$][A-Za-z0-9_$-]*)(?:\.([A-Za-z$][A-Za-z0-9_$-]*))?$`)

// resolve finds the target of a path.
func (t *Type) resolve(path string) (target, error) {
	none := refuse(InvalidPath, "there is no attribute %q", path)
	var urn, name, sub string
	var where *expression
	if m := simplePath.FindStringSubmatch(path); m != nil {
		urn, name, sub = m[1], m[2], m[3]
	} else {
		lifted, texts, err := lift(path, InvalidPath)
		if err != nil {
			return target{}, err
		}
		p, err := filter.ParsePathNumber([]byte(lifted))
		if err != nil || p.ValueExpression == nil {
			return target{}, refuse(InvalidPath, "%q does not follow the grammar of RFC 7644 §3.5.2", path)
		}
		urn, name, sub = p.AttributePath.URI(), p.AttributePath.AttributeName, p.SubAttributeName()
		where = &expression{p.ValueExpression, texts}
	}
	a, extension := t.attribute(urn, name)
	if a == nil {
		return target{}, none
	}
	to := target{attribute: a, extension: extension, where: where}
	if sub != "" {
		if to.sub = find(a.SubAttributes, sub); to.sub == nil {
			return target{}, none
		}
	}
	if where != nil {
		if !a.MultiValued || a.Type != "complex" {
			return target{}, refuse(InvalidPath, "%s has no values to select", a.Name)
		}
		if _, err := where.holds(where.node, scope{attributes: a.SubAttributes}); err != nil {
			return target{}, refuse(InvalidPath, "%v", err)
		}
	}
	if a.Mutability == "readOnly" || to.sub != nil && to.sub.Mutability == "readOnly" {
		return target{}, refuse(Mutability, "%s is read-only", path)
	}
	return to, nil
}

// Patch applies operations to a canonical resource and returns the result. The resource stays the
// same.
func (t *Type) Patch(resource Object, operations []Operation) (Object, error) {
	o := clone(resource).(Object)
	err := t.each(operations, func(op string, to target, value any) error {
		return to.apply(op, o, value)
	})
	return o, err
}

// each calls apply for each target of the operations. An operation without a path has a target for
// each member of its value; those that no schema has are ignored, as in a PUT.
func (t *Type) each(operations []Operation, apply func(op string, to target, value any) error) error {
	if len(operations) == 0 || len(operations) > MaxOperations {
		return refuse(InvalidSyntax, "Operations must have between 1 and %d operations", MaxOperations)
	}
	for _, operation := range operations {
		op := strings.ToLower(operation.Op)
		if op != "add" && op != "replace" && op != "remove" {
			return refuse(InvalidSyntax, "op must be add, replace or remove")
		}
		if operation.Path != "" && t.extension(operation.Path) == nil && !strings.EqualFold(operation.Path, t.Core.ID) {
			to, err := t.resolve(operation.Path)
			if err == nil {
				err = apply(op, to, operation.Value)
			}
			if err != nil {
				return err
			}
			continue
		}
		if op == "remove" && operation.Path == "" {
			return refuse(NoTarget, "remove requires a path")
		}
		if err := t.members(op, operation.Path, operation.Value, apply); err != nil {
			return err
		}
	}
	return nil
}

// members applies an operation on a whole schema: the core schema or, if urn is not empty, the one
// that it names.
func (t *Type) members(op, urn string, value any, apply func(string, target, any) error) error {
	prefix := ""
	if urn != "" {
		prefix = urn + ":"
	}
	if op == "remove" {
		attributes := t.Core.Attributes
		if e := t.extension(urn); e != nil {
			attributes = e.Attributes
		}
		for i := range attributes {
			to, err := t.resolve(prefix + attributes[i].Name)
			if err == nil {
				err = apply(op, to, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	o, ok := value.(Object)
	if !ok {
		return refuse(InvalidValue, "the value must be an object if there is no path")
	}
	for _, name := range sortedKeys(o) {
		if e := t.extension(name); e != nil && urn == "" {
			if err := t.members(op, e.ID, o[name], apply); err != nil {
				return err
			}
			continue
		}
		to, err := t.resolve(prefix + name)
		if err != nil {
			if refused, ok := err.(*Error); ok && (refused.Type == Mutability || refused.Type == InvalidPath && !strings.Contains(name, "[")) {
				continue // such as id, which Okta sends
			}
			return err
		}
		if err := apply(op, to, o[name]); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys(o Object) []string {
	keys := make([]string, 0, len(o))
	for name := range o {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

// apply changes a resource.
func (to target) apply(op string, o Object, value any) error {
	in := o
	if to.extension != "" {
		part, _ := o[to.extension].(Object)
		if part == nil {
			part = Object{}
		}
		in = part
		defer func() {
			if len(part) == 0 {
				delete(o, to.extension)
			} else {
				o[to.extension] = part
			}
		}()
	}
	a := to.attribute
	if op == "remove" && (a.Required && to.where == nil && to.sub == nil) {
		return refuse(Mutability, "%s is required", a.Name)
	}
	switch {
	case to.where != nil:
		return to.applyToSome(op, in, value)
	case to.sub != nil && a.MultiValued:
		return to.applyToAll(op, in, value)
	case to.sub != nil:
		part, _ := in[a.Name].(Object)
		if part == nil {
			part = Object{}
		}
		if op == "remove" {
			value = nil
		}
		if err := assign(part, to.sub, value, a.Name+"."); err != nil {
			return err
		}
		return assign(in, a, part, "")
	case op == "remove":
		return to.remove(in, value)
	}
	converted, err := convert(a, value, "")
	if err != nil {
		return err
	}
	switch have := in[a.Name].(type) {
	case []any:
		if op == "add" {
			list, _ := converted.([]any)
			converted = merged(have, list)
		}
	case Object: // both operations set the given sub-attributes only
		if given, ok := converted.(Object); ok {
			for name, item := range given {
				have[name] = item
			}
			converted = have
		}
	}
	if a.Required && isEmpty(converted) {
		return refuse(InvalidValue, "%s is required", a.Name)
	}
	return assign(in, a, converted, "")
}

// merged adds values to a list that does not have them. A new preferred value replaces the former
// one (RFC 7644 §3.5.2).
func merged(have, more []any) []any {
	out := slices.Clone(have)
	for _, item := range more {
		if slices.ContainsFunc(out, func(old any) bool { return reflect.DeepEqual(old, item) }) {
			continue
		}
		if o, ok := item.(Object); ok && o["primary"] == true {
			demote(out, nil)
		}
		out = append(out, item)
	}
	return out
}

// demote makes all values but one not preferred.
func demote(list []any, except Object) {
	for _, item := range list {
		if o, ok := item.(Object); ok && o["primary"] == true && !reflect.DeepEqual(o, except) {
			o["primary"] = false
		}
	}
}

// remove removes an attribute or, as Entra ID sends it, the values in the value of the operation.
func (to target) remove(in Object, value any) error {
	have, _ := in[to.attribute.Name].([]any)
	if value == nil || have == nil {
		delete(in, to.attribute.Name)
		return nil
	}
	converted, err := convert(to.attribute, value, "")
	if err != nil {
		return err
	}
	gone, _ := converted.([]any)
	have = slices.DeleteFunc(have, func(item any) bool {
		return slices.ContainsFunc(gone, func(g any) bool {
			a, _ := item.(Object)
			b, _ := g.(Object)
			return b["value"] != nil && a["value"] == b["value"] || reflect.DeepEqual(a, b)
		})
	})
	return assign(in, to.attribute, have, "")
}

// applyToAll changes a sub-attribute of all values.
func (to target) applyToAll(op string, in Object, value any) error {
	list, _ := in[to.attribute.Name].([]any)
	if len(list) == 0 && op != "remove" {
		list = []any{Object{}}
	}
	return to.change(op, in, list, list, value)
}

// applyToSome changes the values that the filter of the path selects. A value that does not exist
// is created from a filter that only has equations, as Entra ID expects.
func (to target) applyToSome(op string, in Object, value any) error {
	a := to.attribute
	list, _ := in[a.Name].([]any)
	var selected []any
	for _, item := range list {
		o, _ := item.(Object)
		ok, err := to.where.holds(to.where.node, scope{attributes: a.SubAttributes, object: o})
		if err != nil {
			return refuse(InvalidPath, "%v", err)
		}
		if ok {
			selected = append(selected, item)
		}
	}
	if op == "remove" && to.sub == nil {
		list = slices.DeleteFunc(list, func(item any) bool {
			return slices.ContainsFunc(selected, func(s any) bool { return reflect.DeepEqual(s, item) })
		})
		return assign(in, a, list, "")
	}
	if len(selected) == 0 {
		if op == "remove" {
			return nil
		}
		made := Object{}
		if !to.where.equations(to.where.node, a.SubAttributes, made) {
			return refuse(NoTarget, "no value of %s is selected", a.Name)
		}
		list = append(list, made)
		selected = []any{made}
	}
	return to.change(op, in, list, selected, value)
}

// equations sets the attributes that a conjunction of equations demands; false for other filters.
func (e *expression) equations(node filter.Expression, attributes []Attribute, to Object) bool {
	switch n := node.(type) {
	case *filter.LogicalExpression:
		return n.Operator == filter.AND && e.equations(n.Left, attributes, to) && e.equations(n.Right, attributes, to)
	case *filter.AttributeExpression:
		a := find(attributes, n.AttributePath.AttributeName)
		value, err := e.value(n)
		return err == nil && n.Operator == filter.EQ && a != nil && value != nil && assign(to, a, value, "") == nil
	}
	return false
}

// change changes the selected values of a list.
func (to target) change(op string, in Object, list, selected []any, value any) error {
	a := to.attribute
	for _, item := range selected {
		o, ok := item.(Object)
		if !ok {
			continue
		}
		if to.sub != nil {
			if op == "remove" {
				value = nil
			}
			if err := assign(o, to.sub, value, a.Name+"."); err != nil {
				return err
			}
		} else {
			given, err := convertOne(a, value, "")
			if err != nil {
				return err
			}
			part, _ := given.(Object)
			for name, v := range part {
				o[name] = v
			}
		}
		if o["primary"] == true {
			demote(list, o)
		}
	}
	return assign(in, a, list, "")
}
