package graph

import (
	"slices"

	"stonetown/engine/internal/arena"
)

// nodeSet is a set of nodes that is iterated far more often than changed: a list, with an
// index of the positions once a linear search would cost too much.
type nodeSet struct {
	list  []Node
	index *nodeTable[int]
}

// maxScanned is the length of the longest list without an index.
const maxScanned = 64

func (l *nodeSet) position(n Node) int {
	if l.index == nil {
		return slices.Index(l.list, n)
	}
	if i, ok := l.index.find(n); ok {
		return i
	}
	return -1
}

func (l *nodeSet) has(n Node) bool { return l.position(n) >= 0 }

// add adds a node and reports whether it is new.
func (l *nodeSet) add(n Node, w writing) bool {
	if l.has(n) {
		return false
	}
	l.list = arena.Append(w.memory, l.list, n)
	switch {
	case l.index != nil:
		l.index.put(n, len(l.list)-1, w)
	case len(l.list) > maxScanned:
		l.index = newNodeTable[int](w)
		for i, have := range l.list {
			l.index.put(have, i, w)
		}
	}
	return true
}

// remove removes a node and reports whether the set had it.
func (l *nodeSet) remove(n Node, w writing) bool {
	i := l.position(n)
	if i < 0 {
		return false
	}
	last := len(l.list) - 1
	l.list[i] = l.list[last]
	l.list = l.list[:last]
	if l.index != nil {
		l.index.remove(n, w)
		if i != last {
			l.index.put(l.list[i], i, w)
		}
	}
	return true
}

// unpin replaces what may be pinned by a copy.
func (l *nodeSet) unpin(w writing) {
	l.list, l.index = replaced(l.list, w), l.index.unpinned(w)
}

// free returns the memory of the set.
func (l *nodeSet) free(w writing) {
	arena.FreeSlice(w.memory, l.list)
	l.index.free(w)
}
