package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Target is an engine under measurement. Checks are safe for concurrent use.
type Target interface {
	Name() string
	// Define creates the resource types.
	Define(ctx context.Context, types []schema.Type) error
	// WriteLimit returns the maximum number of tuples of one Write.
	WriteLimit() int
	// Write creates tuples.
	Write(ctx context.Context, tuples []tuplestore.Tuple) error
	// Warm sends checks until the tuples are in memory.
	Warm(ctx context.Context, w Workload) error
	// Prepare returns a call that asks questions, encoded in advance so that this is not
	// measured. The call may be repeated, but not concurrently.
	Prepare(questions []Question) Call
}

// Call asks questions and returns the answers in their order, valid until the next call.
type Call func(ctx context.Context) (allowed []bool, err error)

// InProcess calls an engine in this process.
type InProcess struct {
	Engine *engine.Engine
	Store  tuplestore.Store // the engine's
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

// Warm waits until the tenant is in memory or a mapped file. No other tenant may be loaded during that time.
func (p *InProcess) Warm(ctx context.Context, w Workload) error {
	loads := func() int64 { return p.Engine.Stats().Loads + p.Engine.Stats().LoadsRestored }
	before := loads()
	call := p.Prepare([]Question{w.Questioner(1, 0).Next()})
	for deadline := time.Now().Add(5 * time.Minute); loads() == before; time.Sleep(time.Millisecond) {
		if _, err := call(ctx); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("the tenant is not loaded into memory")
		}
	}
	return nil
}

func (p *InProcess) Prepare(questions []Question) Call {
	req := engine.CheckRequest{Subject: questions[0].Subject}
	for _, q := range questions {
		query := engine.Query{Resource: q.Resource, Action: q.Action}
		if q.Subject != req.Subject {
			query.Subject = &q.Subject
		}
		req.Queries = append(req.Queries, query)
	}
	var res engine.CheckResponse
	allowed := make([]bool, len(questions))
	return func(ctx context.Context) ([]bool, error) {
		if err := p.Engine.CheckInto(ctx, p.Tenant, &req, &res); err != nil {
			return nil, err
		}
		for i := range res.Decisions {
			if err := res.Decisions[i].Err; err != nil {
				return nil, fmt.Errorf("question %d: %w", i, err)
			}
			allowed[i] = res.Decisions[i].Allowed
		}
		return allowed, nil
	}
}

// List implements [Lister].
func (p *InProcess) List(ctx context.Context, s tuplestore.Subject, typ, relation string) (iter.Seq[string], error) {
	list, err := p.Engine.ListAllowed(ctx, p.Tenant, engine.ListAllowedRequest{
		Subject: s, Queries: []engine.ResourceQuery{{Type: typ, Action: relation}},
	})
	if err != nil {
		return nil, err
	}
	return func(yield func(string) bool) {
		defer list.Release()
		for i := 0; i < list.Len() && yield(list.At(i).ID); i++ {
		}
	}, nil
}
