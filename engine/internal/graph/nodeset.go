package graph

import (
	"maps"
	"slices"
)

// nodeSet is a set of nodes that is iterated far more often than changed: a list, with an
// index of the positions once a linear search would cost too much.
type nodeSet struct {
	list  []Node
	index map[Node]int
}

// maxScanned is the length of the longest list without an index.
const maxScanned = 64

func (l *nodeSet) position(n Node) int {
	if l.index == nil {
		return slices.Index(l.list, n)
	}
	if i, ok := l.index[n]; ok {
		return i
	}
	return -1
}

func (l *nodeSet) has(n Node) bool { return l.position(n) >= 0 }

// add adds a node and reports whether it is new.
func (l *nodeSet) add(n Node) bool {
	if l.has(n) {
		return false
	}
	l.list = append(l.list, n)
	switch {
	case l.index != nil:
		l.index[n] = len(l.list) - 1
	case len(l.list) > maxScanned:
		l.index = make(map[Node]int, 2*len(l.list))
		for i, have := range l.list {
			l.index[have] = i
		}
	}
	return true
}

// remove removes a node and reports whether the set had it.
func (l *nodeSet) remove(n Node) bool {
	i := l.position(n)
	if i < 0 {
		return false
	}
	last := len(l.list) - 1
	l.list[i] = l.list[last]
	l.list = l.list[:last]
	if l.index != nil {
		delete(l.index, n)
		if i != last {
			l.index[l.list[i]] = i
		}
	}
	return true
}

func (l *nodeSet) copy() nodeSet { return nodeSet{slices.Clone(l.list), maps.Clone(l.index)} }
