package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
	c := inProcess.Get().(*inProcessCall)
	defer inProcess.Put(c)
	c.request.Subject = q.Subject
	c.request.Queries = append(c.request.Queries[:0], engine.Query{Resource: q.Resource, Action: q.Action})
	if err := p.Engine.CheckInto(ctx, p.Tenant, &c.request, &c.response); err != nil {
		return false, err
	}
	return c.response.Decisions[0].Allowed, c.response.Decisions[0].Err
}

// inProcessCall is the memory of one call, which the next one uses again.
type inProcessCall struct {
	request  engine.CheckRequest
	response engine.CheckResponse
}

var inProcess = sync.Pool{New: func() any { return new(inProcessCall) }}

func (p *InProcess) CheckBatch(ctx context.Context, batch []Question) ([]bool, error) {
	if len(batch) == 0 {
		return nil, errors.New("empty batch")
	}
	c := inProcess.Get().(*inProcessCall)
	defer inProcess.Put(c)
	c.request.Subject = batch[0].Subject
	c.request.Queries = c.request.Queries[:0]
	for _, q := range batch {
		c.request.Queries = append(c.request.Queries, engine.Query{Resource: q.Resource, Action: q.Action})
	}
	if err := p.Engine.CheckInto(ctx, p.Tenant, &c.request, &c.response); err != nil {
		return nil, err
	}
	allowed := make([]bool, len(batch))
	for i, d := range c.response.Decisions {
		if d.Err != nil {
			return nil, fmt.Errorf("question %d: %w", i, d.Err)
		}
		allowed[i] = d.Allowed
	}
	return allowed, nil
}
