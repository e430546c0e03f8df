package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/internal/tracing"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Check answers the request's queries from one revision. The error is nil even
// when single queries have no answer (see [Decision.Err]); it is not nil when
// none has: [*InvalidSubjectError], [*TooManyContextualError], [*ContextualError],
// [*BudgetError], [*fair.ExhaustedError], [ErrTokenInvalid], [ErrTokenUnknown],
// [ErrTokenExpired], the context's, or the store's.
func (e *Engine) Check(ctx context.Context, tenantID string, req CheckRequest) (*CheckResponse, error) {
	res := new(CheckResponse)
	if err := e.CheckInto(ctx, tenantID, &req, res); err != nil {
		return nil, err
	}
	return res, nil
}

// CheckInto is [Engine.Check] with a response of the caller's, whose memory is used
// again. After an error the response means nothing.
func (e *Engine) CheckInto(ctx context.Context, tenantID string, req *CheckRequest, res *CheckResponse) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	traced, span := tracing.Start(ctx, "engine.check")
	span.Int("stonetown.queries", len(req.Queries))
	err := e.check(traced, tenantID, req, res)
	span.End(err)
	return err
}

func (e *Engine) check(ctx context.Context, tenantID string, req *CheckRequest, res *CheckResponse) error {
	err := e.checkWithin(ctx, tenantID, req, res, limits{most: e.maxVisits})
	if errors.Is(err, errHeavy) { // not by attempt, whose argument would be an allocation
		err = e.attemptHeavy(ctx, tenantID, func(l limits) error { return e.checkWithin(ctx, tenantID, req, res, l) })
	}
	return err
}

func (e *Engine) checkWithin(ctx context.Context, tenantID string, req *CheckRequest, res *CheckResponse, l limits) error {
	v, err := e.readView(ctx, tenantID, req.Consistency, l)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	c := check{readView: v, req: req, response: res}
	defer c.leave()
	res.Decisions = slices.Grow(res.Decisions[:0], len(req.Queries))[:len(req.Queries)]
	clear(res.Decisions)
	res.TokenIgnored, res.Token = c.tokenIgnored, c.at.token
	if err := c.answer(ctx); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	e.stats.checks.Add(int64(len(req.Queries)))
	return nil
}

// check is one request while it is answered.
type check struct {
	readView
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
	if c.reader == nil && c.extra == nil {
		c.findAll(e)
	}
	searchable := e.searchable()
	var few [16]asked
	roots := few[:0]
	for i := range c.req.Queries {
		d := &c.response.Decisions[i]
		root := asked{query: i}
		if d.Err = c.resolve(e, &root); d.Err != nil {
			continue
		}
		if searchable {
			d.Allowed, err = e.reaches(root.object, root.rule)
			if err == nil {
				continue
			}
			if !errors.Is(err, errNotReachability) {
				return err
			}
		}
		root.goal = e.ask(root.object, root.rule, certain)
		roots = append(roots, root)
	}
	if len(roots) == 0 {
		return nil
	}
	if err := e.run(); err != nil {
		return err
	}
	if e.undecided {
		if err := e.rerun(roots); err != nil {
			return err
		}
	}
	for _, root := range roots {
		d := &c.response.Decisions[root.query]
		if !e.isPresent(root.object) {
			d.Err = &ResourceNotFoundError{Resource: c.req.Queries[root.query].Resource}
			continue
		}
		d.Allowed, d.Err = e.answer(root)
		if d.Allowed && c.req.Reasons {
			d.Reasons, d.Until = e.reasons(root.goal)
		}
	}
	return nil
}

// asked is where the answer to a query will be.
type asked struct {
	query  int
	object objectID
	rule   int32
	goal   int32
	// possibly is the same question, with what is undecided let in. It is asked
	// only where that matters.
	possibly int32
}

// findAll finds the resources of all queries in a resident graph.
func (c *check) findAll(e *evaluation) {
	var typ string
	number, known := uint32(0), false
	for i := range c.req.Queries {
		r := &c.req.Queries[i].Resource
		if !known || r.Type != typ {
			typ = r.Type
			number, known = c.graph.types.numbers[typ]
		}
		if !known {
			number = noType
		}
		e.sought = append(e.sought, sought{typ: typeID(number), id: r.ID})
	}
	c.graph.index.findAll(c.graph.objects, e.sought)
}

// resolve finds what a query is about.
func (c *check) resolve(e *evaluation, a *asked) error {
	q := &c.req.Queries[a.query]
	if !c.last.known || c.last.typ != q.Resource.Type || c.last.action != q.Action {
		c.last = resolve(c.at.compiled, q.Resource.Type, q.Action)
	}
	if c.last.err != nil {
		return c.last.err
	}
	var ok bool
	if len(e.sought) > 0 {
		a.object = e.sought[a.query].number
		ok = a.object != noObject && c.graph.objects[a.object].present
	} else {
		a.object, ok = c.object(e, q.Resource)
	}
	if !ok {
		return &ResourceNotFoundError{Resource: q.Resource}
	}
	a.rule = c.last.rule
	return nil
}

// rerun asks everything once more in both modes.
func (e *evaluation) rerun(roots []asked) error {
	e.begin()
	e.modes = true
	for i := range roots {
		r := &roots[i]
		r.goal = e.ask(r.object, r.rule, certain)
		r.possibly = e.ask(r.object, r.rule, possible)
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

// checkedSubject normalizes and validates the subject of a question. The wildcard
// type:* may be one: it is in the sets that relations to type:* put everybody in,
// whatever is said of single subjects.
func checkedSubject(c *schema.Compiled, s tuplestore.Subject) (tuplestore.Subject, error) {
	s, err := wellFormedSubject(s)
	if err != nil {
		return s, err
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
