package bench

import (
	"context"
	"errors"
	"fmt"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Target is an engine under measurement. Checks are safe for concurrent use.
type Target interface {
	Name() string
	// Define creates the resource types.
	Define(ctx context.Context, types []schema.Type) error
	// WriteLimit is how many tuples one Write may have.
	WriteLimit() int
	// Write creates tuples.
	Write(ctx context.Context, tuples []tuplestore.Tuple) error
	// Check asks one question.
	Check(ctx context.Context, q *Question) (allowed bool, err error)
	// CheckBatch asks questions about one subject in one call.
	CheckBatch(ctx context.Context, batch []Question) (allowed []bool, err error)
}

// InProcess calls an engine in this process.
type InProcess struct {
	Engine *engine.Engine
	Tenant string
}

func (p *InProcess) Name() string { return "in process" }

func (p *InProcess) WriteLimit() int { return 5000 }

func (p *InProcess) Define(ctx context.Context, types []schema.Type) error {
	for _, t := range types {
		if _, _, _, err := p.Engine.PutType(ctx, p.Tenant, t, engine.Origin{Actor: "bench"}); err != nil {
			return err
		}
	}
	return nil
}

func (p *InProcess) Write(ctx context.Context, tuples []tuplestore.Tuple) error {
	ops := make([]engine.WriteOp, len(tuples))
	for i, t := range tuples {
		ops[i] = engine.WriteOp{Resource: t.Object, Relation: t.Relation, Subject: t.Subject}
	}
	_, err := p.Engine.Write(ctx, p.Tenant, engine.WriteRequest{Origin: engine.Origin{Actor: "bench"}, Ops: ops})
	return err
}

func (p *InProcess) Check(ctx context.Context, q *Question) (bool, error) {
	queries := [1]engine.Query{{Resource: q.Resource, Action: q.Action}}
	res, err := p.Engine.Check(ctx, p.Tenant, engine.CheckRequest{Subject: q.Subject, Queries: queries[:]})
	if err != nil {
		return false, err
	}
	return res.Decisions[0].Allowed, res.Decisions[0].Err
}

func (p *InProcess) CheckBatch(ctx context.Context, batch []Question) ([]bool, error) {
	if len(batch) == 0 {
		return nil, errors.New("empty batch")
	}
	queries := make([]engine.Query, len(batch))
	for i, q := range batch {
		queries[i] = engine.Query{Resource: q.Resource, Action: q.Action}
	}
	res, err := p.Engine.Check(ctx, p.Tenant, engine.CheckRequest{Subject: batch[0].Subject, Queries: queries})
	if err != nil {
		return nil, err
	}
	allowed := make([]bool, len(batch))
	for i, d := range res.Decisions {
		if d.Err != nil {
			return nil, fmt.Errorf("question %d: %w", i, d.Err)
		}
		allowed[i] = d.Allowed
	}
	return allowed, nil
}
