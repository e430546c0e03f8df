package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/names"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/traversal"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// readView is the read view of one attempt at a request: a tenant at one revision, on its
// resident graph or on a graph that is filled from a snapshot as the request proceeds.
type readView struct {
	engine       *Engine
	at           position
	tokenIgnored bool
	locked       *tenant      // for reading, while the graph is resident
	pinned       *graph.Graph // the graph as it was, of a heavy attempt, which does not lock the tenant
	limits       work.Limits
	clock        func() time.Time    // its first reading is the instant of the view
	snapshot     tuplestore.Snapshot // nil while the graph is resident
	contextual   []tuplestore.Fact   // those of the overlay
	program      *program.Program    // for cold graphs of the tenant's newest schema, or nil
	*scratch
}

// scratch is the state of an attempt that later attempts use again: a check on a resident
// graph allocates nothing.
type scratch struct {
	view    view.View
	reach   traversal.Reachability
	eval    eval.Evaluation
	lookups []graph.Lookup // the resources of a check's queries, in their order
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// readView returns the view that c requires, for work within limits. If the error is nil,
// the caller leaves the view.
func (e *Engine) readView(ctx context.Context, tenantID string, c Consistency, l work.Limits) (readView, error) {
	t := e.tenant(tenantID)
	v := readView{engine: e, limits: l, clock: e.clock}
	var err error
	if c.Mode == AsOf {
		if c, v.clock, err = e.asOf(ctx, tenantID, c); err != nil {
			return v, err
		}
	}
	if c.Assume != nil && !c.Assume.Instant.IsZero() {
		v.clock = c.Assume.clock
	}
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
			return v, v.goColdWith(ctx, tenantID, c.Assume)
		}
	}
	if c.Assume.changesState() {
		t.mu.RUnlock()
		return v, v.goColdWith(ctx, tenantID, c.Assume)
	}
	if e.resident.scant.Load() {
		t.heat.add()
	}
	if t.graph != nil {
		v.scratch = scratches.Get().(*scratch)
		v.view.Graph, v.view.Program, v.locked = t.graph, t.program, t
		isMapped := t.isMapped()
		if l.Heavy {
			v.pin()
		}
		if isMapped { // there may be room on the heap by now
			t.startLoading(true)
		}
		v.describe(ctx)
		return v, nil
	}
	era := t.presentEra()
	t.mu.RUnlock()
	t.startLoading(false)
	v.program = t.coldProgram(v.at.compiled)
	v.goCold(e.snapshot(tenantID, v.at))
	v.keep(era)
	v.describe(ctx)
	return v, nil
}

// describe adds the view to the span of the request.
func (v *readView) describe(ctx context.Context) {
	span := tracing.Current(ctx)
	span.Int("stonetown.revision", int(v.at.revision))
	span.Bool("stonetown.resident", v.locked != nil || v.pinned != nil)
}

// goColdWith makes the view one of its snapshot after the changes of an assumption, if any.
func (v *readView) goColdWith(ctx context.Context, tenantID string, a *Assumption) (err error) {
	snapshot := v.engine.snapshot(tenantID, v.at)
	if a.changesState() {
		if snapshot, err = v.assume(ctx, tenantID, snapshot, a); err != nil {
			return err
		}
	}
	v.goCold(snapshot)
	v.describe(ctx)
	return nil
}

func (v *readView) goCold(snapshot tuplestore.Snapshot) {
	v.scratch, v.snapshot = scratches.Get().(*scratch), snapshot
	if v.view.Program = v.program; v.program == nil {
		v.view.Program = program.New(v.at.compiled, graph.New())
	}
	v.view.Graph = v.view.Program.NewGraph()
	reads := &v.engine.stats.coldReads
	v.view.Reader = view.NewReader(v.view.Graph, v.view.Program, func(ctx context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
		reads.Add(1)
		found, err := snapshot.Find(ctx, l)
		return found, expired(err)
	})
}

// expired returns the error of reading a snapshot. Only a token or an instant leads to a
// revision that has been collected.
func expired(err error) error {
	if errors.Is(err, tuplestore.ErrRevisionCollected) {
		return ErrTokenExpired
	}
	return err
}

// coldView is readView on a graph that belongs to the request.
func (e *Engine) coldView(ctx context.Context, tenantID string, c Consistency, l work.Limits) (readView, error) {
	v, err := e.readView(ctx, tenantID, c, l)
	if err == nil && v.snapshot == nil {
		v.leave()
		v.goCold(e.snapshot(tenantID, v.at))
	}
	return v, err
}

// pin lets changes of the tenant's graph go on while the view is used. A light attempt locks
// it instead, because it takes less time than a change would to copy what it changes.
func (v *readView) pin() {
	v.pinned = v.view.Graph.Pin()
	v.view.Graph = v.pinned
	v.locked.mu.RUnlock()
	v.locked = nil
}

// leave ends the use of the view.
func (v *readView) leave() {
	if v.locked != nil {
		v.locked.mu.RUnlock()
		v.locked = nil
	}
	if v.pinned != nil {
		v.pinned.Unpin()
		v.pinned = nil
	}
	v.engine.meter.Spend(v.view.Budget.Spent())
	v.view = view.View{}
	v.reach.Release()
	v.eval.Release()
	clear(v.lookups) // their IDs belong to the request
	v.lookups = v.lookups[:0]
	scratches.Put(v.scratch)
	v.scratch = nil
}

// snapshot returns the tuples at a position, by the names of its types.
func (e *Engine) snapshot(tenantID string, at position) tuplestore.Snapshot {
	return names.Snapshot(e.store.Snapshot(tenantID, at.revision), at.compiled)
}

// errStoredSchema is the error of an earlier revision whose schema this version of the product
// cannot read.
var errStoredSchema = errors.New("schema of an earlier revision")

// past returns the position of an earlier snapshot.
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
			return at, fmt.Errorf("%w: %w", errStoredSchema, err)
		}
		at.schemaRevision = rev
	}
	at.revision = s.Revision()
	at.token = encodeToken(tenantID, at.epoch, at.revision)
	return at, nil
}

// MaxContextual is the number of contextual tuples that a request may have.
const MaxContextual = 100

// addContextual adds tuples that hold for the request only, as if they were written. The
// error of an invalid one is a [*ContextualError].
func (v *readView) addContextual(ops []WriteOp) error {
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
	v.contextual = facts
	v.view.Overlay = graph.NewOverlay(v.view.Graph, v.view.Reader != nil, facts)
	return nil
}

// begin prepares the view for questions about a subject, which comes from
// [checkedSubject].
func (v *readView) begin(ctx context.Context, subject tuplestore.Subject, values map[string]any) view.Subject {
	v.start(ctx, values)
	s := v.about(subject)
	v.reach.Begin(&v.view, s)
	v.eval.Begin(&v.view, s)
	return s
}

// start sets what all questions of a request are answered with.
func (v *readView) start(ctx context.Context, values map[string]any) {
	v.view.Start(ctx, v.limits, v.clock, values)
}

// about returns a subject, which comes from [checkedSubject], in the numbers of the view.
func (v *readView) about(s tuplestore.Subject) view.Subject {
	if v.view.Reader != nil {
		v.view.Reader.About(s)
	}
	return v.view.Subject(s)
}
