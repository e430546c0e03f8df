package engine

import (
	"context"
	"fmt"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Check answers the request's queries from one revision. The error is nil even
// when single queries have no meaning (see [Decision.Err]); it is not nil when
// none can be answered: [*InvalidSubjectError], [*BudgetError],
// [ErrTokenInvalid], [ErrTokenUnknown], the context's, or the store's.
func (e *Engine) Check(ctx context.Context, tenantID string, req CheckRequest) (*CheckResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := e.tenant(tenantID)
	ignored, err := t.rlock(ctx, req.Consistency)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	t.used.Store(e.resident.turn.Load())
	c := check{engine: e, req: &req, at: t.position, response: &CheckResponse{
		Decisions:    make([]Decision, len(req.Queries)),
		TokenIgnored: ignored,
	}}
	if t.graph != nil {
		err = c.answerResident(ctx, t)
	} else {
		t.mu.RUnlock()
		t.startLoading()
		err = c.answerCold(ctx, e.store.Snapshot(tenantID, c.at.revision))
	}
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	e.stats.checks.Add(int64(len(req.Queries)))
	c.response.Token = c.at.token
	return c.response, nil
}

// check is one request while it is answered.
type check struct {
	engine   *Engine
	req      *CheckRequest
	at       position
	graph    *graph
	program  *program
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

// answerResident answers from the tenant's graph. t.mu is held, and is released.
func (c *check) answerResident(ctx context.Context, t *tenant) error {
	defer t.mu.RUnlock()
	c.graph, c.program = t.graph, t.program
	return c.answer(ctx, nil)
}

// answerCold reads what it needs from a snapshot into a graph of its own.
func (c *check) answerCold(ctx context.Context, snapshot tuplestore.Snapshot) error {
	c.graph = newGraph()
	c.program = newProgram(c.at.compiled, c.graph)
	reader := &coldReader{snapshot: snapshot, asked: map[askedNode]bool{}, reads: &c.engine.stats.coldReads}
	return c.answer(ctx, reader)
}

// answer fills in the decisions; reader is nil on a resident graph.
func (c *check) answer(ctx context.Context, reader *coldReader) error {
	subject, err := checkedSubject(c.at.compiled, c.req.Subject)
	if err != nil {
		return err
	}
	if reader != nil {
		reader.begin(c.graph, subject)
	}
	e := newEvaluation(ctx, c.graph, c.program, subject, c.engine.maxVisits)
	defer e.release()
	e.explain = c.req.Reasons
	if reader != nil {
		e.fetch = reader
	}
	var few [16]asked
	roots := few[:0]
	if len(c.req.Queries) > len(few) {
		roots = make([]asked, 0, len(c.req.Queries))
	}
	for i := range c.req.Queries {
		root, err := c.ask(e, reader, &c.req.Queries[i])
		c.response.Decisions[i].Err = err
		roots = append(roots, root)
	}
	if err := e.run(); err != nil {
		return err
	}
	for i, root := range roots {
		d := &c.response.Decisions[i]
		switch {
		case d.Err != nil:
		case !c.graph.objects[root.object].present:
			d.Err = &ResourceNotFoundError{Resource: c.req.Queries[i].Resource}
		case e.goals[root.goal].proven:
			d.Allowed = true
			if c.req.Reasons {
				d.Reasons = e.reasons(root.goal)
			}
		}
	}
	return nil
}

// asked is where the answer to a query will be.
type asked struct {
	object objectID
	goal   int32
}

func (c *check) ask(e *evaluation, reader *coldReader, q *Query) (asked, error) {
	if !c.last.known || c.last.typ != q.Resource.Type || c.last.action != q.Action {
		c.last = resolve(c.at.compiled, q.Resource.Type, q.Action)
	}
	if c.last.err != nil {
		return asked{}, c.last.err
	}
	var object objectID
	if reader != nil {
		object = reader.expect(c.graph, q.Resource)
	} else if object = c.graph.find(q.Resource); object == noObject || !c.graph.objects[object].present {
		return asked{}, &ResourceNotFoundError{Resource: q.Resource}
	}
	return asked{object, e.ask(object, c.last.rule)}, nil
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
