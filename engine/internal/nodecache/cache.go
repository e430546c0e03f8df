// Package nodecache keeps parts of tenants that are not resident: tuples that requests have read
// from the store, and that there are none.
//
// The parts of most objects are one entry, with all tuples of the object. Of an object with more
// than [tuplestore.MaxWhole] tuples, such as a group with a million members, only parts that were
// asked for are kept: whether a tuple exists, the usersets of a node, or all tuples of a node.
//
// An entry has the revision at which it was read. It holds at a later revision if none of its
// tuples has changed in between, which an [Era] knows from the changelog. Entries are never
// removed because of a change. A lookup ignores an entry that does not hold, and the request puts
// what it reads instead.
//
// The size of all entries is bounded. Entries enter a small queue, and those that are used again
// before they leave it move to the main queue, as in S3-FIFO (Yang et al., SOSP 2023): a scan of
// many parts that are used once displaces nothing that is used often.
package nodecache

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// Cache has the entries of all tenants. It is safe for concurrent use.
type Cache struct {
	seeds  [2]maphash.Seed
	shards []shard
	eras   atomic.Uint64 // the number of the newest
	max    atomic.Int64
	tables atomic.Int64 // bytes of the tables of all eras
	stale  atomic.Int64 // entries that were found and did not hold
}

// key identifies an entry: two hashes with seeds of their own, so that nobody can find names whose
// keys are equal.
type key [2]uint64

const (
	// entryBytes is the estimated memory of an entry besides its value.
	entryBytes = 128
	// shardBytes is the size of the smallest cache with more than one shard, for each shard.
	shardBytes = 1 << 20
	maxShards  = 16
	// smallShare is the part of the memory that new entries have: one part in smallShare.
	smallShare = 10
	// largestShare is the part of a shard that its largest entry may have.
	largestShare = 4
)

// New returns a cache for entries of at most some bytes.
func New(bytes int64) *Cache {
	c := &Cache{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	c.shards = make([]shard, min(max(1, bytes/shardBytes), maxShards))
	for i := range c.shards {
		c.shards[i].entries = map[key]*entry{}
	}
	c.Resize(bytes)
	return c
}

// Resize changes the size of the cache, and removes entries beyond it. A part of it is for the
// tables of eras.
func (c *Cache) Resize(bytes int64) {
	c.max.Store(bytes)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.max = (bytes - bytes/tablesShare) / int64(len(c.shards))
		if s.ghostsBytes() > s.max/smallShare {
			s.ghosts = nil
		}
		s.evict()
		s.mu.Unlock()
	}
}

func (c *Cache) shard(k key) *shard { return &c.shards[k[1]%uint64(len(c.shards))] }

// Stats counts the use of a cache.
type Stats struct {
	Hits, Misses, Evictions int64
	Bytes                   int64 // estimated memory, of the tables of eras too
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	var sum Stats
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		sum.Hits += s.hits
		sum.Misses += s.misses
		sum.Evictions += s.evictions
		sum.Bytes += s.bytes()
		s.mu.Unlock()
	}
	stale := c.stale.Load()
	sum.Hits, sum.Misses, sum.Bytes = sum.Hits-stale, sum.Misses+stale, sum.Bytes+c.tables.Load()
	return sum
}

// shard is a part of the cache with its own lock.
type shard struct {
	mu      sync.Mutex
	entries map[key]*entry
	small   queue
	main    queue
	max     int64
	// ghosts remembers entries that left the small queue, by a part of their key. A newer one
	// takes the place of an older one.
	ghosts []uint32

	hits, misses, evictions int64
}

// entry is a value with the revision at which it was read.
type entry struct {
	key      key
	value    string
	revision int64
	next     *entry // in its queue
	uses     uint8  // since it entered the queue, at most maxUses
	isMain   bool
}

func (s *shard) bytes() int64       { return s.small.bytes + s.main.bytes + s.ghostsBytes() }
func (s *shard) ghostsBytes() int64 { return int64(4 * len(s.ghosts)) }

const maxUses = 3

func (e *entry) bytes() int64 { return entryBytes + int64(len(e.value)) }

// queue is a list of entries, first in first out.
type queue struct {
	first, last *entry
	bytes       int64
}

func (q *queue) push(e *entry) {
	e.next = nil
	if q.last == nil {
		q.first = e
	} else {
		q.last.next = e
	}
	q.last = e
	q.bytes += e.bytes()
}

func (q *queue) pop() *entry {
	e := q.first
	if q.first = e.next; q.first == nil {
		q.last = nil
	}
	q.bytes -= e.bytes()
	return e
}

// get returns a value and the revision at which it was read.
func (s *shard) get(k key) (value string, revision int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[k]
	if e == nil {
		s.misses++
		return "", 0, false
	}
	s.hits++
	e.uses = min(e.uses+1, maxUses)
	return e.value, e.revision, true
}

// put adds or replaces a value, unless a newer one is there or it is too large.
func (s *shard) put(k key, value string, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entryBytes+int64(len(value)) > s.max/largestShare {
		return
	}
	if e := s.entries[k]; e != nil {
		if e.revision > revision {
			return
		}
		q := s.queueOf(e)
		q.bytes -= e.bytes()
		e.value, e.revision = value, revision
		q.bytes += e.bytes()
	} else {
		e := &entry{key: k, value: value, revision: revision, isMain: s.isGhost(k)}
		s.entries[k] = e
		s.queueOf(e).push(e)
	}
	s.evict()
}

func (s *shard) queueOf(e *entry) *queue {
	if e.isMain {
		return &s.main
	}
	return &s.small
}

// evict removes entries beyond the size of the shard.
func (s *shard) evict() {
	for s.bytes() > s.max {
		if s.main.first == nil && s.small.first == nil {
			return
		}
		if s.main.first == nil || s.small.first != nil && s.small.bytes > s.max/smallShare {
			e := s.small.pop()
			if e.uses > 0 {
				e.uses, e.isMain = 0, true
				s.main.push(e)
				continue
			}
			s.remember(e.key)
			s.remove(e)
			continue
		}
		e := s.main.pop()
		if e.uses > 0 {
			e.uses--
			s.main.push(e)
			continue
		}
		s.remove(e)
	}
}

func (s *shard) remove(e *entry) {
	delete(s.entries, e.key)
	s.evictions++
}

// ghostBytes is the memory of a shard for each of its ghosts, about that of an entry.
const ghostBytes = 256

// remember makes a key a ghost.
func (s *shard) remember(k key) {
	if s.ghosts == nil {
		s.ghosts = make([]uint32, s.max/ghostBytes+1)
	}
	s.ghosts[k[0]%uint64(len(s.ghosts))] = uint32(k[1]>>32) | 1
}

// isGhost reports whether a key left the small queue a short time ago. It may be wrong.
func (s *shard) isGhost(k key) bool {
	return s.ghosts != nil && s.ghosts[k[0]%uint64(len(s.ghosts))] == uint32(k[1]>>32)|1
}
