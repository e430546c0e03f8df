package engine

import (
	"context"
	"errors"
	"fmt"

	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// schemaAttempts is how often a write is judged anew because the schema changed
// between its judgement and its commit.
const schemaAttempts = 5

// Write applies the request whole or not at all; writing a relation registers
// its resource. What is wrong with an op comes as [*OpError]. Other errors are
// those of [tuplestore.Store.Write].
func (e *Engine) Write(ctx context.Context, tenantID string, req WriteRequest) (WriteResponse, error) {
	result, token, err := e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		return judge(at.compiled, req)
	})
	if err != nil {
		return WriteResponse{}, fmt.Errorf("write: %w", opError(err))
	}
	return WriteResponse{Statuses: result.Statuses[:len(req.Ops)], Token: token}, nil
}

// judge checks a request against the schema. The resources' presence tuples
// follow the request's own ops.
func judge(c *schema.Compiled, req WriteRequest) (tuplestore.Write, error) {
	w := tuplestore.Write{Actor: req.Actor, Also: req.Also, Ops: make([]tuplestore.Op, 0, len(req.Ops)+1)}
	for i, op := range req.Ops {
		t, err := judgeOp(c, op)
		if err != nil {
			return w, &OpError{Index: i, Err: err}
		}
		kind := tuplestore.Create
		if op.Delete {
			kind = tuplestore.Delete
		}
		w.Ops = append(w.Ops, tuplestore.Op{Kind: kind, Tuple: t})
	}
	var registered tuplestore.Object
	seen := map[tuplestore.Object]bool{}
	for _, op := range req.Ops {
		if op.Delete || op.Resource == registered || seen[op.Resource] {
			continue
		}
		registered = op.Resource
		if len(req.Ops) > 1 {
			seen[registered] = true
		}
		w.Ops = append(w.Ops, tuplestore.Op{Kind: tuplestore.Create, Tuple: tuplestore.Presence(registered)})
	}
	return w, nil
}

func judgeOp(c *schema.Compiled, op WriteOp) (tuplestore.Tuple, error) {
	if err := wellFormedResource(op.Resource); err != nil {
		return tuplestore.Tuple{}, err
	}
	if !c.HasType(op.Resource.Type) {
		return tuplestore.Tuple{}, &UnknownTypeError{Type: op.Resource.Type}
	}
	if _, ok := c.Rule(op.Resource.Type, op.Relation); !ok {
		return tuplestore.Tuple{}, &UndefinedRelationError{Type: op.Resource.Type, Relation: op.Relation}
	}
	subject, err := wellFormedSubject(op.Subject)
	if err != nil {
		return tuplestore.Tuple{}, err
	}
	t := tuplestore.Tuple{Object: op.Resource, Relation: op.Relation, Subject: subject}
	if op.Delete {
		return t, nil // a subject the schema forbids cannot be there
	}
	return t, writableSubject(c, op.Resource, op.Relation, subject)
}

// opError says in the engine's terms what the store found wrong with an op.
func opError(err error) error {
	var conflict *tuplestore.ConflictError
	if errors.As(err, &conflict) && conflict.Op >= 0 {
		return &OpError{Index: conflict.Op, Err: &RelationNotFoundError{Tuple: conflict.Tuple}}
	}
	return err
}

// Register makes a resource known that needs no relation to exist. created is
// false if it was known already.
func (e *Engine) Register(ctx context.Context, tenantID string, o tuplestore.Object, actor string, also func(context.Context, *sqldb.Tx) error) (created bool, token string, err error) {
	result, token, err := e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		if err := wellFormedResource(o); err != nil {
			return tuplestore.Write{}, err
		}
		if !at.compiled.HasType(o.Type) {
			return tuplestore.Write{}, &UnknownTypeError{Type: o.Type}
		}
		return tuplestore.Write{
			Actor: actor, Also: also,
			Ops: []tuplestore.Op{{Kind: tuplestore.Create, Tuple: tuplestore.Presence(o)}},
		}, nil
	})
	if err != nil {
		return false, "", fmt.Errorf("register resource: %w", err)
	}
	return result.Statuses[0] == tuplestore.Created, token, nil
}

// Alter joins rows to a transaction in which the resource is certain to exist.
// It fails with [*ResourceNotFoundError] or [*UnknownTypeError] otherwise.
func (e *Engine) Alter(ctx context.Context, tenantID string, o tuplestore.Object, actor string, also func(context.Context, *sqldb.Tx) error) (token string, err error) {
	presence := tuplestore.Presence(o)
	_, token, err = e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		if !at.compiled.HasType(o.Type) {
			return tuplestore.Write{}, &UnknownTypeError{Type: o.Type}
		}
		// Deleting it requires it, creating it again leaves no trace.
		return tuplestore.Write{Actor: actor, Also: also, Ops: []tuplestore.Op{
			{Kind: tuplestore.Delete, Tuple: presence},
			{Kind: tuplestore.Create, Tuple: presence},
		}}, nil
	})
	if err != nil {
		return "", fmt.Errorf("alter resource: %w", resourceError(o, err))
	}
	return token, nil
}

// Unregister deletes a resource with every relation to it and every relation
// that names it as a subject, so that nothing comes back if another resource
// takes the ID. It fails with [*ResourceNotFoundError] or [*UnknownTypeError].
func (e *Engine) Unregister(ctx context.Context, tenantID string, o tuplestore.Object, actor string, also func(context.Context, *sqldb.Tx) error) (token string, err error) {
	_, token, err = e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		if !at.compiled.HasType(o.Type) {
			return tuplestore.Write{}, &UnknownTypeError{Type: o.Type}
		}
		return tuplestore.Write{Actor: actor, Also: also, Ops: []tuplestore.Op{
			{Kind: tuplestore.Delete, Tuple: tuplestore.Presence(o)},
			{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{ObjectType: o.Type, ObjectID: o.ID}},
			{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{SubjectType: o.Type, SubjectID: o.ID}},
		}}, nil
	})
	if err != nil {
		return "", fmt.Errorf("delete resource: %w", resourceError(o, err))
	}
	return token, nil
}

func resourceError(o tuplestore.Object, err error) error {
	var conflict *tuplestore.ConflictError
	if errors.As(err, &conflict) && conflict.Op >= 0 {
		return &ResourceNotFoundError{Resource: o}
	}
	return err
}

// commit judges a write by the newest schema known here and commits it on the
// condition that this is still the schema; if it is not, it starts over.
func (e *Engine) commit(ctx context.Context, tenantID string, judge func(position) (tuplestore.Write, error)) (tuplestore.Result, string, error) {
	t := e.tenant(tenantID)
	for attempt := 1; ; attempt++ {
		at, err := t.at(ctx, attempt > 1)
		if err != nil {
			return tuplestore.Result{}, "", err
		}
		w, err := judge(at)
		if err != nil {
			if attempt == 1 {
				// The schema known here may be old: only the newest may refuse.
				newest, refreshErr := t.at(ctx, true)
				if refreshErr != nil {
					return tuplestore.Result{}, "", refreshErr
				}
				if newest.schemaRevision != at.schemaRevision {
					continue
				}
			}
			return tuplestore.Result{}, "", err
		}
		w.IfSchema = &at.schemaRevision
		result, err := e.store.Write(ctx, tenantID, w)
		if errors.Is(err, tuplestore.ErrSchemaChanged) && attempt < schemaAttempts {
			continue
		}
		if err != nil {
			return result, "", err
		}
		return result, encodeToken(tenantID, result.Epoch, result.Revision), nil
	}
}

// at returns the position, brought up to date if asked to or if none is known.
func (t *tenant) at(ctx context.Context, newest bool) (position, error) {
	if !newest {
		t.mu.RLock()
		at := t.position
		t.mu.RUnlock()
		if at.known {
			return at, nil
		}
	}
	if _, err := t.rlock(ctx, Consistency{}); err != nil {
		return position{}, err
	}
	defer t.mu.RUnlock()
	return t.position, nil
}
