package engine

import "slices"

// idSet is a set of objects: a sorted slice while small, a table beyond. Most sets
// hold a handful of ids, where the slice is both smaller and faster.
type idSet struct {
	sorted []objectID
	large  *idTable
}

// maxSorted is where inserting into the slice begins to cost more than hashing.
const maxSorted = 128

func (s *idSet) has(id objectID) bool {
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

// add reports whether the id was not there.
func (s *idSet) add(id objectID) bool {
	if s.large != nil {
		return s.large.add(id)
	}
	i, ok := slices.BinarySearch(s.sorted, id)
	if ok {
		return false
	}
	if len(s.sorted) == maxSorted {
		s.large = newIDTable(4 * maxSorted)
		for _, have := range s.sorted {
			s.large.add(have)
		}
		s.sorted = nil
		return s.large.add(id)
	}
	s.sorted = slices.Insert(s.sorted, i, id)
	return true
}

// remove reports whether the id was there.
func (s *idSet) remove(id objectID) bool {
	if s.large != nil {
		return s.large.remove(id)
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

// all returns the ids, and among them noObject for none.
func (s *idSet) all() []objectID {
	if s.large != nil {
		return s.large.slots
	}
	return s.sorted
}
