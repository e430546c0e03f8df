package scim

import (
	filter "github.com/scim2/filter-parser/v2"

	"stonetown/identity"
)

// condition is what the database decides of a filter. It holds at least for all resources for
// which the filter does, and for no others if it is exact.
type condition struct {
	where identity.Where
	exact bool
}

var undecided = condition{}

// conditions compiles the filters of a client on one type.
type conditions struct {
	of       *Type
	client   Client
	groupsOf func(userID string) ([]string, error)
}

func (c conditions) compile(e expression, node filter.Expression) (condition, error) {
	switch n := node.(type) {
	case *filter.LogicalExpression:
		left, err := c.compile(e, n.Left)
		if err != nil {
			return undecided, err
		}
		right, err := c.compile(e, n.Right)
		both := condition{exact: left.exact && right.exact}
		if n.Operator == filter.AND {
			both.where = left.where.And(right.where)
		} else {
			both.where = left.where.Or(right.where)
		}
		return both, err
	case *filter.NotExpression:
		inner, err := c.compile(e, n.Expression)
		if err != nil || !inner.exact {
			return undecided, err
		}
		return condition{inner.where.Not(), true}, nil
	case *filter.ValuePath:
		return c.valuePath(e, n)
	case *filter.AttributeExpression:
		return c.attribute(e, n)
	}
	return undecided, nil
}

// valuePath compiles emails[value eq "x"], in which only a conjunction narrows the condition.
func (c conditions) valuePath(e expression, n *filter.ValuePath) (condition, error) {
	w := undecided
	var walk func(filter.Expression) error
	walk = func(node filter.Expression) error {
		switch inner := node.(type) {
		case *filter.LogicalExpression:
			if inner.Operator == filter.AND {
				if err := walk(inner.Left); err != nil {
					return err
				}
				return walk(inner.Right)
			}
		case *filter.AttributeExpression:
			path := n.AttributePath
			path.SubAttribute = &inner.AttributePath.AttributeName
			one, err := c.attribute(e, &filter.AttributeExpression{AttributePath: path, Operator: inner.Operator, CompareValue: inner.CompareValue})
			if err != nil {
				return err
			}
			w.where = w.where.And(one.where)
		}
		return nil
	}
	return w, walk(n.ValueFilter)
}

var comparisons = map[filter.CompareOperator]identity.Comparison{
	filter.EQ: identity.Equal, filter.NE: identity.Different, filter.GT: identity.Greater, filter.GE: identity.GreaterOrEqual,
	filter.LT: identity.Less, filter.LE: identity.LessOrEqual, filter.CO: identity.Contains, filter.SW: identity.StartsWith, filter.EW: identity.EndsWith,
}

func (c conditions) attribute(e expression, n *filter.AttributeExpression) (condition, error) {
	a, _, err := scope{of: c.of}.values(n.AttributePath)
	if err != nil {
		return undecided, err
	}
	top, urn := c.of.attribute(n.AttributePath.URI(), n.AttributePath.AttributeName)
	name := top.Name
	if n.AttributePath.SubAttribute != nil {
		name += "." + a.Name
	}
	value, err := e.value(n)
	if err != nil {
		return undecided, err
	}
	if c.of == Groups && (name == "members" || name == "members.value") {
		id, ok := value.(string)
		if !ok || n.Operator != filter.EQ {
			return undecided, refuse(InvalidFilter, "members can only be compared with an id by eq")
		}
		ids, err := c.groupsOf(id)
		return condition{identity.WhereIDIn(ids), true}, err
	}
	if name == "members.type" || name == "members.$ref" || top.Name == "groups" || top.Name == "schemas" || name == "meta.location" || name == "meta.version" {
		return undecided, refuse(InvalidFilter, "%s cannot be part of a filter", name)
	}
	if n.Operator == filter.PR || value == nil {
		return undecided, nil
	}
	if urn == "" {
		if w, ok := c.column(name, n.Operator, value); ok {
			return condition{w, true}, nil
		}
	}
	return condition{where: c.text(name, a, n.Operator, value)}, nil
}

// column returns the exact condition on an attribute that has a column.
func (c conditions) column(name string, op filter.CompareOperator, value any) (w identity.Where, ok bool) {
	negated := func(w identity.Where) (identity.Where, bool) {
		if op == filter.NE {
			return w.Not(), true
		}
		return w, op == filter.EQ
	}
	s, isText := value.(string)
	switch {
	case name == "id" && isText:
		return negated(identity.WhereID(s))
	case name == "externalId" && isText && s != "":
		return negated(identity.WhereExternalID(c.client.TenantID, c.client.ID, s))
	case name == "userName" && isText:
		return identity.WhereEmail(comparisons[op], s), true
	case name == "active":
		b, isBool := truth(value)
		w := identity.WhereDisabled()
		if b {
			w = w.Not()
		}
		if !isBool {
			return w, false
		}
		return negated(w)
	case name == "meta.created" || name == "meta.lastModified":
		at, isInstant := instant(value)
		if !isInstant || op == filter.CO || op == filter.SW || op == filter.EW {
			return identity.Where{}, false
		}
		if name == "meta.created" {
			return identity.WhereCreated(comparisons[op], at), true
		}
		return identity.WhereUpdated(comparisons[op], at), true
	}
	return identity.Where{}, false
}

// text returns a condition that the searched text of a resource contains a value.
func (c conditions) text(name string, a *Attribute, op filter.CompareOperator, value any) identity.Where {
	s, ok := value.(string)
	switch {
	case !ok || s == "" || op != filter.EQ && op != filter.CO && op != filter.SW && op != filter.EW:
	case c.of == Groups && name == "displayName":
		return identity.WhereGroupText(s)
	case c.of == Users && a.Type == "string" && a.Name != "type" && a.Name != "locale" && name != "id" && name != "externalId" || a.Name == "value" && a.Type == "complex":
		return identity.WhereUserText(s)
	}
	return identity.Where{}
}
