package engine

import (
	"context"
	"fmt"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Check answers the request's queries from one revision. The error is nil even
// when single queries have no answer (see [Decision.Err]); it is not nil when
// none has: [*InvalidSubjectError], [*TooManyContextualError], [*ContextualError],
// [*BudgetError], [ErrTokenInvalid], [ErrTokenUnknown],
// [ErrTokenExpired], the context's, or the store's.
func (e *Engine) Check(ctx context.Context, tenantID string, req CheckRequest) (*CheckResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v, err := e.vantage(ctx, tenantID, req.Consistency)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	c := check{vantage: v, req: &req, response: &CheckResponse{
		Decisions:    make([]Decision, len(req.Queries)),
		TokenIgnored: v.tokenIgnored,
		Token:        v.at.token,
	}}
	defer c.leave()
	if err := c.answer(ctx); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	e.stats.checks.Add(int64(len(req.Queries)))
	return c.response, nil
}

// check is one request while it is answered.
type check struct {
	vantage
	req      *CheckRequest
	response *CheckResponse
	last     resolved
}

// resolved is what the type and action of a query stand for. A batch tends to
// ask the same of many resources.
type resolved struct {
	known       bool
	typ, action string
	rule        int32
	err         error
}

// answer fills in the decisions.
func (c *check) answer(ctx context.Context) error {
	subject, err := checkedSubject(c.at.compiled, c.req.Subject)
	if err != nil {
		return err
	}
	if err := c.bring(c.req.Contextual); err != nil {
		return err
	}
	e := c.evaluation(ctx, subject, c.req.Context)
	defer e.release()
	e.explain = c.req.Reasons
	var few [16]asked
	roots := few[:0]
	if len(c.req.Queries) > len(few) {
		roots = make([]asked, 0, len(c.req.Queries))
	}
	for i := range c.req.Queries {
		root, err := c.ask(e, &c.req.Queries[i])
		c.response.Decisions[i].Err = err
		roots = append(roots, root)
	}
	if err := e.run(); err != nil {
		return err
	}
	if e.undecided {
		if err := e.rerun(c.response.Decisions, roots); err != nil {
			return err
		}
	}
	for i, root := range roots {
		d := &c.response.Decisions[i]
		switch {
		case d.Err != nil:
		case !e.isPresent(root.object):
			d.Err = &ResourceNotFoundError{Resource: c.req.Queries[i].Resource}
		case e.goals[root.goal].proven:
			d.Allowed = true
			if c.req.Reasons {
				d.Reasons = e.reasons(root.goal)
			}
		case e.modes && e.goals[root.possibly].proven:
			d.Err = e.terms.undecided.clone()
		}
	}
	return nil
}

// asked is where the answer to a query will be.
type asked struct {
	object objectID
	rule   int32
	goal   int32
	// possibly is the same question, with what is undecided let in. It is asked
	// only where that matters.
	possibly int32
}

func (c *check) ask(e *evaluation, q *Query) (asked, error) {
	if !c.last.known || c.last.typ != q.Resource.Type || c.last.action != q.Action {
		c.last = resolve(c.at.compiled, q.Resource.Type, q.Action)
	}
	if c.last.err != nil {
		return asked{}, c.last.err
	}
	object, ok := c.object(e, q.Resource)
	if !ok {
		return asked{}, &ResourceNotFoundError{Resource: q.Resource}
	}
	return asked{object: object, rule: c.last.rule, goal: e.ask(object, c.last.rule, certain)}, nil
}

// rerun asks everything once more in both modes.
func (e *evaluation) rerun(decisions []Decision, roots []asked) error {
	e.begin()
	e.modes = true
	for i := range roots {
		if r := &roots[i]; decisions[i].Err == nil {
			r.goal = e.ask(r.object, r.rule, certain)
			r.possibly = e.ask(r.object, r.rule, possible)
		}
	}
	return e.run()
}

func resolve(c *schema.Compiled, typ, action string) resolved {
	r := resolved{known: true, typ: typ, action: action}
	relation, ok := c.ActionRelation(typ, action)
	switch {
	case !c.HasType(typ):
		r.err = &UnknownTypeError{Type: typ}
	case !ok:
		r.err = &UndefinedRelationError{Type: typ, Relation: action}
	default:
		rule, _ := c.Rule(typ, relation) // every defined relation has one
		r.rule = int32(rule)
	}
	return r
}

// checkedSubject normalizes and validates the subject of a check.
func checkedSubject(c *schema.Compiled, s tuplestore.Subject) (tuplestore.Subject, error) {
	s, err := wellFormedSubject(s)
	if err != nil {
		return s, err
	}
	if s.ID == tuplestore.Wildcard && !s.IsUserset() {
		return s, &InvalidSubjectError{Subject: s, Reason: "wildcard", Message: "a check asks about one subject, not about all of a type"}
	}
	if !c.HasType(s.Type) {
		return s, &InvalidSubjectError{Subject: s, Reason: string(schema.UnknownType), Message: fmt.Sprintf("subject type %q is not defined", s.Type)}
	}
	if s.IsUserset() {
		if _, ok := c.Rule(s.Type, s.Relation); !ok {
			return s, &InvalidSubjectError{Subject: s, Reason: string(schema.UndefinedRelation), Message: fmt.Sprintf("subject type %q has no relation %q", s.Type, s.Relation)}
		}
	}
	return s, nil
}
