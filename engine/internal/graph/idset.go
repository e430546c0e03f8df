package graph

import (
	"slices"

	"stonetown/engine/internal/arena"
)

// idSet is a set of objects: a sorted slice while it is small, then a table. Most sets have
// a few members, for which the slice is smaller and faster.
type idSet struct {
	sorted []ObjectID
	large  *idTable
}

// maxSorted is the size from which an insertion into the slice costs more than hashing.
const maxSorted = 128

// smallestTable is the number of slots of the smallest table.
const smallestTable = 4 * maxSorted

func (s *idSet) has(id ObjectID) bool {
	if s.large != nil {
		return s.large.has(id)
	}
	if len(s.sorted) <= 8 {
		for _, have := range s.sorted {
			if have == id {
				return true
			}
		}
		return false
	}
	_, ok := slices.BinarySearch(s.sorted, id)
	return ok
}

// add adds an object and reports whether it is new.
func (s *idSet) add(id ObjectID, w writing) bool {
	if s.large != nil {
		return s.large.add(id, w)
	}
	i, ok := slices.BinarySearch(s.sorted, id)
	if ok {
		return false
	}
	if len(s.sorted) == maxSorted {
		s.large = newIDTable(smallestTable, w)
		for _, have := range s.sorted {
			s.large.add(have, w)
		}
		arena.FreeSlice(w.memory, s.sorted)
		s.sorted = nil
		return s.large.add(id, w)
	}
	s.sorted = arena.Append(w.memory, s.sorted, id)
	copy(s.sorted[i+1:], s.sorted[i:])
	s.sorted[i] = id
	return true
}

// remove removes an object and reports whether the set had it.
func (s *idSet) remove(id ObjectID, w writing) bool {
	if s.large != nil {
		return s.large.remove(id, w)
	}
	i, ok := slices.BinarySearch(s.sorted, id)
	if ok {
		s.sorted = slices.Delete(s.sorted, i, i+1)
	}
	return ok
}

func (s *idSet) len() int {
	if s.large != nil {
		return s.large.len
	}
	return len(s.sorted)
}

// lists yields the objects, many at once. Some items may be NoObject.
func (s *idSet) lists(yield func([]ObjectID) bool) {
	if s.large == nil {
		yield(s.sorted)
		return
	}
	for i := range s.large.lines.len() {
		if !yield(s.large.lines.at(i)[:]) {
			return
		}
	}
}

// unpin replaces what may be pinned by a copy, which shares the pages of a large set.
func (s *idSet) unpin(w writing) {
	s.sorted = replaced(s.sorted, w)
	if old := s.large; old != nil {
		s.large = arena.Alloc[idTable](w.memory)
		*s.large = *old
		arena.Free(w.memory, old)
	}
}

// free returns the memory of the set.
func (s *idSet) free(w writing) {
	arena.FreeSlice(w.memory, s.sorted)
	if s.large != nil {
		s.large.lines.free(w)
		arena.Free(w.memory, s.large)
	}
}
