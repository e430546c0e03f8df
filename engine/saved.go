package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"stonetown/engine/internal/graphfile"
	"stonetown/tuplestore"
)

const (
	// saveAtClose bounds the time for saving at the end.
	saveAtClose = 10 * time.Second
	// A graph in a file is of use if it can be brought forward in less time than its tuples could be
	// loaded: if it is commitsBehind, and another commit for each bytesPerCommit of its memory.
	commitsBehind  = 10_000
	bytesPerCommit = 1000
	// bytesPerTuple is how much memory a tuple takes, at most.
	bytesPerTuple = 100
)

// saveGraphs saves graphs until the engine is closed, and then once more.
func (e *Engine) saveGraphs() {
	tick := time.NewTicker(e.saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.saveAll(e.background)
			e.pruneFiles(e.background)
		case <-e.background.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(e.background), saveAtClose)
			defer cancel()
			e.saveAll(ctx)
			return
		}
	}
}

// saveAll saves the graphs that have changed since they were saved.
func (e *Engine) saveAll(ctx context.Context) {
	e.tenants.Range(func(_, t any) bool {
		if err := t.(*tenant).save(ctx); err != nil && ctx.Err() == nil {
			e.logger.Warn("the graph of a tenant is not saved", "tenant", t.(*tenant).id, "error", err)
		}
		return ctx.Err() == nil
	})
}

// save saves the tenant's graph, if there is one and its file is older.
func (t *tenant) save(ctx context.Context) error {
	t.mu.RLock()
	at, g := t.position, t.graph
	if g == nil || g.Bytes() < t.engine.leastSaved || int64(at.revision) == t.saved.Load() {
		t.mu.RUnlock()
		return nil
	}
	g = g.Pin()
	t.mu.RUnlock()
	defer g.Unpin()
	committed, err := t.engine.store.CommittedAt(ctx, t.id, at.revision)
	if err != nil {
		return err
	}
	h := graphfile.Header{Tenant: t.id, Epoch: at.epoch, Revision: at.revision, CommittedAt: committed, Bytes: g.Bytes()}
	if err := t.engine.files.Write(h, g); err != nil {
		return err
	}
	t.saved.Store(int64(at.revision))
	return nil
}

// pruneFiles removes the files of tenants that are deleted, and those whose revision the history
// does not reach any more.
func (e *Engine) pruneFiles(ctx context.Context) {
	err := e.files.Prune(func(h graphfile.Header) bool {
		_, is, err := e.isOf(ctx, h)
		return is || err != nil
	})
	if err != nil && ctx.Err() == nil {
		e.logger.Warn("files of graphs are not removed", "error", err)
	}
}

// isOf reports whether a graph in a file is one of the history in the store, and the head of that.
func (e *Engine) isOf(ctx context.Context, h graphfile.Header) (head tuplestore.Head, is bool, err error) {
	head, err = e.store.Head(ctx, h.Tenant)
	if err != nil || h.Epoch != head.Epoch || h.Revision > head.Revision {
		return head, false, err
	}
	committed, err := e.store.CommittedAt(ctx, h.Tenant, h.Revision)
	if errors.Is(err, tuplestore.ErrRevisionCollected) {
		return head, false, nil
	}
	return head, committed.Equal(h.CommittedAt), err
}

// errNotOfUse is the error of a file whose graph is not worth reading.
var errNotOfUse = errors.New("the file is too old, or of another history")

// restore makes the graph in the tenant's file resident, brought forward to the newest revision.
// Without a file the error is [os.ErrNotExist]. If the graph is too large, it also returns about how
// many tuples it has.
func (t *tenant) restore(ctx context.Context, mapped bool) (tuples int64, err error) {
	e := t.engine
	if e.files == nil {
		return 0, os.ErrNotExist
	}
	file, err := e.files.Read(t.id)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	head, is, err := e.isOf(ctx, file.Header)
	if err != nil {
		return 0, err
	}
	if !is || int64(head.Revision-file.Revision) > commitsBehind+file.Bytes/bytesPerCommit {
		return 0, errNotOfUse
	}
	if !mapped && file.Bytes > e.budget {
		return file.Bytes / bytesPerTuple, errTooLarge
	}
	document, since, err := e.store.Snapshot(t.id, file.Revision).Schema(ctx)
	if err != nil {
		return 0, err
	}
	compiled, err := compileDocument(document)
	if err != nil {
		return 0, err
	}
	memory, err := t.memory(mapped)
	if err != nil {
		return 0, err
	}
	g, err := file.Graph(memory)
	if err != nil {
		return 0, err
	}
	if err := memory.Err(); err != nil {
		return file.Bytes / bytesPerTuple, fmt.Errorf("%w: %w", errTooLarge, err)
	}
	at := t.positionAt(tuplestore.Head{Revision: file.Revision, SchemaRevision: since, Epoch: file.Epoch}, compiled)
	if err := t.bringForward(ctx, g, at, head.Revision); err != nil {
		return 0, err
	}
	t.saved.Store(int64(file.Revision))
	return 0, nil
}
