package graph

import "stonetown/engine/internal/arena"

// idTable is a large set of objects: a hash table of their numbers with linear probing. A
// lookup mostly reads one cache line, and an iteration reads memory in order.
type idTable struct {
	lines pages[idLine] // a power of two of slots; NoObject is a free one
	len   int
}

// idLine is slots that fill one cache line.
type idLine [idLineSlots]ObjectID

const idLineSlots = 16

func newIDTable(size int, w writing) *idTable {
	t := arena.Alloc[idTable](w.memory)
	t.lines = newPages[idLine](size/idLineSlots, w)
	for i := range t.size() {
		t.set(i, NoObject, w)
	}
	return t
}

// size returns the number of slots.
func (t *idTable) size() int { return t.lines.len() * idLineSlots }

// at returns what a slot has.
func (t *idTable) at(i int) ObjectID { return t.lines.at(i / idLineSlots)[i%idLineSlots] }

func (t *idTable) set(i int, id ObjectID, w writing) {
	t.lines.change(i/idLineSlots, w)[i%idLineSlots] = id
}

// home is the first slot in which an object is looked up.
func (t *idTable) home(id ObjectID) int {
	return int(uint64(id)*0x9e3779b97f4a7c15>>32) & (t.size() - 1)
}

// slot is the slot that has the object, or the free one where it would be added.
func (t *idTable) slot(id ObjectID) int {
	i := t.home(id)
	for {
		if s := t.at(i); s == id || s == NoObject {
			return i
		}
		i = (i + 1) & (t.size() - 1)
	}
}

func (t *idTable) has(id ObjectID) bool { return id != NoObject && t.at(t.slot(id)) == id }

// add adds an object and reports whether it is new.
func (t *idTable) add(id ObjectID, w writing) bool {
	i := t.slot(id)
	if t.at(i) == id {
		return false
	}
	t.set(i, id, w)
	t.len++
	if 4*t.len > 3*t.size() {
		t.resize(2*t.size(), w)
	}
	return true
}

func (t *idTable) resize(size int, w writing) {
	other := newIDTable(size, w)
	for i := range t.size() {
		if id := t.at(i); id != NoObject {
			other.set(other.slot(id), id, w)
		}
	}
	t.lines.free(w)
	t.lines = other.lines
	arena.Free(w.memory, other)
}

// remove removes an object and reports whether the set had it. Objects in later slots that
// would no longer be found move up.
func (t *idTable) remove(id ObjectID, w writing) bool {
	i, mask := t.slot(id), t.size()-1
	if t.at(i) != id {
		return false
	}
	for j := (i + 1) & mask; t.at(j) != NoObject; j = (j + 1) & mask {
		if have := t.at(j); (j-t.home(have))&mask >= (j-i)&mask { // its home is not after i
			t.set(i, have, w)
			i = j
		}
	}
	t.set(i, NoObject, w)
	t.len--
	if 8*t.len < t.size() && t.size() > smallestTable {
		t.resize(t.size()/2, w)
	}
	return true
}
