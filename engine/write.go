package engine

import (
	"context"
	"errors"
	"fmt"

	"stonetown/engine/internal/names"
	"stonetown/internal/tracing"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// schemaAttempts is how often a write is validated again because the schema changed
// between its validation and its commit.
const schemaAttempts = 5

// Write applies the request whole or not at all; writing a relation registers its resource.
// The error of an op is an [*OpError], that of a precondition a [*PreconditionError] or, if its
// filter is not valid, an [*InvalidPreconditionError]. Other errors are those of
// [tuplestore.Store.Write].
func (e *Engine) Write(ctx context.Context, tenantID string, req WriteRequest) (WriteResponse, error) {
	result, token, err := e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		w, err := validate(at.compiled, req)
		w.Now = e.clock().UnixMicro()
		return w, err
	})
	var unmet *tuplestore.PreconditionError
	if errors.As(err, &unmet) {
		err = &PreconditionError{Index: unmet.Index, Token: encodeToken(tenantID, unmet.Epoch, unmet.Revision)}
	}
	if err != nil {
		return WriteResponse{}, fmt.Errorf("write: %w", opError(err))
	}
	return WriteResponse{Statuses: result.Statuses[:len(req.Ops)], Counts: result.Counts[:len(req.Ops)], Token: token}, nil
}

// validate checks a request against the schema. The resources' presence tuples
// follow the request's own ops.
func validate(c *schema.Compiled, req WriteRequest) (tuplestore.Write, error) {
	w := req.write()
	w.Request, w.LikelyNew, w.Turn = req.Request, req.LikelyNew, req.Turn
	for i, p := range req.Preconditions {
		f, err := p.Filter.precondition(c)
		if err != nil {
			return w, &InvalidPreconditionError{Index: i, Err: err}
		}
		w.Preconditions = append(w.Preconditions, tuplestore.Precondition{Filter: f, Exists: p.MustExist})
	}
	registered := resourcesOf(req.Ops)
	w.Ops = make([]tuplestore.Op, 0, len(req.Ops)+len(req.Register)+len(registered))
	for i, op := range req.Ops {
		f, err := validateOp(c, op)
		if err != nil {
			return w, &OpError{Index: i, Err: err}
		}
		kind := tuplestore.Create
		switch {
		case op.Delete && op.IfPresent:
			kind = tuplestore.DeleteExisting
		case op.Delete:
			kind = tuplestore.Delete
		case op.New:
			kind = tuplestore.CreateNew
		}
		w.Ops = append(w.Ops, tuplestore.Op{Kind: kind, Tuple: f.Tuple, Qualifier: f.Qualifier, Others: others(c, op)})
	}
	for _, o := range req.Register {
		w.Ops = append(w.Ops, tuplestore.Op{Kind: tuplestore.Create, Tuple: tuplestore.Presence(o)})
	}
	for _, o := range registered {
		w.Ops = append(w.Ops, tuplestore.Op{Kind: tuplestore.Create, Tuple: tuplestore.Presence(o)})
	}
	return w, nil
}

// resourcesOf returns the resources of the relations that ops write, each once.
func resourcesOf(ops []WriteOp) (resources []tuplestore.Object) {
	if len(ops) == 1 && !ops[0].Delete {
		return []tuplestore.Object{ops[0].Resource}
	}
	seen := make(map[tuplestore.Object]struct{}, len(ops))
	for i := range ops {
		if ops[i].Delete {
			continue
		}
		o := ops[i].Resource
		if _, ok := seen[o]; !ok {
			seen[o] = struct{}{}
			resources = append(resources, o)
		}
	}
	return resources
}

// others returns what becomes of the other tuples of the node.
func others(c *schema.Compiled, op WriteOp) tuplestore.Others {
	if op.Delete {
		return tuplestore.KeepOthers
	}
	switch r, _ := c.Relation(op.Resource.Type, op.Relation); {
	case r.Cardinality != schema.One:
		return tuplestore.KeepOthers
	case r.OnSecond == schema.Replace:
		return tuplestore.ReplaceOthers
	default:
		return tuplestore.RefuseOthers
	}
}

// validateOp checks one op against the schema.
func validateOp(c *schema.Compiled, op WriteOp) (tuplestore.Fact, error) {
	if err := wellFormedResource(op.Resource); err != nil {
		return tuplestore.Fact{}, err
	}
	if !c.HasType(op.Resource.Type) {
		return tuplestore.Fact{}, &UnknownTypeError{Type: op.Resource.Type}
	}
	if _, ok := c.Rule(op.Resource.Type, op.Relation); !ok {
		return tuplestore.Fact{}, &UndefinedRelationError{Type: op.Resource.Type, Relation: op.Relation}
	}
	subject, err := wellFormedSubject(op.Subject)
	if err != nil {
		return tuplestore.Fact{}, err
	}
	f := tuplestore.Fact{Tuple: tuplestore.Tuple{Object: op.Resource, Relation: op.Relation, Subject: subject}}
	if op.Delete {
		return f, nil // no stored tuple has a subject that the schema forbids
	}
	if err := writableSubject(c, op.Resource, op.Relation, subject); err != nil {
		return tuplestore.Fact{}, err
	}
	f.Qualifier, err = qualifierOf(c, op)
	return f, err
}

// qualifierOf validates and returns the qualifier of a new relation. It accepts an expiry
// in the past, because the expiry may pass between two attempts at the same write.
func qualifierOf(c *schema.Compiled, op WriteOp) (tuplestore.Qualifier, error) {
	var on tuplestore.Qualifier
	if !op.ExpiresAt.IsZero() {
		if on.ExpiresAt = op.ExpiresAt.UnixMicro(); on.ExpiresAt <= 0 {
			return on, &InvalidQualifierError{Field: "expires_at", Message: "expires_at must be after 1970"}
		}
	}
	if op.Condition == "" {
		if len(op.Context) > 0 {
			return on, &InvalidQualifierError{Field: "context", Message: "context requires a condition"}
		}
		return on, nil
	}
	program := c.Condition(op.Resource.Type, op.Condition)
	if program == nil {
		return on, &UnknownConditionError{Type: op.Resource.Type, Condition: op.Condition}
	}
	context, err := program.Normalize(op.Context)
	if err != nil {
		return on, &InvalidQualifierError{Field: "context", Message: err.Error()}
	}
	on.Condition, on.Context = op.Condition, context
	return on, nil
}

// write begins a write of this origin.
func (o Origin) write() tuplestore.Write {
	return tuplestore.Write{Actor: o.Actor, CommitID: o.CommitID, Also: o.Also, Alone: o.Alone, Attach: o.Attach, Event: o.Event}
}

// writeOf begins a write about a resource.
func (o Origin) writeOf(at position, resource tuplestore.Object) tuplestore.Write {
	w := o.write()
	if o.AlsoOf != nil {
		stored := names.StoredObject(resource, at.compiled)
		w.Also = func(ctx context.Context, tx *tuplestore.Tx) error { return o.AlsoOf(ctx, tx, stored) }
	}
	return w
}

// opError translates the store's error of an op.
func opError(err error) error {
	var conflict *tuplestore.ConflictError
	switch {
	case !errors.As(err, &conflict) || conflict.Op < 0:
		return err
	case conflict.Second:
		return &OpError{Index: conflict.Op, Err: &SingleValuedError{Tuple: conflict.Tuple}}
	case conflict.Exists:
		return &OpError{Index: conflict.Op, Err: &RelationExistsError{Tuple: conflict.Tuple}}
	default:
		return &OpError{Index: conflict.Op, Err: &RelationNotFoundError{Tuple: conflict.Tuple}}
	}
}

// Register registers a resource without a relation. created is false if it was registered
// before.
func (e *Engine) Register(ctx context.Context, tenantID string, o tuplestore.Object, origin Origin) (created bool, token string, err error) {
	result, token, err := e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		if err := wellFormedResource(o); err != nil {
			return tuplestore.Write{}, err
		}
		if !at.compiled.HasType(o.Type) {
			return tuplestore.Write{}, &UnknownTypeError{Type: o.Type}
		}
		w := origin.writeOf(at, o)
		w.Ops = []tuplestore.Op{{Kind: tuplestore.Create, Tuple: tuplestore.Presence(o)}}
		return w, nil
	})
	if err != nil {
		return false, "", fmt.Errorf("register resource: %w", err)
	}
	return result.Statuses[0] == tuplestore.Created, token, nil
}

// Alter commits rows in a transaction in which the resource exists. It fails with
// [*ResourceNotFoundError] or [*UnknownTypeError] otherwise.
func (e *Engine) Alter(ctx context.Context, tenantID string, o tuplestore.Object, origin Origin) (token string, err error) {
	presence := tuplestore.Presence(o)
	_, token, err = e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		if !at.compiled.HasType(o.Type) {
			return tuplestore.Write{}, &UnknownTypeError{Type: o.Type}
		}
		// To delete the presence requires it, and to create it again has no net effect.
		w := origin.writeOf(at, o)
		w.Ops = []tuplestore.Op{
			{Kind: tuplestore.Delete, Tuple: presence},
			{Kind: tuplestore.Create, Tuple: presence},
		}
		return w, nil
	})
	if err != nil {
		return "", fmt.Errorf("alter resource: %w", resourceError(o, err))
	}
	return token, nil
}

// Unregister deletes a resource with every relation to it and every relation that names it
// as a subject, so that a later resource with the same ID does not inherit them. It fails
// with [*ResourceNotFoundError] or [*UnknownTypeError].
func (e *Engine) Unregister(ctx context.Context, tenantID string, o tuplestore.Object, origin Origin) (token string, err error) {
	_, token, err = e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		if !at.compiled.HasType(o.Type) {
			return tuplestore.Write{}, &UnknownTypeError{Type: o.Type}
		}
		w := origin.writeOf(at, o)
		w.Ops = []tuplestore.Op{
			{Kind: tuplestore.Delete, Tuple: tuplestore.Presence(o)},
			{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{ObjectType: o.Type, ObjectID: o.ID}},
			{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{SubjectType: o.Type, SubjectID: o.ID}},
		}
		return w, nil
	})
	if err != nil {
		return "", fmt.Errorf("delete resource: %w", resourceError(o, err))
	}
	return token, nil
}

// Forget deletes every relation of and to an object whose existence is stored elsewhere,
// such as a user, so that a later object with the same ID does not inherit them.
func (e *Engine) Forget(ctx context.Context, tenantID string, subject tuplestore.Object, origin Origin) (token string, err error) {
	_, token, err = e.commit(ctx, tenantID, func(position) (tuplestore.Write, error) {
		w := origin.write()
		w.Ops = []tuplestore.Op{
			{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{ObjectType: subject.Type, ObjectID: subject.ID, Presence: tuplestore.WithPresence}},
			{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{SubjectType: subject.Type, SubjectID: subject.ID}},
		}
		return w, nil
	})
	if err != nil {
		return "", fmt.Errorf("forget subject: %w", err)
	}
	return token, nil
}

// ErrHasRelations: the resource has relations and cannot be retired.
var ErrHasRelations = errors.New("the resource has relations")

// Retire ends the registration of a resource without relations, if it is registered. It
// fails with [ErrHasRelations].
func (e *Engine) Retire(ctx context.Context, tenantID string, o tuplestore.Object, origin Origin) (token string, err error) {
	_, token, err = e.commit(ctx, tenantID, func(position) (tuplestore.Write, error) {
		w := origin.write()
		w.Absent = []tuplestore.Filter{{ObjectType: o.Type, ObjectID: o.ID}}
		w.Ops = []tuplestore.Op{{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{
			ObjectType: o.Type, ObjectID: o.ID, Presence: tuplestore.OnlyPresence,
		}}}
		return w, nil
	})
	var conflict *tuplestore.ConflictError
	if errors.As(err, &conflict) {
		return "", ErrHasRelations
	}
	if err != nil {
		return "", fmt.Errorf("retire resource: %w", err)
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

// commit validates a write by the newest schema that this process knows and commits it on
// the condition that it is still the schema. Otherwise it starts over.
func (e *Engine) commit(ctx context.Context, tenantID string, validate func(position) (tuplestore.Write, error)) (result tuplestore.Result, token string, err error) {
	ctx, span := tracing.Start(ctx, "engine.write")
	defer func() {
		if err == nil {
			span.Int("stonetown.revision", int(result.Revision))
			span.Int("stonetown.operations", len(result.Statuses))
		}
		span.End(err)
	}()
	t := e.tenant(tenantID)
	for attempt := 1; ; attempt++ {
		at, err := t.at(ctx, attempt > 1)
		if err != nil {
			return tuplestore.Result{}, "", err
		}
		w, err := validate(at)
		if err != nil {
			if attempt == 1 {
				// The schema may be outdated. Only the newest may refuse a write.
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
		w.Known = t.known(&w, at)
		result, err = names.Write(ctx, e.store, tenantID, w, at.compiled)
		if errors.Is(err, tuplestore.ErrSchemaChanged) && attempt < schemaAttempts && w.Turn == nil {
			continue
		}
		if err != nil {
			return result, "", err
		}
		t.tooLarge.count(result)
		if w.Known != nil && len(w.Ops) >= manyOps {
			// Otherwise the next request waits for it.
			e.loads.Go(t.followNewest)
		}
		return result, encodeToken(tenantID, result.Epoch, result.Revision), nil
	}
}

// manyOps is the number of ops from which the resident graph follows a write at once.
const manyOps = 100

// maxKnown is the number of ops of the largest write of which a resident graph says what exists.
const maxKnown = 1000

// known returns what the resident graph knows of the tuples of a write, which was validated at a
// position; nil if there is no graph, or if the write depends on more.
func (t *tenant) known(w *tuplestore.Write, at position) *tuplestore.Known {
	if w.LikelyNew || w.CommitID != "" || len(w.Ops) > maxKnown || !w.DependsOnTuples() {
		return nil
	}
	t.followNewest()
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.graph == nil || t.position.compiled != at.compiled {
		return nil
	}
	k := &tuplestore.Known{Epoch: t.position.epoch, Revision: t.position.revision}
	for i := range w.Ops {
		tuple := w.Ops[i].Tuple
		if on, exists := t.graph.Qualifier(tuple); exists {
			k.Facts = append(k.Facts, tuplestore.Fact{Tuple: tuple, Qualifier: on})
		}
	}
	return k
}

// at returns the position. It is brought up to date if newest is set or no position is
// known.
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
