package engine

import "slices"

// idSet is a set of objects: a sorted slice while small, a map beyond. Most
// sets hold a handful of ids, where the slice is both smaller and faster.
type idSet struct {
	sorted []objectID
	large  map[objectID]struct{}
}

// maxSorted is where inserting into the slice begins to cost more than hashing.
const maxSorted = 128

func (s *idSet) has(id objectID) bool {
	if s.large != nil {
		_, ok := s.large[id]
		return ok
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
		if _, ok := s.large[id]; ok {
			return false
		}
		s.large[id] = struct{}{}
		return true
	}
	i, ok := slices.BinarySearch(s.sorted, id)
	if ok {
		return false
	}
	if len(s.sorted) == maxSorted {
		s.large = make(map[objectID]struct{}, 2*maxSorted)
		for _, have := range s.sorted {
			s.large[have] = struct{}{}
		}
		s.large[id] = struct{}{}
		s.sorted = nil
		return true
	}
	s.sorted = slices.Insert(s.sorted, i, id)
	return true
}

// remove reports whether the id was there.
func (s *idSet) remove(id objectID) bool {
	if s.large != nil {
		if _, ok := s.large[id]; !ok {
			return false
		}
		delete(s.large, id)
		return true
	}
	i, ok := slices.BinarySearch(s.sorted, id)
	if ok {
		s.sorted = slices.Delete(s.sorted, i, i+1)
	}
	return ok
}

func (s *idSet) len() int { return len(s.sorted) + len(s.large) }

// each calls visit for every id until it returns false.
func (s *idSet) each(visit func(objectID) bool) {
	for _, id := range s.sorted {
		if !visit(id) {
			return
		}
	}
	for id := range s.large {
		if !visit(id) {
			return
		}
	}
}
