package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/engine/internal/names"
	"stonetown/engine/internal/work"
	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// HistoryRequest asks when the answer to a check changed, and by whose write.
type HistoryRequest struct {
	Subject     tuplestore.Subject
	Query       Query // its Subject is ignored
	Context     map[string]any
	Consistency Consistency      // Full or AsOf: where the history ends
	After       *HistoryPosition // omits changes that are not older
	// Limit is the maximum number of changes.
	Limit int
}

// HistoryPosition is a point in the history of a tenant: a revision at an instant.
type HistoryPosition struct {
	Token   string
	Instant time.Time
}

// DecisionHistory is the answer to a [HistoryRequest].
type DecisionHistory struct {
	Changes []CheckChange // newest first
	// Next is where an earlier part of the history ends; nil: there is none.
	Next *HistoryPosition
	// Collected: the history before the last change is not retained.
	Collected bool
	// Proof has the relations that prove an answer which is older than the retained history.
	Proof []tuplestore.Record
	Token string // names the revision at which the history ends
}

// CheckChange is a change of the answer to a check.
type CheckChange struct {
	Decision // after the change, with reasons
	At       time.Time
	Cause    ChangeCause
	Token    string // names the first revision with the answer
	Actor    string // of the write; empty if a relation has expired
	// Changes are the relations and resources that the write changed, or that have expired, and
	// that the evaluation has read: at most 100.
	Changes []tuplestore.Change
}

// ChangeCause is why an answer changed.
type ChangeCause string

const (
	CausedByWrite  ChangeCause = "write"
	CausedByExpiry ChangeCause = "expiry"
	CausedByTypes  ChangeCause = "resource_types"
)

const (
	// historySteps is how many states one request examines, and historyReads after how many tuples
	// that it requested or found it examines no more.
	historySteps = 100
	historyReads = 50_000
	// historyChanges is how many tuples of one write are named.
	historyChanges = 100
)

// CheckHistory finds the changes of the answer to a check. It evaluates the check cold and notes
// what it reads. The answer has been the same since the newest change of any of that: a write, a change
// of the types, or an expiry. It goes on just before that change, so it examines no more states
// than differ in what the answer depends on. The work of a call is bounded, so it can return
// fewer changes than requested, even none, with a Next. Errors are those of
// [Engine.Check] that are not of one query.
func (e *Engine) CheckHistory(ctx context.Context, tenantID string, req HistoryRequest) (history *DecisionHistory, err error) {
	ctx, span := tracing.Start(ctx, "engine.check_history")
	history, err = e.checkHistory(ctx, tenantID, &req)
	span.End(err)
	if err != nil {
		return nil, fmt.Errorf("check history: %w", err)
	}
	return history, nil
}

func (e *Engine) checkHistory(ctx context.Context, tenantID string, req *HistoryRequest) (*DecisionHistory, error) {
	w := walk{engine: e, tenant: tenantID, request: req}
	end, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	history := &DecisionHistory{Token: encodeToken(tenantID, w.now.epoch, end.revision)}
	newer, err := w.stateAt(ctx, end)
	if err != nil {
		return nil, err
	}
	reads := 0
	for steps := 0; steps < historySteps && reads < historyReads; steps++ {
		change, before, err := w.lastChange(ctx, newer)
		var older *state
		if err == nil && change != nil {
			older, err = w.stateAt(ctx, before)
		}
		if history.Collected = errors.Is(err, ErrTokenExpired); history.Collected || err == nil && change == nil {
			history.Next = nil
			if history.Collected {
				history.Proof, err = w.proof(ctx, newer)
				return history, expired(err)
			}
			return history, nil
		}
		if err != nil {
			return nil, err
		}
		reads += older.reads()
		history.Next = &HistoryPosition{encodeToken(tenantID, w.now.epoch, before.revision), before.instant}
		if !newer.same(older) {
			change.Decision = newer.decision
			if err := w.describe(ctx, change, newer, older); err != nil {
				return nil, err
			}
			history.Changes = append(history.Changes, *change)
			if len(history.Changes) == req.Limit {
				return history, nil
			}
		}
		newer = older
	}
	return history, nil
}

// walk is the way of a request back through the history.
type walk struct {
	engine  *Engine
	tenant  string
	request *HistoryRequest
	now     position
}

// moment is a point in the history. Of changes at the same time, expiries come before commits.
type moment struct {
	revision tuplestore.Revision
	instant  time.Time
}

// state is the answer at a moment with what it depends on.
type state struct {
	moment
	at       position
	decision Decision
	lookups  []tuplestore.Lookup
	found    []tuplestore.Fact
}

// same reports whether the answers of two states are equal.
func (s *state) same(other *state) bool {
	return s.decision.Allowed == other.decision.Allowed && fmt.Sprintf("%T", s.decision.Err) == fmt.Sprintf("%T", other.decision.Err)
}

// reads counts the tuples that were requested or found.
func (s *state) reads() int {
	n := len(s.found)
	for _, l := range s.lookups {
		n += len(l.Tuples) + len(l.Usersets) + len(l.All) + len(l.Naming)
	}
	return n
}

// begin returns the moment at which the history ends.
func (w *walk) begin(ctx context.Context) (moment, error) {
	c, clock := w.request.Consistency, w.engine.clock
	if after := w.request.After; after != nil {
		c, clock = Consistency{Mode: Exactly, Token: after.Token}, func() time.Time { return after.Instant }
	} else if c.Mode == AsOf {
		var err error
		if c, clock, err = w.engine.asOf(ctx, w.tenant, c); err != nil {
			return moment{}, err
		}
	}
	t := w.engine.tenant(w.tenant)
	if _, err := t.rlock(ctx, c); err != nil {
		return moment{}, err
	}
	w.now = t.position
	t.mu.RUnlock()
	end := moment{w.now.revision, clock()}
	if c.Mode == Exactly {
		_, end.revision, _ = decodeToken(w.tenant, c.Token)
	}
	return end, nil
}

// recorder is a snapshot that notes what is read.
type recorder struct {
	tuplestore.Snapshot
	*state
}

func (r recorder) Find(ctx context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
	found, err := r.Snapshot.Find(ctx, l)
	r.lookups = append(r.lookups, tuplestore.Lookup{
		Tuples: slices.Clone(l.Tuples), Usersets: slices.Clone(l.Usersets), All: slices.Clone(l.All), Naming: slices.Clone(l.Naming),
	})
	r.found = append(r.found, found...)
	return found, err
}

// stateAt evaluates the check at a moment.
func (w *walk) stateAt(ctx context.Context, m moment) (*state, error) {
	var s *state
	err := w.engine.attempt(ctx, w.tenant, func(l work.Limits) (err error) {
		s = &state{moment: m}
		snapshot := w.engine.store.Snapshot(w.tenant, m.revision)
		if s.at, err = w.engine.past(ctx, w.tenant, w.now, snapshot); err != nil {
			return err
		}
		v := readView{engine: w.engine, limits: l, clock: func() time.Time { return m.instant }, at: s.at}
		v.goCold(recorder{w.engine.snapshot(w.tenant, s.at), s})
		c := check{
			readView: v, req: &CheckRequest{Subject: w.request.Subject, Queries: []Query{w.request.Query}, Context: w.request.Context, Reasons: true},
			response: &CheckResponse{Decisions: make([]Decision, 1)},
		}
		c.req.Queries[0].Subject = nil
		defer c.leave()
		err = c.answer(ctx)
		s.decision = c.response.Decisions[0]
		var invalid *InvalidSubjectError
		if errors.As(err, &invalid) { // its type or relation did not exist
			s.decision, err = Decision{Err: invalid}, nil
		}
		return err
	})
	return s, err
}

// lastChange returns the newest change of what the answer at a state depends on, and the moment
// just before; nil if there was none.
func (w *walk) lastChange(ctx context.Context, s *state) (*CheckChange, moment, error) {
	rev := s.at.schemaRevision
	cause := CausedByTypes
	for _, l := range s.lookups {
		touched, err := w.engine.snapshot(w.tenant, s.at).Touched(ctx, l)
		if err != nil {
			return nil, moment{}, expired(err)
		}
		if touched > rev {
			rev, cause = touched, CausedByWrite
		}
	}
	var expiry int64
	for _, f := range s.found {
		if f.ExpiresAt != 0 && f.ExpiresAt <= s.instant.UnixMicro() {
			expiry = max(expiry, f.ExpiresAt)
		}
	}
	if rev == 0 && expiry == 0 {
		return nil, moment{}, nil
	}
	committed, err := w.engine.store.CommittedAt(ctx, w.tenant, rev)
	collected := errors.Is(err, tuplestore.ErrRevisionCollected)
	if err != nil && !collected {
		return nil, moment{}, err
	}
	if expires := time.UnixMicro(expiry).UTC(); expiry != 0 && (collected || rev == 0 || expires.After(committed)) {
		before := expires.Add(-time.Microsecond)
		at, _, err := w.engine.store.RevisionAt(ctx, w.tenant, before)
		at = min(at, s.revision)
		change := &CheckChange{At: expires, Cause: CausedByExpiry, Token: encodeToken(w.tenant, w.now.epoch, at)}
		return change, moment{at, before}, expired(err)
	}
	if collected {
		return nil, moment{}, ErrTokenExpired
	}
	change := &CheckChange{At: committed, Cause: cause, Token: encodeToken(w.tenant, w.now.epoch, rev)}
	return change, moment{rev - 1, committed}, nil
}

// proof returns the stored relations that prove the answer at a state, with their authors.
func (w *walk) proof(ctx context.Context, s *state) ([]tuplestore.Record, error) {
	snapshot := w.engine.snapshot(w.tenant, s.at)
	var proof []tuplestore.Record
	for _, r := range s.decision.Reasons {
		i := slices.IndexFunc(s.found, func(f tuplestore.Fact) bool { return f.Tuple.String() == r.Via })
		if i < 0 || len(proof) == historyChanges {
			continue // a step without a tuple
		}
		t := s.found[i].Tuple
		found, err := snapshot.List(ctx, tuplestore.Filter{
			ObjectType: t.Object.Type, ObjectID: t.Object.ID, Relation: t.Relation,
			SubjectType: t.Subject.Type, SubjectID: t.Subject.ID, SubjectRelation: t.Subject.Relation,
		}, nil, 1) // without a subject relation, the plain subject is the first
		if err != nil {
			return nil, err
		}
		proof = append(proof, found...)
	}
	return proof, nil
}

// describe adds the changes on which the answer depends.
func (w *walk) describe(ctx context.Context, c *CheckChange, newer, older *state) error {
	if c.Cause == CausedByExpiry {
		for _, f := range slices.Concat(newer.found, older.found) {
			expired := tuplestore.Change{Tuple: f.Tuple, Qualifier: f.Qualifier}
			if f.ExpiresAt == c.At.UnixMicro() && !slices.Contains(c.Changes, expired) {
				c.Changes = append(c.Changes, expired)
			}
		}
		return nil
	}
	_, rev, _ := decodeToken(w.tenant, c.Token)
	commits, err := w.engine.store.Changes(ctx, w.tenant, rev-1, 1)
	if err != nil || len(commits) == 0 {
		return err
	}
	c.Actor = commits[0].Actor
	lookups := slices.Concat(newer.lookups, older.lookups)
	for _, change := range names.Changes(&commits[0], newer.at.compiled) {
		if len(c.Changes) < historyChanges && slices.ContainsFunc(lookups, func(l tuplestore.Lookup) bool { return l.Requests(change.Tuple) }) {
			c.Changes = append(c.Changes, change)
		}
	}
	return nil
}
