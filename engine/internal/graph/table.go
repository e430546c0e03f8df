package graph

import "math/bits"

// Table maps keys to numbers. Clear takes constant time: an entry is valid only if it has
// the table's current generation.
type Table struct {
	slots      []tableSlot
	used       int
	generation uint32
}

type tableSlot struct {
	key        uint64
	number     int32
	generation uint32
}

// TableKey is the key of an object and a number.
func TableKey(id ObjectID, n uint32) uint64 { return uint64(id)<<32 | uint64(n) }

// Clear removes all entries. A new table has to be cleared before its first use.
func (t *Table) Clear() {
	t.used = 0
	t.generation++
	if t.slots == nil || t.generation == 0 {
		t.slots = make([]tableSlot, max(64, len(t.slots)))
		t.generation = 1
	}
}

// Insert adds a key with a number, if the table does not have the key. It returns the
// number that the key has, and whether the key was there before.
func (t *Table) Insert(key uint64, number int32) (have int32, found bool) {
	s, found := t.slot(key)
	if found {
		return s.number, true
	}
	*s = tableSlot{key, number, t.generation}
	t.used++
	return number, false
}

// Find returns the number of a key.
func (t *Table) Find(key uint64) (number int32, found bool) {
	s, found := t.slot(key)
	return s.number, found
}

// slot returns the slot that has the key, or the free one where it would be added.
func (t *Table) slot(key uint64) (s *tableSlot, found bool) {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	high, low := bits.Mul64(key, 0x9e3779b97f4a7c15) // so that every bit of the key counts
	for i := (high ^ low) & mask; ; i = (i + 1) & mask {
		s = &t.slots[i]
		if s.generation != t.generation {
			return s, false
		}
		if s.key == key {
			return s, true
		}
	}
}

func (t *Table) grow() {
	old := t.slots
	t.slots = make([]tableSlot, 2*len(old))
	t.used = 0
	for _, s := range old {
		if s.generation == t.generation {
			t.Insert(s.key, s.number)
		}
	}
}
