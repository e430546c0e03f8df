package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/names"
	"stonetown/engine/internal/nodecache"
	"stonetown/engine/internal/program"
	"stonetown/internal/tracing"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// tenant is the state of one tenant: its newest known position and schema, and its graph
// while it is resident.
type tenant struct {
	engine *Engine
	id     string
	tail   flights // reads that bring the position up to date
	lease  Lease

	// mu guards position, program, graph and its contents. Light attempts on a resident
	// graph hold it for reading, so each sees one revision; heavy ones pin the graph. The
	// position only moves forward, or is forgotten when the tenant is idle.
	mu       sync.RWMutex
	position position
	graph    *graph.Graph     // nil: the tenant is not resident
	program  *program.Program // in the numbers of graph

	cold atomic.Pointer[program.Program] // of graphs that belong to a request
	era  atomic.Pointer[nodecache.Era]   // parts.go; changes while mu is held

	unused  atomic.Int32 // looks of dropIdle since the last request
	freshAt atomic.Int64 // Unix ns at which the position was the newest
	heat    heat         // how many requests it gets
	size    atomic.Int64 // in bytes, of its graph when that was last accounted for
	saved   atomic.Int64 // the revision of its file; 0: there is none, or an older one
	loading atomic.Bool
	retryAt atomic.Int64 // Unix ns before which no load is tried

	tooLarge tooLarge
}

// position is a revision of the tenant with its schema.
type position struct {
	known          bool
	revision       tuplestore.Revision
	schemaRevision tuplestore.Revision
	epoch          string
	compiled       *schema.Compiled
	token          string // of the revision; it is returned far more often than it changes
}

// positionAt returns the position at a head.
func (t *tenant) positionAt(head tuplestore.Head, compiled *schema.Compiled) position {
	return position{
		known: true, revision: head.Revision, schemaRevision: head.SchemaRevision, epoch: head.Epoch,
		compiled: compiled, token: encodeToken(t.id, head.Epoch, head.Revision),
	}
}

func newTenant(e *Engine, id string) *tenant {
	t := &tenant{engine: e, id: id, lease: e.lease(id)}
	t.tail.run, t.tail.group = t.refresh, &e.loads
	return t
}

// rlock locks mu for reading when the position is as fresh as c requires. It reports
// whether c's token had to be ignored.
func (t *tenant) rlock(ctx context.Context, c Consistency) (tokenIgnored bool, err error) {
	t.use()
	var epoch string
	var rev tuplestore.Revision
	if c.Mode == AtLeast || c.Mode == Exactly {
		if epoch, rev, err = decodeToken(t.id, c.Token); err != nil {
			return false, err
		}
	}
	t.mu.RLock()
	if t.isFresh(c.Mode, epoch, rev) {
		return false, nil
	}
	resident, at := t.graph != nil, t.position
	t.mu.RUnlock()
	if resident && t.followKnown(at) {
		t.mu.RLock()
		if t.isFresh(c.Mode, epoch, rev) {
			return false, nil
		}
		t.mu.RUnlock()
	}
	for known := false; !known; { // it may be forgotten after the read
		t.use()
		// The read itself is shared with other requests and belongs to no trace.
		_, span := tracing.Start(ctx, "engine.wait_for_newest_revision")
		err = t.tail.do(ctx)
		span.End(err)
		if err != nil {
			return false, err
		}
		t.mu.RLock()
		if known = t.position.known; !known {
			t.mu.RUnlock()
		}
	}
	switch {
	case c.Mode != AtLeast && c.Mode != Exactly:
		return false, nil
	case t.position.epoch == epoch && t.position.revision >= rev:
		return false, nil
	case t.position.epoch == epoch:
		err = ErrTokenUnknown
	case c.Mode == Exactly:
		err = ErrTokenExpired
	default:
		return true, nil
	}
	t.mu.RUnlock()
	return false, err
}

// isFresh reports whether the position is fresh enough as it is. mu is held.
func (t *tenant) isFresh(mode ConsistencyMode, epoch string, rev tuplestore.Revision) bool {
	at := &t.position
	if !at.known {
		return false
	}
	switch mode {
	case AtLeast, Exactly:
		return at.epoch == epoch && at.revision >= rev
	case MinimizeLatency:
		return time.Since(time.Unix(0, t.freshAt.Load())) <= t.engine.maxStaleness
	default:
		if head, ok := t.engine.store.KnownHead(t.id); ok {
			return head.Revision == at.revision && head.Epoch == at.epoch
		}
		return t.lease.IsNewest(at.epoch, at.revision)
	}
}

// refresh moves the position to the newest revision. It runs in t.tail, possibly several
// times at once.
func (t *tenant) refresh() error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.engine.background, t.engine.tailTimeout)
	defer cancel()
	t.engine.stats.tailReads.Add(1)
	before := t.revision()
	// A graph can be loaded or dropped at any time, so either may have to be repeated.
	err := errNotFollowed
	for errors.Is(err, errNotFollowed) && ctx.Err() == nil {
		if err = t.follow(ctx); errors.Is(err, errNotFollowed) {
			err = t.lookUp(ctx, began.UnixNano())
		}
	}
	if err != nil {
		return fmt.Errorf("bring tenant up to date: %w", err)
	}
	t.freshAt.Store(began.UnixNano())
	t.lease.Read(t.revision() != before)
	return nil
}

func (t *tenant) revision() tuplestore.Revision {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.position.revision
}

// errNotFollowed is the error of a tenant without a graph that the changelog can move.
var errNotFollowed = errors.New("no graph to move forward")

// errRenamed is the error of a commit whose renames a graph cannot follow.
var errRenamed = errors.New("the graph has names before renames")

// changesAtOnce is the number of commits in one read of the changelog.
const changesAtOnce = 256

// moreChanges reports whether there may be more commits than one read of the changelog returned.
func moreChanges(commits []tuplestore.Commit) bool {
	n := len(commits)
	return n == changesAtOnce || n > 0 && commits[n-1].More
}

// follow applies the changelog to the resident graph.
func (t *tenant) follow(ctx context.Context) error {
	for {
		t.mu.RLock()
		resident, after := t.graph != nil, t.position.revision
		t.mu.RUnlock()
		if !resident {
			return errNotFollowed
		}
		commits, err := t.engine.store.Changes(ctx, t.id, after, changesAtOnce)
		if errors.Is(err, tuplestore.ErrRevisionCollected) || errors.Is(err, tuplestore.ErrRevisionUnknown) ||
			len(commits) > 0 && commits[0].Revision != after+1 {
			t.drop()
			return errNotFollowed
		}
		if err != nil {
			return err
		}
		for i := range commits {
			err := t.apply(&commits[i])
			if errors.Is(err, errRenamed) {
				t.drop()
				return errNotFollowed
			}
			if err != nil {
				return err
			}
		}
		if !moreChanges(commits) {
			if len(commits) > 0 {
				t.account()
			}
			return nil
		}
	}
}

// followKnown applies the commits after a position to the resident graph, if the store has them in
// memory. It reports whether it has; a commit that cannot be applied is left to refresh.
func (t *tenant) followKnown(at position) bool {
	commits, ok := t.engine.store.KnownChanges(t.id, at.epoch, at.revision)
	if !ok {
		return false
	}
	for i := range commits {
		if err := t.apply(&commits[i]); err != nil {
			return false
		}
	}
	t.account()
	return true
}

// followNewest is followKnown from the position of the resident graph, if there is one.
func (t *tenant) followNewest() {
	t.mu.RLock()
	resident, at := t.graph != nil, t.position
	t.mu.RUnlock()
	if resident {
		t.followKnown(at)
	}
}

// apply applies one commit to the resident graph, unless another call has done so.
func (t *tenant) apply(c *tuplestore.Commit) error {
	var compiled *schema.Compiled
	if c.Schema != nil {
		var err error
		if compiled, err = compileDocument(c.Schema); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.graph == nil || c.Revision > t.position.revision+1:
		return errNotFollowed
	case c.Revision <= t.position.revision:
		return nil
	}
	if c.Schema != nil {
		if !names.Rename(t.graph, t.position.compiled, compiled) {
			return errRenamed
		}
		t.position.schemaRevision = c.Revision
		t.position.compiled = compiled
	}
	for _, change := range names.Changes(c, t.position.compiled) {
		t.graph.Apply(change)
	}
	t.position.revision = c.Revision
	t.position.token = encodeToken(t.id, t.position.epoch, c.Revision)
	if c.Schema != nil {
		t.program = program.New(compiled, t.graph)
	}
	return nil
}

func compileDocument(document []byte) (*schema.Compiled, error) {
	types, err := schema.Decode(document)
	if err != nil {
		return nil, err
	}
	compiled, err := schema.Compile(types)
	if err != nil {
		return nil, fmt.Errorf("stored schema does not compile: %w", err)
	}
	return compiled, nil
}

// coldProgram returns the program of the newest schema for graphs that belong to a request, which
// share it.
func (t *tenant) coldProgram(c *schema.Compiled) *program.Program {
	p := t.cold.Load()
	if p == nil || p.Compiled != c {
		p = program.New(c, graph.New())
		t.cold.Store(p)
	}
	return p
}

// lookUp moves the position of a tenant that is not resident. began is the start of the
// refresh, in the unit of freshAt.
func (t *tenant) lookUp(ctx context.Context, began int64) error {
	t.mu.RLock()
	at, follows := t.position, t.era.Load() != nil
	t.mu.RUnlock()
	var head tuplestore.Head
	var changed []tuplestore.Tuple
	complete := false
	var err error
	switch {
	case at.known && follows:
		head, changed, complete, err = t.engine.store.Since(ctx, t.id, at.revision)
	case at.known:
		head, err = t.engine.store.Head(ctx, t.id)
	}
	if err != nil {
		return err
	}
	if !at.known || head.SchemaRevision != at.schemaRevision || head.Epoch != at.epoch {
		complete = false
		var document []byte
		if head, document, err = t.engine.store.Latest(ctx, t.id); err != nil {
			return err
		}
		if at.compiled, err = compileDocument(document); err != nil {
			return err
		}
	}
	newest := t.positionAt(head, at.compiled)
	t.mu.Lock()
	if t.graph == nil {
		// Another read may have moved it further; under another epoch, only one that began
		// later.
		same := t.position.epoch == newest.epoch
		if !t.position.known || same && t.position.revision < newest.revision || !same && t.freshAt.Load() < began {
			t.moveEra(at, newest, names.Tuples(changed, newest.compiled), complete)
			t.position = newest
		}
		t.mu.Unlock()
		return nil
	}
	behind := t.position.revision < newest.revision
	t.mu.Unlock()
	if behind { // a graph was published meanwhile, at an older revision
		return t.follow(ctx)
	}
	return nil
}
