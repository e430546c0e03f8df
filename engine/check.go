package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/traversal"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/internal/tracing"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Check answers the request's queries from one revision. Queries that have no answer have
// errors of their own (see [Decision.Err]). The error of the request is one of
// [*InvalidSubjectError], [*TooManyContextualError], [*ContextualError],
// [*BudgetError], [*fair.ExhaustedError], [ErrTokenInvalid], [ErrTokenUnknown],
// [ErrTokenExpired], the context's, or the store's.
func (e *Engine) Check(ctx context.Context, tenantID string, req CheckRequest) (*CheckResponse, error) {
	res := new(CheckResponse)
	if err := e.CheckInto(ctx, tenantID, &req, res); err != nil {
		return nil, err
	}
	return res, nil
}

// CheckInto is [Engine.Check] with a response of the caller's, whose memory it uses again.
// After an error the content of the response is undefined.
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
	err := e.checkWithin(ctx, tenantID, req, res, work.Limits{Most: e.maxVisits})
	if errors.Is(err, work.ErrHeavy) { // not by attempt, whose argument would be an allocation
		err = e.attemptHeavy(ctx, tenantID, func(l work.Limits) error { return e.checkWithin(ctx, tenantID, req, res, l) })
	}
	return err
}

func (e *Engine) checkWithin(ctx context.Context, tenantID string, req *CheckRequest, res *CheckResponse, l work.Limits) error {
	v, err := e.readView(ctx, tenantID, req.Consistency, l)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	c := check{readView: v, req: req, response: res}
	defer c.leave()
	res.Decisions = slices.Grow(res.Decisions[:0], len(req.Queries))[:len(req.Queries)]
	clear(res.Decisions)
	res.TokenIgnored, res.Token, res.Deprecating = c.tokenIgnored, c.at.token, nil
	if c.at.compiled.Deprecates {
		res.Deprecating = c.at.compiled
	}
	if err := c.answer(ctx); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if req.Denials {
		if err := c.explainDenials(ctx); err != nil {
			return fmt.Errorf("check: %w", err)
		}
	}
	e.stats.checks.Add(int64(len(req.Queries)))
	return nil
}

// check is the state of one request.
type check struct {
	readView
	req      *CheckRequest
	response *CheckResponse
	last     resolved
}

// resolved is the rule of a type and an action. The queries of a batch tend to have the
// same type and action.
type resolved struct {
	known       bool
	typ, action string
	rule        int32
	err         error
}

// answer fills in the decisions.
func (c *check) answer(ctx context.Context) error {
	if c.isAboutSeveral() {
		return c.answerAboutSeveral(ctx)
	}
	subject, err := checkedSubject(c.at.compiled, c.req.Subject)
	if err != nil {
		return err
	}
	if err := c.addContextual(c.req.Contextual); err != nil {
		return err
	}
	s := c.begin(ctx, subject, c.req.Context)
	c.eval.Explain = c.req.Reasons
	c.findAll()
	tryReachability := c.mayReach(s)
	var few [16]eval.Question
	questions := few[:0]
	for i := range c.req.Queries {
		q := eval.Question{Query: i}
		open, err := c.ask(&q, &c.eval, tryReachability)
		if err != nil {
			return err
		}
		if open {
			questions = append(questions, q)
		}
	}
	if len(questions) == 0 {
		return nil
	}
	if err := c.eval.Run(ctx, questions); err != nil {
		return err
	}
	c.decide(&c.eval, questions)
	return nil
}

// mayReach reports whether reachability may decide questions about a subject. It gives no
// reasons.
func (c *check) mayReach(s view.Subject) bool {
	return traversal.Decides(&c.view, s) && !c.req.Reasons
}

// ask resolves a question, and asks it unless it can be decided at once. It reports whether
// the question is open.
func (c *check) ask(q *eval.Question, e *eval.Evaluation, tryReachability bool) (open bool, err error) {
	d := &c.response.Decisions[q.Query]
	if d.Err = c.resolve(q); d.Err != nil {
		return false, nil
	}
	if tryReachability {
		d.Allowed, err = c.reach.Reaches(q.Object, q.Rule)
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, traversal.ErrNotReachability) {
			return false, err
		}
	}
	e.Ask(q)
	return true, nil
}

// decide fills in the decisions of questions that an evaluation has answered.
func (c *check) decide(e *eval.Evaluation, questions []eval.Question) {
	for _, q := range questions {
		d := &c.response.Decisions[q.Query]
		if !c.view.IsRegistered(q.Object) {
			d.Err = &ResourceNotFoundError{Resource: c.req.Queries[q.Query].Resource}
			continue
		}
		d.Allowed, d.Err = e.Answer(q)
		if d.Allowed && c.req.Reasons {
			d.Reasons, d.Until = e.Reasons(q)
		}
	}
}

// findAll finds the resources of all queries, if a resident graph has all of them.
func (c *check) findAll() {
	if c.view.Reader != nil || c.view.Overlay != nil {
		return
	}
	var typ string
	number, known := graph.TypeID(0), false
	for i := range c.req.Queries {
		r := &c.req.Queries[i].Resource
		if !known || r.Type != typ {
			typ = r.Type
			number, known = c.view.Graph.Types.Number(typ)
		}
		if !known {
			number = graph.NoType
		}
		c.lookups = append(c.lookups, graph.Lookup{Type: number, ID: r.ID})
	}
	c.view.Graph.FindAll(c.lookups)
}

// resolve sets the object and the rule of a query's question.
func (c *check) resolve(q *eval.Question) error {
	query := &c.req.Queries[q.Query]
	if !c.last.known || c.last.typ != query.Resource.Type || c.last.action != query.Action {
		c.last = resolve(c.at.compiled, query.Resource.Type, query.Action)
	}
	if c.last.err != nil {
		return c.last.err
	}
	var ok bool
	if len(c.lookups) > 0 {
		q.Object = c.lookups[q.Query].Found
		ok = q.Object != graph.NoObject && c.view.Graph.At(q.Object).IsRegistered()
	} else {
		q.Object, ok = c.view.Resource(query.Resource)
	}
	if !ok {
		return &ResourceNotFoundError{Resource: query.Resource}
	}
	q.Rule = c.last.rule
	return nil
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

// checkedSubject normalizes and validates the subject of a question. The wildcard type:* is
// a valid subject: it is in the sets that tuples with the subject type:* are in.
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
