package scim

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	filter "github.com/scim2/filter-parser/v2"

	"stonetown/internal/text"
)

const (
	// MaxFilter bounds the length of a filter in bytes. The parser takes about 40 µs a term.
	MaxFilter = 2048
	// maxTerms bounds a filter without its texts, in bytes.
	maxTerms = 512
)

var (
	literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// valuePathAttribute is emails[type eq "0"].value eq "1", which clients send although the
	// grammar of filters has no attribute behind the bracket.
	valuePathAttribute = regexp.MustCompile(`(?i)([a-z][a-z0-9:._-]*)\[([^\[\]]*)\]\.([a-z$][a-z0-9_-]*)\s+(pr\b|(?:eq|ne|co|sw|ew|gt|ge|lt|le)\s+[^\s()\[\]]+)`)
)

// or separates the alternatives in brackets, where the parser accepts no parentheses.
var or = regexp.MustCompile(`(?i)\s+or\s+`)

// expression is a parsed filter. The parser gets the texts of a filter as numbers in quotation
// marks, because it does not know the escapes of JSON.
type expression struct {
	node  filter.Expression
	texts []string
}

// lift replaces the texts of a filter or path.
func lift(source string, kind ErrorType) (lifted string, texts []string, err error) {
	if len(source) > MaxFilter {
		return "", nil, refuse(kind, "it has more than %d bytes", MaxFilter)
	}
	lifted = literal.ReplaceAllStringFunc(source, func(quoted string) string {
		var value string
		if json.Unmarshal([]byte(quoted), &value) != nil || strings.IndexByte(value, 0) >= 0 {
			err = refuse(kind, "%s is not a JSON string without NUL", quoted)
		}
		texts = append(texts, value)
		return strconv.Quote(strconv.Itoa(len(texts) - 1))
	})
	if err == nil && len(lifted) > maxTerms {
		err = refuse(kind, "it has more than %d bytes without its texts", maxTerms)
	}
	return lifted, texts, err
}

// parseFilter parses a filter (RFC 7644 §3.4.2.2).
func parseFilter(source string) (expression, error) {
	lifted, texts, err := lift(source, InvalidFilter)
	if err != nil {
		return expression{}, err
	}
	lifted = valuePathAttribute.ReplaceAllStringFunc(lifted, func(path string) string {
		m := valuePathAttribute.FindStringSubmatch(path)
		alternatives := or.Split(m[2], -1)
		for i, one := range alternatives {
			alternatives[i] = m[1] + "[" + one + " and " + m[3] + " " + m[4] + "]"
		}
		return "(" + strings.Join(alternatives, " or ") + ")"
	})
	node, err := filter.ParseFilterNumber([]byte(lifted))
	if err != nil {
		return expression{}, refuse(InvalidFilter, "the filter does not follow the grammar of RFC 7644 §3.4.2.2")
	}
	return expression{node, texts}, nil
}

// value returns the value of a comparison: a string, a boolean, a [json.Number] or nil.
func (e expression) value(c *filter.AttributeExpression) (any, error) {
	quoted, ok := c.CompareValue.(string)
	if !ok {
		return c.CompareValue, nil
	}
	i, err := strconv.Atoi(quoted)
	if err != nil || i < 0 || i >= len(e.texts) {
		return nil, refuse(InvalidFilter, "the value of %s is not valid", c.AttributePath)
	}
	return e.texts[i], nil
}

// holds decides a filter for an object.
func (e expression) holds(node filter.Expression, at scope) (bool, error) {
	switch n := node.(type) {
	case *filter.LogicalExpression:
		left, err := e.holds(n.Left, at)
		if err != nil {
			return false, err
		}
		right, err := e.holds(n.Right, at)
		if n.Operator == filter.AND {
			return left && right, err
		}
		return left || right, err
	case *filter.NotExpression:
		inner, err := e.holds(n.Expression, at)
		return !inner, err
	case *filter.ValuePath:
		a, values, err := at.values(n.AttributePath)
		if err != nil {
			return false, err
		}
		if a.Type != "complex" {
			return false, refuse(InvalidFilter, "%s has no sub-attributes", a.Name)
		}
		found := false
		for _, v := range append(values, Object(nil)) { // the last finds errors in a filter of nothing
			o, _ := v.(Object)
			inner, err := e.holds(n.ValueFilter, scope{attributes: a.SubAttributes, object: o})
			if err != nil {
				return false, err
			}
			found = found || inner && o != nil
		}
		return found, nil
	case *filter.AttributeExpression:
		return e.compare(n, at)
	}
	return false, refuse(InvalidFilter, "the filter has an unknown expression")
}

// scope is the object that a filter is about.
type scope struct {
	of         *Type       // of a resource
	attributes []Attribute // of a complex value
	object     Object
}

// values returns the definition of an attribute and its values.
func (s scope) values(p filter.AttributePath) (*Attribute, []any, error) {
	var a *Attribute
	from := s.object
	if s.of != nil {
		var urn string
		if a, urn = s.of.attribute(p.URI(), p.AttributeName); urn != "" {
			from, _ = s.object[urn].(Object)
		}
	} else if p.URI() == "" {
		a = find(s.attributes, p.AttributeName)
	}
	if a == nil {
		return nil, nil, refuse(InvalidFilter, "there is no attribute %s", p)
	}
	values := asList(from[a.Name])
	if p.SubAttribute == nil {
		return a, values, nil
	}
	sub := find(a.SubAttributes, *p.SubAttribute)
	if sub == nil {
		return nil, nil, refuse(InvalidFilter, "there is no attribute %s", p)
	}
	var inner []any
	for _, v := range values {
		if o, ok := v.(Object); ok {
			inner = append(inner, asList(o[sub.Name])...)
		}
	}
	return sub, inner, nil
}

func asList(value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{value}
}

// compare decides a comparison: true if it holds for one of the values.
func (e expression) compare(c *filter.AttributeExpression, at scope) (bool, error) {
	a, values, err := at.values(c.AttributePath)
	if err != nil {
		return false, err
	}
	want, err := e.value(c)
	if err != nil {
		return false, err
	}
	if c.Operator == filter.PR {
		return len(values) > 0, nil
	}
	if want == nil && (c.Operator == filter.EQ || c.Operator == filter.NE) {
		return (len(values) == 0) == (c.Operator == filter.EQ), nil
	}
	if a.Type == "complex" { // its value represents it
		inner := find(a.SubAttributes, "value")
		if inner == nil {
			return false, refuse(InvalidFilter, "%s cannot be compared", a.Name)
		}
		var of []any
		for _, v := range values {
			if o, ok := v.(Object); ok && o["value"] != nil {
				of = append(of, o["value"])
			}
		}
		a, values = inner, of
	}
	matches, err := comparison(a, c.Operator, want)
	if err != nil {
		return false, err
	}
	for _, v := range values {
		if matches(v) {
			return c.Operator != filter.NE, nil
		}
	}
	return c.Operator == filter.NE, nil
}

// comparison returns the function that compares a value. That of ne is the one of eq.
func comparison(a *Attribute, op filter.CompareOperator, want any) (func(any) bool, error) {
	mismatch := refuse(InvalidFilter, "%s cannot be compared with this value by %s", a.Name, op)
	switch a.Type {
	case "boolean":
		b, ok := truth(want)
		if !ok || op != filter.EQ && op != filter.NE {
			return nil, mismatch
		}
		return func(v any) bool { return v == b }, nil
	case "dateTime":
		at, ok := instant(want)
		if !ok || op == filter.CO || op == filter.SW || op == filter.EW {
			return nil, mismatch
		}
		return func(v any) bool {
			have, ok := instant(v)
			return ok && ordered(op, have.Compare(at))
		}, nil
	}
	value, ok := want.(string)
	if !ok {
		return nil, mismatch
	}
	form := func(s string) string { return s }
	if !a.CaseExact {
		form = text.Fold
	}
	value = form(value)
	return func(v any) bool {
		have, ok := v.(string)
		if !ok {
			return false
		}
		have = form(have)
		switch op {
		case filter.CO:
			return strings.Contains(have, value)
		case filter.SW:
			return strings.HasPrefix(have, value)
		case filter.EW:
			return strings.HasSuffix(have, value)
		}
		return ordered(op, strings.Compare(have, value))
	}, nil
}

func ordered(op filter.CompareOperator, c int) bool {
	switch op {
	case filter.EQ, filter.NE:
		return c == 0
	case filter.GT:
		return c > 0
	case filter.GE:
		return c >= 0
	case filter.LT:
		return c < 0
	case filter.LE:
		return c <= 0
	}
	return false
}

// truth returns a boolean, which Entra ID sends as a text.
func truth(value any) (b, ok bool) {
	switch v := value.(type) {
	case bool:
		return v, true
	case string:
		switch strings.ToLower(v) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	return false, false
}

func instant(value any) (time.Time, bool) {
	s, ok := value.(string)
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	return at, err == nil && at.Year() >= 1970 && at.Year() < 10000
}
