package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/engine/internal/names"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// WatchRequest asks for the changes after a revision.
type WatchRequest struct {
	// After is the token of the last revision that the watcher has processed; empty: the
	// newest.
	After string
	// Decisions, if not nil, asks for the decisions that changed, instead of what changed them.
	Decisions *WatchedDecisions
	// Heartbeat is the maximum time between events. Default 15 s.
	Heartbeat time.Duration
}

// WatchEvent is one commit, or a heartbeat, which has no changes.
type WatchEvent struct {
	Token string // names the revision of the event, to continue from
	At    time.Time
	Actor string
	// Changes are the net effect, presences (registered resources) among them.
	Changes []tuplestore.Change
	// SchemaChanged: the resource types changed.
	SchemaChanged bool
	// Renamed are the types and relations that have got new names. All relations and resources have
	// these from this event on: they are not among Changes, which have the names after it.
	Renamed   []schema.Rename
	Heartbeat bool
	// Decisions are those that the commit changed, of a watch for decisions, in the order of their
	// resources and subjects. A commit that changed none has no event.
	Decisions []DecisionChange
	// Scope, if not nil, takes the place of Decisions.
	Scope *DecisionScope
}

const (
	watchHeartbeat = 15 * time.Second
	// watchPause is how often a watcher that is up to date looks for changes. That reads
	// memory where this process is the only writer, and is one small query elsewhere.
	watchPause = 100 * time.Millisecond
)

// Watch emits every change of a tenant's tuples and types, in order and without gaps, until
// ctx ends or emit fails, and returns that error. The first event is a heartbeat with the
// token that the watch starts from. It fails with [ErrTokenInvalid], [ErrTokenUnknown], or
// [ErrTokenExpired] if changes since then have been collected; the caller then has to read
// all data again. A watch for decisions also fails as [Engine.ListSubjects] does if the newest
// types do not have them.
func (e *Engine) Watch(ctx context.Context, tenantID string, req WatchRequest, emit func(WatchEvent) error) error {
	if req.Heartbeat <= 0 {
		req.Heartbeat = watchHeartbeat
	}
	now, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	after, types, err := e.watchFrom(ctx, tenantID, now, req.After)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	w := watcher{engine: e, tenant: tenantID, epoch: now.epoch, after: after, types: types, emit: emit, beat: req.Heartbeat}
	if req.Decisions != nil {
		if err := w.watchDecisions(now, *req.Decisions); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		defer w.decisions.account(0)
	}
	if err := w.heartbeat(); err != nil {
		return err
	}
	return w.run(ctx)
}

// watchFrom returns the revision that a watch starts after, and its types.
func (e *Engine) watchFrom(ctx context.Context, tenantID string, now position, token string) (tuplestore.Revision, *schema.Compiled, error) {
	if token == "" {
		return now.revision, now.compiled, nil
	}
	epoch, after, err := decodeToken(tenantID, token)
	switch {
	case err != nil:
		return 0, nil, err
	case epoch != now.epoch && (epoch != "" || after > 0): // a history has no epoch before its first revision
		return 0, nil, ErrTokenExpired
	case after > now.revision:
		return 0, nil, ErrTokenUnknown
	}
	at, err := e.past(ctx, tenantID, now, e.store.Snapshot(tenantID, after))
	return after, at.compiled, err
}

type watcher struct {
	engine *Engine
	tenant string
	epoch  string
	after  tuplestore.Revision
	types  *schema.Compiled // of the revision after
	emit   func(WatchEvent) error
	beat   time.Duration
	last   time.Time // when the last event was emitted

	decisions *decisionWatch // nil: all changes are watched
}

func (w *watcher) run(ctx context.Context) error {
	for {
		commits, err := w.read(ctx)
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if w.decisions != nil {
			err = w.decisions.send(ctx, commits)
		} else {
			err = w.sendAll(commits)
		}
		if err != nil {
			return err
		}
		if moreChanges(commits) {
			continue
		}
		if err := w.beatIfDue(); err != nil {
			return err
		}
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
}

// sendAll emits an event for each commit.
func (w *watcher) sendAll(commits []tuplestore.Commit) error {
	for i := range commits {
		c := &commits[i]
		w.after = c.Revision
		ev := WatchEvent{At: c.At, Actor: c.Actor, SchemaChanged: c.Schema != nil}
		if c.Schema != nil {
			after, err := compileDocument(c.Schema)
			if err != nil {
				return fmt.Errorf("watch: %w", err)
			}
			ev.Renamed = schema.Renamed(w.types.Types, after.Types)
			w.types = after
		}
		ev.Changes = names.Changes(c, w.types)
		if err := w.send(ev); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until it is time to look for changes again.
func (w *watcher) wait(ctx context.Context) error {
	pause := time.NewTimer(min(watchPause, w.beat))
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.engine.background.Done():
		return context.Canceled
	}
}

// read returns the next commits, none if there are none yet.
func (w *watcher) read(ctx context.Context) ([]tuplestore.Commit, error) {
	if head, ok := w.engine.store.KnownHead(w.tenant); ok && head.Epoch == w.epoch && head.Revision == w.after {
		return nil, nil
	}
	commits, err := w.engine.store.Changes(ctx, w.tenant, w.after, changesAtOnce)
	if len(commits) > 0 && w.epoch == "" { // the history began after the watch
		head, err := w.engine.store.Head(ctx, w.tenant)
		if err != nil {
			return nil, err
		}
		w.epoch = head.Epoch
	}
	if errors.Is(err, tuplestore.ErrRevisionCollected) || errors.Is(err, tuplestore.ErrRevisionUnknown) {
		return nil, ErrTokenExpired
	}
	return commits, err
}

// beatIfDue emits a heartbeat if the last event is too long ago.
func (w *watcher) beatIfDue() error {
	if time.Since(w.last) < w.beat {
		return nil
	}
	return w.heartbeat()
}

func (w *watcher) heartbeat() error {
	return w.send(WatchEvent{At: w.engine.clock().UTC(), Heartbeat: true})
}

func (w *watcher) send(ev WatchEvent) error {
	ev.Token = encodeToken(w.tenant, w.epoch, w.after)
	w.last = time.Now()
	return w.emit(ev)
}
