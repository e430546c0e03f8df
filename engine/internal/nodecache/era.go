package nodecache

import (
	"hash/maphash"
	"sync/atomic"

	"stonetown/tuplestore"
)

// Era is a time in which the changes of a tenant are known without a gap, under one schema. The
// entries of an era are of no use in another one.
//
// It has a table of the revisions at which parts were last changed, by a hash of the part. Parts
// that share a place have the newest revision of any of them, so an entry may be ignored although
// it holds, and never the other way round.
type Era struct {
	cache  *Cache
	number uint64
	table  atomic.Pointer[[]atomic.Int64]

	touched int // places written since the table has its size
}

const (
	// leastPlaces and mostPlaces bound the table of an era.
	leastPlaces = 1 << 6
	mostPlaces  = 1 << 16
	placeBytes  = 8
	// tablesShare is the part of the cache's memory for tables, beyond which they do not grow: one
	// part in tablesShare.
	tablesShare = 8
)

// NewEra returns an era that begins at the present revision of a tenant.
func (c *Cache) NewEra() *Era {
	e := &Era{cache: c, number: c.eras.Add(1)}
	e.setTable(make([]atomic.Int64, leastPlaces))
	return e
}

// End ends the use of the era, except by requests that have begun.
func (e *Era) End() {
	if e != nil {
		e.cache.tables.Add(-placeBytes * int64(len(*e.table.Load())))
	}
}

func (e *Era) setTable(places []atomic.Int64) {
	if old := e.table.Load(); old != nil {
		e.cache.tables.Add(-placeBytes * int64(len(*old)))
	}
	e.cache.tables.Add(placeBytes * int64(len(places)))
	e.table.Store(&places)
}

// Touch records that commits up to a revision have changed tuples. It is called for all changes,
// in the order of revisions, before a view of the revision is made, and by one caller at a time.
func (e *Era) Touch(changed []tuplestore.Tuple, revision tuplestore.Revision) {
	var buffer [256]byte
	b := buffer[:0]
	for _, t := range changed {
		b = e.touch(e.object(b, t.Object), revision)
		b = e.touch(e.tuple(b, t), revision)
		b = e.touch(e.node(b, ofAll, t.Node()), revision)
		if t.Subject.IsUserset() {
			b = e.touch(e.node(b, ofUsersets, t.Node()), revision)
		}
	}
}

// touch records that a part has changed. It returns the memory of its name.
func (e *Era) touch(part []byte, revision tuplestore.Revision) []byte {
	table := *e.table.Load()
	if e.touched++; e.touched > len(table)/4 && e.mayGrow(len(table)) {
		// Each place becomes two, which both have its revision.
		larger := make([]atomic.Int64, 2*len(table))
		for i := range larger {
			larger[i].Store(table[i%len(table)].Load())
		}
		e.setTable(larger)
		e.touched, table = 0, larger
	}
	table[place(maphash.Bytes(e.cache.seeds[0], part), len(table))].Store(int64(revision))
	return part
}

// place returns the place of a part, by its first hash, in a table whose size is a power of two.
func place(hash uint64, places int) uint64 { return hash & uint64(places-1) }

func (e *Era) mayGrow(places int) bool {
	return places < mostPlaces && e.cache.tables.Load()+placeBytes*int64(places) <= e.cache.max.Load()/tablesShare
}

// lastTouched returns a revision after which the part with a key has not changed, up to any
// revision that was recorded before the call. The table is read after the entry: a request at a
// newer revision may have put the entry, after the table has grown.
func (e *Era) lastTouched(k key) int64 {
	table := *e.table.Load()
	return table[place(k[0], len(table))].Load()
}
