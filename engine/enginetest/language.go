package enginetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/scanner"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

// ParseSchema reads resource types in the notation of the test data:
//
//	document
//	  parent [folder]
//	  owner [user, group#member]
//	  editor: this | owner
//	  viewer [user, user:*]: this | editor | parent->viewer
//	  reader: viewer - banned
//	  auditor: all parent->auditor
//	  owned: self | owner
//	  act sign = owner
//	  when nearby(distance int, limit int): distance < limit
//
// A name alone on its line starts a type; the indented lines are its relations: a name,
// optionally the subject types it takes, and after a colon its rewrites. Operators from
// weakest to strongest: | (union), & (intersection), - (exclusion); parentheses group; a
// relation's name is a computed userset, a->b a tuple-to-userset of any and all a->b one of
// all linked objects. The keyword when begins a condition of the type: its name, parameters
// and expression.
func ParseSchema(text string) ([]schema.Type, error) {
	var types []schema.Type
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "//") {
			continue
		}
		if trimmed == strings.TrimRight(line, " ") {
			types = append(types, schema.Type{Name: trimmed})
			continue
		}
		if len(types) == 0 {
			return nil, fmt.Errorf("line %d: a relation before any type", n+1)
		}
		t := &types[len(types)-1]
		if rest, ok := strings.CutPrefix(trimmed, "act "); ok {
			action, relation, _ := strings.Cut(rest, "=")
			if t.Actions == nil {
				t.Actions = map[string]string{}
			}
			t.Actions[strings.TrimSpace(action)] = strings.TrimSpace(relation)
			continue
		}
		if rest, ok := strings.CutPrefix(trimmed, "when "); ok {
			definition, err := parseCondition(rest)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
			t.Conditions = append(t.Conditions, definition)
			continue
		}
		r, err := parseRelation(trimmed)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		t.Relations = append(t.Relations, r)
	}
	return types, nil
}

func parseCondition(text string) (condition.Definition, error) {
	head, expression, ok := strings.Cut(text, "):")
	name, parameters, found := strings.Cut(head, "(")
	if !ok || !found {
		return condition.Definition{}, fmt.Errorf("%q is not of the form name(parameter type): expression", text)
	}
	d := condition.Definition{Name: name, Expression: strings.TrimSpace(expression)}
	for _, p := range strings.Split(parameters, ",") {
		words := strings.Fields(p)
		if len(words) != 2 {
			return d, fmt.Errorf("%q is not of the form parameter type", p)
		}
		d.Parameters = append(d.Parameters, condition.Parameter{Name: words[0], Type: words[1]})
	}
	return d, nil
}

func parseRelation(line string) (schema.Relation, error) {
	head, rewrites, derived := line, "", false
	end := strings.IndexByte(line, ']') // a wildcard's colon stands before it
	if i := strings.IndexByte(line[end+1:], ':'); i >= 0 {
		head, rewrites, derived = line[:end+1+i], line[end+2+i:], true
	}
	r := schema.Relation{Name: strings.TrimSpace(head)}
	if name, subjects, ok := strings.Cut(head, "["); ok {
		r.Name = strings.TrimSpace(name)
		r.Subjects = []schema.SubjectType{}
		for _, s := range strings.Split(strings.TrimRight(strings.TrimSpace(subjects), "]"), ",") {
			r.Subjects = append(r.Subjects, schema.ParseSubjectType(strings.TrimSpace(s)))
		}
	}
	if !derived {
		return r, nil
	}
	p := &parser{}
	p.Init(strings.NewReader(rewrites))
	p.Mode = scanner.ScanIdents
	p.next()
	rw, err := p.union()
	if err != nil {
		return r, err
	}
	if p.token != scanner.EOF {
		return r, fmt.Errorf("unexpected %q", p.TokenText())
	}
	if rw.Kind == schema.Union {
		r.Rewrites = rw.Children // a relation is a union already
	} else {
		r.Rewrites = []schema.Rewrite{rw}
	}
	return r, nil
}

type parser struct {
	scanner.Scanner
	token rune
}

func (p *parser) next() { p.token = p.Scan() }

// union = intersection { "|" intersection }
func (p *parser) union() (schema.Rewrite, error) {
	return p.list('|', schema.Union, p.intersection)
}

// intersection = exclusion { "&" exclusion }
func (p *parser) intersection() (schema.Rewrite, error) {
	return p.list('&', schema.Intersection, p.exclusion)
}

func (p *parser) list(operator rune, kind schema.Kind, operand func() (schema.Rewrite, error)) (schema.Rewrite, error) {
	first, err := operand()
	if err != nil || p.token != operator {
		return first, err
	}
	rw := schema.Rewrite{Kind: kind, Children: []schema.Rewrite{first}}
	for p.token == operator {
		p.next()
		child, err := operand()
		if err != nil {
			return rw, err
		}
		rw.Children = append(rw.Children, child)
	}
	return rw, nil
}

// exclusion = primary { "-" primary }
func (p *parser) exclusion() (schema.Rewrite, error) {
	rw, err := p.primary()
	for err == nil && p.token == '-' {
		p.next()
		var subtract schema.Rewrite
		if subtract, err = p.primary(); err == nil {
			base := rw
			rw = schema.Rewrite{Kind: schema.Exclusion, Base: &base, Subtract: &subtract}
		}
	}
	return rw, err
}

// primary = "this" | "self" | name | [ "all" ] name "->" name | "(" union ")"
func (p *parser) primary() (schema.Rewrite, error) {
	if p.token == '(' {
		p.next()
		rw, err := p.union()
		if err == nil && p.token != ')' {
			err = fmt.Errorf("missing )")
		}
		p.next()
		return rw, err
	}
	if p.token != scanner.Ident {
		return schema.Rewrite{}, fmt.Errorf("unexpected %q", p.TokenText())
	}
	name := p.TokenText()
	arrow := p.Peek() == '-'
	p.next()
	switch {
	case name == "all" && p.token == scanner.Ident:
		rw, err := p.primary()
		if err == nil && rw.Kind != schema.TupleToUserset {
			err = fmt.Errorf("all must precede an arrow")
		}
		rw.Mode = schema.All
		return rw, err
	case name == "self":
		return schema.Rewrite{Kind: schema.Self}, nil
	case name == "this":
		return schema.Rewrite{Kind: schema.This}, nil
	case arrow && p.token == '-' && p.Peek() == '>':
		p.next()
		p.next()
		computed := p.TokenText()
		p.next()
		return schema.Rewrite{Kind: schema.TupleToUserset, Tupleset: name, Computed: computed}, nil
	}
	return schema.Rewrite{Kind: schema.Computed, Relation: name}, nil
}

// ParseTuple reads type:id#relation@type:id or type:id#relation@type:id#relation;
// type:id alone is the object's presence.
func ParseTuple(text string) (tuplestore.Tuple, error) {
	left, right, ok := strings.Cut(text, "@")
	object, relation, _ := strings.Cut(left, "#")
	var t tuplestore.Tuple
	var err error
	if t.Object, err = parseObject(object); err != nil {
		return t, err
	}
	t.Relation = relation
	if !ok {
		return t, nil
	}
	t.Subject, err = ParseSubject(right)
	return t, err
}

// ParseRelation reads a tuple as [ParseTuple] does, and after it the tuple's qualifier:
// until an instant (RFC 3339), when a condition is met, with a JSON object of values.
//
//	document:d#viewer@user:ann until 2030-01-01T00:00:00Z when nearby with {"limit": 5}
func ParseRelation(text string) (engine.WriteOp, error) {
	rest, values, _ := strings.Cut(text, " with ")
	rest, name, _ := strings.Cut(rest, " when ")
	rest, until, hasEnd := strings.Cut(rest, " until ")
	t, err := ParseTuple(strings.TrimSpace(rest))
	if err != nil {
		return engine.WriteOp{}, err
	}
	op := engine.WriteOp{
		Resource: t.Object, Relation: t.Relation, Subject: t.Subject,
		Condition: strings.TrimSpace(name), Context: []byte(strings.TrimSpace(values)),
	}
	if hasEnd {
		if op.ExpiresAt, err = time.Parse(time.RFC3339, strings.TrimSpace(until)); err != nil {
			return op, err
		}
	}
	return op, nil
}

// Question is a check: subject action object and, where given, a JSON object of
// context and relations that hold for this question only.
//
//	user:ann view document:d with {"distance": 3} plus document:d#viewer@user:ann; ...
type Question struct {
	Text       string
	Subject    tuplestore.Subject
	Action     string
	Resource   tuplestore.Object
	Context    map[string]any
	Contextual []engine.WriteOp
}

// ParseQuestion reads a question.
func ParseQuestion(text string) (Question, error) {
	q := Question{Text: text}
	rest, plus, _ := strings.Cut(text, " plus ")
	rest, values, hasValues := strings.Cut(rest, " with ")
	words := strings.Fields(rest)
	if len(words) != 3 {
		return q, fmt.Errorf("%q is not of the form subject action object", text)
	}
	var err error
	if q.Subject, err = ParseSubject(words[0]); err != nil {
		return q, err
	}
	q.Action = words[1]
	if q.Resource, err = parseObject(words[2]); err != nil {
		return q, err
	}
	if hasValues {
		if err := json.Unmarshal([]byte(values), &q.Context); err != nil {
			return q, err
		}
	}
	for relation := range strings.SplitSeq(plus, ";") {
		if strings.TrimSpace(relation) == "" {
			continue
		}
		op, err := ParseRelation(relation)
		if err != nil {
			return q, err
		}
		q.Contextual = append(q.Contextual, op)
	}
	return q, nil
}

// ParseSubject reads type:id or type:id#relation.
func ParseSubject(text string) (tuplestore.Subject, error) {
	object, relation, _ := strings.Cut(text, "#")
	o, err := parseObject(object)
	return tuplestore.Subject{Type: o.Type, ID: o.ID, Relation: relation}, err
}

func parseObject(text string) (tuplestore.Object, error) {
	typ, id, ok := strings.Cut(strings.TrimSpace(text), ":")
	if !ok || typ == "" || id == "" {
		return tuplestore.Object{}, fmt.Errorf("%q is not of the form type:id", text)
	}
	return tuplestore.Object{Type: typ, ID: id}, nil
}
