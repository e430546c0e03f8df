// Package engine answers permission checks by a schema and tuples.
//
// A check decides whether a subject may perform an action on a resource. The action names a
// relation, and the relation's rewrites and the tenant's tuples determine its subjects. By
// default an answer is fully consistent: it reflects every write acknowledged before the
// check arrived. It is served from memory all the same:
//
//   - Each tenant in use has a resident graph of its tuples at one revision, which the
//     changelog moves forward. A check first makes sure that the graph reflects the newest
//     revision. Where this process is the database's only writer that is a comparison of
//     two numbers; elsewhere it is one small read of the changelog, shared by all checks
//     that wait for it, or none while this process has a read lease ([Config.Lease]).
//   - A tenant that is not resident, because it is being loaded or exceeds the
//     memory budget, is evaluated cold: on a snapshot, level by level, with one
//     read per level for the whole batch. What it reads is kept as far as memory
//     suffices, and the changelog tells how long it holds.
//
// Both are the same evaluation on the same kind of graph. The packages below internal have
// the parts: graph, program (a schema in the numbers of a graph), work, view (the state
// that answers a request), traversal and eval.
//
// Writes are validated by the schema, and a new schema by the stored tuples, in the
// transaction that commits them. The schema of a revision therefore allows every tuple
// stored at it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/engine/internal/graphfile"
	"stonetown/engine/internal/nodecache"
	"stonetown/internal/fair"
	"stonetown/tuplestore"
)

// Config is the store and the limits of an engine. Zero values get the stated defaults.
type Config struct {
	// Store holds the tuples. Required.
	Store tuplestore.Store

	// ResidentBytes bounds the estimated memory of all resident graphs, and of parts of tenants
	// that are not resident. Graphs get up to seven eighths of it: beyond that the tenants with
	// the fewest requests are dropped, and so is a tenant that exceeds it alone: their graphs are in
	// mapped files, or they are evaluated cold. Parts get what is left. Default 4 GiB; a negative
	// value keeps nothing in memory.
	ResidentBytes int64

	// MappedBytes bounds the files of graphs that do not fit into ResidentBytes: such a graph is
	// in a mapped file in GraphFolder, of which the kernel keeps in memory what is used. Beyond it
	// the tenants with the fewest requests are dropped; a file that is being filled does not count
	// yet. Each takes a file descriptor. Default 8 GiB. There are none with a negative value, without
	// a GraphFolder and on systems other than Unix, and such tenants stay cold.
	MappedBytes int64

	// IdleAfter is how long a tenant without requests stays in memory: its graph and its schema.
	// Default 15 minutes.
	IdleAfter time.Duration

	// GraphFolder is a folder in which the graphs of tenants are saved, from time to time and at
	// Close, so that a later engine need not load them from the store. It is created unless it
	// exists. Each store needs a folder of its own. Default: nothing is saved.
	GraphFolder string

	// SaveEvery is the time after which a graph that has changed is saved again. Default 10
	// minutes.
	SaveEvery time.Duration

	// LeastSaved is the estimated memory, in bytes, of the smallest graph that is saved; others
	// load quickly. Default 1 MiB.
	LeastSaved int64

	// MaxVisits bounds the work of one request: objects visited, edges followed, conditions
	// evaluated, tuples read. Its unit is a visit, about 30 ns. Beyond it the request fails
	// with a [*BudgetError]. Default 2,000,000.
	MaxVisits int

	// Meter, if not nil, is a budget of all requests together.
	Meter *Meter

	// MaxStaleness is the maximum age of the data of a MinimizeLatency answer. Default 5 s.
	MaxStaleness time.Duration

	// TailTimeout bounds one read that brings a tenant up to date. If it fails, the checks
	// that wait for it fail; later checks start another. Default 10 s.
	TailTimeout time.Duration

	// Lease returns the read lease of a tenant, with which fully consistent answers come from memory
	// while other processes write to the database, too. Default: there are none.
	Lease func(tenant string) Lease

	// Clock is the time by which tuples expire. Default: time.Now.
	Clock func() time.Time

	// Logger gets the errors of background work. Default: discarded.
	Logger *slog.Logger
}

// Lease is the right to answer from memory without reading what is the newest revision.
type Lease interface {
	// IsNewest reports whether a revision, which the caller has read before, is the newest one.
	IsNewest(epoch string, at tuplestore.Revision) bool
	// Read notes that the newest revision was read from the store, and whether it was new.
	Read(changed bool)
	// Forget ends the lease, if it is held, because the tenant is idle.
	Forget()
}

// noLease is never held.
type noLease struct{}

func (noLease) IsNewest(string, tuplestore.Revision) bool { return false }
func (noLease) Read(bool)                                 {}
func (noLease) Forget()                                   {}

// Engine answers checks and makes writes for any number of tenants. It is safe for
// concurrent use.
type Engine struct {
	store        tuplestore.Store
	budget       int64             // of graphs; negative: none is resident
	mappedBudget int64             // of mapped files; 0: there are none
	parts        *nodecache.Cache  // of tenants that are not resident; nil: nothing is kept
	files        *graphfile.Folder // nil: nothing is saved
	saveEvery    time.Duration
	leastSaved   int64
	idleAfter    time.Duration
	maxVisits    int
	meter        *Meter // nil: there is none
	maxStaleness time.Duration
	tailTimeout  time.Duration
	lease        func(tenant string) Lease
	clock        func() time.Time
	logger       *slog.Logger
	heavy        *fair.Gate      // attempt.go
	heavyThreads *fair.Threads   // of those the gate admits
	heavyLists   spare[*listing] // memory for the lists of heavy attempts, listresources.go
	heavyIDs     spare[[]string] // the IDs of these lists
	counts       *fair.Gate
	watched      atomic.Int64 // estimated bytes in memory for watches of decisions

	tenants  sync.Map // string -> *tenant
	resident residency
	mapped   residency
	stats    stats

	background context.Context // ends at Close
	stop       context.CancelFunc
	loads      sync.WaitGroup
	saves      sync.WaitGroup
}

// New starts an engine. Close ends it.
func New(c Config) (*Engine, error) {
	if c.Store == nil {
		return nil, errors.New("engine: Config.Store is required")
	}
	if c.ResidentBytes == 0 {
		c.ResidentBytes = 4 << 30
	}
	if c.SaveEvery == 0 {
		c.SaveEvery = 10 * time.Minute
	}
	if c.LeastSaved == 0 {
		c.LeastSaved = 1 << 20
	}
	if c.IdleAfter == 0 {
		c.IdleAfter = 15 * time.Minute
	}
	if c.MaxVisits == 0 {
		c.MaxVisits = 2_000_000
	}
	if c.MaxStaleness == 0 {
		c.MaxStaleness = 5 * time.Second
	}
	if c.TailTimeout == 0 {
		c.TailTimeout = 10 * time.Second
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Lease == nil {
		c.Lease = func(string) Lease { return noLease{} }
	}
	if c.MaxVisits < 0 || c.MaxStaleness < 0 || c.TailTimeout < 0 || c.IdleAfter < 0 || c.SaveEvery < 0 {
		return nil, errors.New("engine: MaxVisits, MaxStaleness, TailTimeout, IdleAfter and SaveEvery must not be negative")
	}
	e := &Engine{
		store: c.Store, budget: c.ResidentBytes - max(0, c.ResidentBytes)/partsShare,
		saveEvery: c.SaveEvery, leastSaved: c.LeastSaved, idleAfter: c.IdleAfter, maxVisits: c.MaxVisits, meter: c.Meter,
		maxStaleness: c.MaxStaleness, tailTimeout: c.TailTimeout, lease: c.Lease, clock: c.Clock, logger: c.Logger,
		heavy: newHeavyGate(), heavyLists: make(chan *listing, fair.HeavyPlaces()), heavyIDs: make(chan []string, fair.HeavyPlaces()), counts: newCountGate(),
	}
	if c.ResidentBytes >= 0 {
		e.parts = nodecache.New(c.ResidentBytes)
		e.resident.changed = func(graphs int64) { e.parts.Resize(max(c.ResidentBytes-graphs, c.ResidentBytes/partsShare)) }
	}
	if c.GraphFolder != "" {
		e.mappedBudget = max(0, c.MappedBytes)
		if c.MappedBytes == 0 {
			e.mappedBudget = 8 << 30
		}
		var err error
		if e.files, err = graphfile.Open(c.GraphFolder); err != nil {
			return nil, fmt.Errorf("engine: %w", err)
		}
		if _, err := e.files.Arena(e.mappedBudget); err != nil {
			e.mappedBudget = 0
			if !errors.Is(err, errors.ErrUnsupported) {
				e.logger.Warn("tenants that do not fit into memory are evaluated cold", "error", err)
			}
		}
	}
	e.background, e.stop = context.WithCancel(context.Background())
	e.heavyThreads = fair.NewHeavyThreads(fair.HeavyPlaces(), e.background.Done())
	e.loads.Go(e.dropIdle)
	if e.files != nil {
		e.saves.Go(e.saveGraphs)
	}
	return e, nil
}

// Close stops background work and waits for it, and for graphs to be saved, at most 10 seconds. It
// does not close the store, which has to be open.
func (e *Engine) Close() {
	e.stop()
	e.loads.Wait()
	e.saves.Wait()
}

func (e *Engine) tenant(id string) *tenant {
	if t, ok := e.tenants.Load(id); ok {
		return t.(*tenant)
	}
	t, _ := e.tenants.LoadOrStore(id, newTenant(e, id))
	return t.(*tenant)
}

type stats struct {
	checks, coldReads, tailReads atomic.Int64
	loads, loadsRestored         atomic.Int64
	loadsTooLarge, loadsFailed   atomic.Int64
}

// Stats counts the work of an engine since its start.
type Stats struct {
	Checks        int64 // questions answered
	ColdReads     int64 // snapshot reads for questions on tenants that are not resident
	TailReads     int64 // reads of the head or the changelog that made answers current
	Loads         int64 // graphs loaded from the store
	LoadsRestored int64 // graphs read from files
	LoadsTooLarge int64 // loads given up because the graph does not fit
	LoadsFailed   int64 // loads that failed
	ResidentBytes int64 // estimated memory of the resident graphs
	MappedBytes   int64 // of the files of mapped graphs

	// The parts of tenants that are not resident: lookups that found one that holds, and others;
	// parts that gave place to others; and the estimated memory.
	PartHits, PartMisses, PartEvictions, PartBytes int64
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	var parts nodecache.Stats
	if e.parts != nil {
		parts = e.parts.Stats()
	}
	return Stats{
		PartHits: parts.Hits, PartMisses: parts.Misses, PartEvictions: parts.Evictions, PartBytes: parts.Bytes,
		Checks: e.stats.checks.Load(), ColdReads: e.stats.coldReads.Load(),
		TailReads: e.stats.tailReads.Load(), Loads: e.stats.loads.Load(),
		LoadsRestored: e.stats.loadsRestored.Load(), LoadsTooLarge: e.stats.loadsTooLarge.Load(), LoadsFailed: e.stats.loadsFailed.Load(),
		ResidentBytes: e.resident.bytes.Load(), MappedBytes: e.mapped.bytes.Load(),
	}
}
