package graph

import (
	"hash/maphash"
	"sync/atomic"

	"stonetown/engine/internal/arena"
)

// objectIndex finds objects by type and ID. It stores numbers and a part of each hash. The
// IDs are only stored in the objects; a map would store them twice. Collisions go to the
// next slot (linear probing).
//
// A small index is one table. A larger one has pages, each for the hashes with the same first
// bits. A full page is split in two by the next bit (extendible hashing), so that no change has
// to move all objects.
//
// A pinned graph shares the index, which has objects that were added after the pin, too. Their
// numbers are beyond those of the pinned graph, or it has no object or another one under them. An
// object is therefore added in place, by an atomic store to a free slot. A removal moves slots, and
// copies the page.
type objectIndex struct {
	seed    maphash.Seed
	small   []indexSlot // nil if there are pages
	used    int         // slots of small
	made    uint64      // the generation in which small, or the list of pages, was made or copied
	pages   []*indexPage
	shift   uint // the first bits of a hash, down to this one, are the place of its page
	objects int
}

// indexSlot is the last half of a hash, and the object's number plus one. A free slot is 0.
type indexSlot uint64

func newIndexSlot(hash uint64, number ObjectID) indexSlot {
	return indexSlot(hash<<32 | uint64(number+1))
}

func (s indexSlot) hash() uint32     { return uint32(s >> 32) }
func (s indexSlot) number() ObjectID { return ObjectID(s) - 1 } // NoObject for a free slot

func (s *indexSlot) load() indexSlot   { return indexSlot(atomic.LoadUint64((*uint64)(s))) }
func (s *indexSlot) store(t indexSlot) { atomic.StoreUint64((*uint64)(s), uint64(t)) }

// indexPage fills 8 KiB.
type indexPage struct {
	slots [pageSlots]indexSlot
	used  int
	made  uint64
	depth uint // of its hashes, so many first bits are equal
}

const (
	pageSlots    = 1021
	minIndex     = 16   // slots
	maxIndex     = 1024 // slots of a small index
	hashBits     = 64
	depthOfSmall = 2 // of the pages that a small index is divided into
)

func newObjectIndex(w writing) objectIndex {
	return objectIndex{seed: maphash.MakeSeed(), small: arena.Make[indexSlot](w.memory, minIndex, minIndex)}
}

// newObjectIndexFor returns an index with room for a number of objects, so that few of its pages
// have to be split while they are added.
func newObjectIndexFor(objects int, w writing) objectIndex {
	x := newObjectIndex(w)
	if objects <= maxIndex/2 {
		return x
	}
	depth := uint(1)
	for 3*objects > 2*pageSlots<<depth {
		depth++
	}
	arena.FreeSlice(w.memory, x.small)
	x.makePages(depth, w)
	return x
}

// makePages replaces the table of a small index by empty pages, one for each value of the first
// bits of a hash.
func (x *objectIndex) makePages(depth uint, w writing) {
	x.small, x.used, x.made, x.shift = nil, 0, w.generation, hashBits-depth
	x.pages = arena.Make[*indexPage](w.memory, 1<<depth, 1<<depth)
	for i := range x.pages {
		x.pages[i] = newIndexPage(depth, w)
	}
}

func newIndexPage(depth uint, w writing) *indexPage {
	p := arena.Alloc[indexPage](w.memory)
	p.made, p.depth = w.generation, depth
	return p
}

func (x *objectIndex) hash(typ TypeID, id string) uint64 {
	return maphash.String(x.seed, id) ^ uint64(typ)*0x9e3779b97f4a7c15
}

// table returns the slots that can have a hash.
func (x *objectIndex) table(h uint64) []indexSlot {
	if x.small != nil {
		return x.small
	}
	return x.pages[h>>x.shift].slots[:]
}

// home returns the first slot of a table in which a hash is looked up, by its last 32 bits.
func home(h uint32, slots []indexSlot) int { return int(uint64(h) * uint64(len(slots)) >> 32) }

// find returns the number of an object, or NoObject.
func (x *objectIndex) find(objects *pages[Object], typ TypeID, id string) ObjectID {
	h := x.hash(typ, id)
	slots := x.table(h)
	for i := home(uint32(h), slots); ; i++ {
		if i == len(slots) {
			i = 0
		}
		s := slots[i].load()
		if s == 0 {
			return NoObject
		}
		if number := s.number(); s.hash() == uint32(h) && int(number) < objects.len() {
			if o := objects.at(int(number)); o.typ == typ && o.id == id {
				return number
			}
		}
	}
}

// Lookup is an object that [Graph.FindAll] finds together with others.
type Lookup struct {
	Type  TypeID
	ID    string
	Found ObjectID // the result; NoObject if the graph does not have the object

	hash uint64
}

// findAll finds many objects at once. To find one takes three dependent reads of memory:
// its slot, the object and its ID. The loops make each of these reads for all objects
// before the next, so that the processor overlaps them.
func (x *objectIndex) findAll(objects *pages[Object], all []Lookup) {
	for i := range all {
		all[i].hash = x.hash(all[i].Type, all[i].ID)
	}
	for i := range all {
		h := all[i].hash
		slots := x.table(h)
		s := slots[home(uint32(h), slots)].load()
		all[i].Found = NoObject
		if s.hash() == uint32(h) && int(s.number()) < objects.len() {
			all[i].Found = s.number()
		}
	}
	for i := range all {
		a := &all[i]
		if a.Found == NoObject {
			continue
		}
		if o := objects.at(int(a.Found)); o.typ != a.Type || len(o.id) != len(a.ID) {
			a.Found = NoObject
		}
	}
	for i := range all {
		a := &all[i]
		if a.Found == NoObject || objects.at(int(a.Found)).id != a.ID {
			a.Found = x.find(objects, a.Type, a.ID) // not in the first slot, or not at all
		}
	}
}

// add adds an object that the index does not have.
func (x *objectIndex) add(objects *pages[Object], number ObjectID, w writing) {
	o := objects.at(int(number))
	h := x.hash(o.typ, o.id)
	for !x.hasRoom(h) {
		x.grow(objects, h, w)
	}
	x.objects++
	s := newIndexSlot(h, number)
	if x.small != nil {
		x.used++
		put(x.small, s)
		return
	}
	p := x.pages[h>>x.shift]
	p.used++
	put(p.slots[:], s)
}

// hasRoom reports whether the table for a hash has room for one more.
func (x *objectIndex) hasRoom(h uint64) bool {
	used := x.used
	if x.small == nil {
		used = x.pages[h>>x.shift].used
	}
	return 4*(used+1) <= 3*len(x.table(h))
}

// own copies small, or the list of pages, if it may be pinned.
func (x *objectIndex) own(w writing) {
	if w.pinned && x.made != w.generation {
		x.small, x.pages, x.made = replaced(x.small, w), replaced(x.pages, w), w.generation
	}
}

// change returns the page for a hash, to be changed.
func (x *objectIndex) change(h uint64, w writing) *indexPage {
	p := x.pages[h>>x.shift]
	if !w.pinned || p.made == w.generation {
		return p
	}
	x.own(w)
	c := arena.Alloc[indexPage](w.memory)
	*c = *p
	c.made = w.generation
	x.place(h, c)
	arena.Free(w.memory, p)
	return c
}

// place makes a page the one for all hashes that have the same first bits as h.
func (x *objectIndex) place(h uint64, p *indexPage) {
	many := uint64(1) << (hashBits - x.shift - p.depth)
	first := h >> x.shift &^ (many - 1)
	for i := first; i < first+many; i++ {
		x.pages[i] = p
	}
}

// put puts an object into the first free slot from its home on.
func put(slots []indexSlot, s indexSlot) {
	i := home(s.hash(), slots)
	for slots[i] != 0 {
		if i++; i == len(slots) {
			i = 0
		}
	}
	slots[i].store(s)
}

// grow doubles a small index, or the page for a hash.
func (x *objectIndex) grow(objects *pages[Object], h uint64, w writing) {
	switch {
	case x.small == nil:
		x.split(objects, h, w)
	case len(x.small) < maxIndex:
		old := x.small
		x.small, x.made = arena.Make[indexSlot](w.memory, 2*len(old), 2*len(old)), w.generation
		for _, s := range old {
			if s != 0 {
				put(x.small, s)
			}
		}
		arena.FreeSlice(w.memory, old)
	default:
		old := x.small
		x.makePages(depthOfSmall, w)
		x.distribute(objects, old)
		arena.FreeSlice(w.memory, old)
	}
}

// split divides the page for a hash in two.
func (x *objectIndex) split(objects *pages[Object], h uint64, w writing) {
	old := x.pages[h>>x.shift]
	x.own(w)
	if x.shift+old.depth == hashBits { // one place in the list is all that the page has
		doubled := arena.Make[*indexPage](w.memory, 2*len(x.pages), 2*len(x.pages))
		for i := range doubled {
			doubled[i] = x.pages[i/2]
		}
		arena.FreeSlice(w.memory, x.pages)
		x.pages, x.made = doubled, w.generation
		x.shift--
	}
	bit := uint64(1) << (hashBits - 1 - old.depth)
	for _, side := range [2]uint64{h &^ bit, h | bit} {
		x.place(side, newIndexPage(old.depth+1, w))
	}
	x.distribute(objects, old.slots[:])
	arena.Free(w.memory, old)
}

// distribute puts objects into pages that are new.
func (x *objectIndex) distribute(objects *pages[Object], slots []indexSlot) {
	for _, s := range slots {
		if s != 0 {
			o := objects.at(int(s.number()))
			p := x.pages[x.hash(o.typ, o.id)>>x.shift]
			p.used++
			put(p.slots[:], s)
		}
	}
}

// remove removes an object that the index has. Objects in later slots that would no
// longer be found move up.
func (x *objectIndex) remove(objects *pages[Object], number ObjectID, w writing) {
	o := objects.at(int(number))
	h := x.hash(o.typ, o.id)
	x.objects--
	var slots []indexSlot
	if x.small != nil {
		x.own(w)
		x.used--
		slots = x.small
	} else {
		p := x.change(h, w)
		p.used--
		slots = p.slots[:]
	}
	next := func(i int) int {
		if i++; i == len(slots) {
			i = 0
		}
		return i
	}
	distance := func(from, to int) int { return (to - from + len(slots)) % len(slots) }
	i := home(uint32(h), slots)
	for slots[i].number() != number {
		i = next(i)
	}
	for j := next(i); slots[j] != 0; j = next(j) {
		if distance(home(slots[j].hash(), slots), j) >= distance(i, j) { // its home is not after i
			slots[i] = slots[j]
			i = j
		}
	}
	slots[i] = 0
}
