package engine

import (
	"context"
	"errors"

	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// readView is where a request is answered from: a tenant at one revision, the
// resident graph of it or one that is filled from a snapshot on the way.
type readView struct {
	engine       *Engine
	at           position
	tokenIgnored bool
	graph        *graph
	program      *program
	reader       *coldReader // nil: the graph is resident
	extra        *overlay    // the request's own tuples, or nil
	locked       *tenant     // for reading, while the graph is resident
	limits       limits
}

// readView finds the view that c asks for, for work within limits. The caller leaves it.
func (e *Engine) readView(ctx context.Context, tenantID string, c Consistency, l limits) (readView, error) {
	t := e.tenant(tenantID)
	v := readView{engine: e, limits: l}
	var err error
	if v.tokenIgnored, err = t.rlock(ctx, c); err != nil {
		return v, err
	}
	v.at = t.position
	if c.Mode == Exactly {
		if _, rev, _ := decodeToken(tenantID, c.Token); rev != v.at.revision {
			t.mu.RUnlock()
			snapshot := e.store.Snapshot(tenantID, rev)
			if v.at, err = e.past(ctx, tenantID, v.at, snapshot); err != nil {
				return v, err
			}
			v.goCold(snapshot)
			v.describe(ctx)
			return v, nil
		}
	}
	if e.resident.scant.Load() {
		t.heat.add()
	}
	if t.graph != nil {
		v.graph, v.program, v.locked = t.graph, t.program, t
		v.describe(ctx)
		return v, nil
	}
	t.mu.RUnlock()
	t.startLoading()
	v.goCold(e.store.Snapshot(tenantID, v.at.revision))
	v.describe(ctx)
	return v, nil
}

// describe says in the span of the request where it is answered from.
func (v *readView) describe(ctx context.Context) {
	span := tracing.Current(ctx)
	span.Int("stonetown.revision", int(v.at.revision))
	span.Bool("stonetown.resident", v.locked != nil)
}

func (v *readView) goCold(snapshot tuplestore.Snapshot) {
	v.graph = newGraph()
	v.program = newProgram(v.at.compiled, v.graph)
	v.reader = &coldReader{snapshot: snapshot, asked: map[node]bool{}, reads: &v.engine.stats.coldReads}
}

// leave ends the use of the view.
func (v *readView) leave() {
	if v.locked != nil {
		v.locked.mu.RUnlock()
		v.locked = nil
	}
}

// past is the position of a snapshot earlier than now.
func (e *Engine) past(ctx context.Context, tenantID string, now position, s tuplestore.Snapshot) (position, error) {
	at := now
	if s.Revision() < now.schemaRevision {
		document, rev, err := s.Schema(ctx)
		if errors.Is(err, tuplestore.ErrRevisionCollected) {
			return at, ErrTokenExpired
		}
		if err != nil {
			return at, err
		}
		if at.compiled, err = compileDocument(document); err != nil {
			return at, err
		}
		at.schemaRevision = rev
	}
	at.revision = s.Revision()
	at.token = encodeToken(tenantID, at.epoch, at.revision)
	return at, nil
}

// bring adds tuples that hold for the request only, as if they were written.
// What is wrong with one comes as [*ContextualError].
func (v *readView) bring(ops []WriteOp) error {
	if len(ops) == 0 {
		return nil
	}
	if len(ops) > MaxContextual {
		return &TooManyContextualError{Count: len(ops)}
	}
	facts := make([]tuplestore.Fact, len(ops))
	for i, op := range ops {
		var err error
		if facts[i], err = validateOp(v.at.compiled, op); err != nil {
			return &ContextualError{Index: i, Err: err}
		}
	}
	v.extra = newOverlay(v.graph, v.reader != nil, facts)
	return nil
}

// evaluation starts an evaluation of questions about a subject, which comes
// from [checkedSubject].
func (v *readView) evaluation(ctx context.Context, subject tuplestore.Subject, values map[string]any) *evaluation {
	if v.reader != nil {
		v.reader.begin(v.graph, subject)
	}
	e := newEvaluation(ctx, v.graph, v.extra, v.program, subject, v.limits)
	e.terms = terms{ctx: ctx, compiled: v.at.compiled, clock: v.engine.clock, values: values, quick: v.limits.now() < v.limits.most}
	if v.reader != nil {
		e.fetch = v.reader
	}
	return e
}

// object finds a resource that is asked about. It reports whether it may be
// registered, which on a cold graph the first read will tell.
func (v *readView) object(e *evaluation, o tuplestore.Object) (objectID, bool) {
	if v.reader != nil {
		return v.reader.expect(v.graph, o), true
	}
	id := e.find(o)
	return id, id != noObject && e.isPresent(id)
}
