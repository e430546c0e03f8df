package graph

import (
	"iter"

	"stonetown/engine/internal/arena"
)

// nodeTable maps nodes to values: a hash table with linear probing, in pages, so that a change of
// a pinned graph copies a page of it.
type nodeTable[V any] struct {
	slots pages[nodeSlot[V]] // a power of two
	used  int
}

// nodeSlot is free if it is zero.
type nodeSlot[V any] struct {
	next     ObjectID // the node's object plus one
	relation RelationID
	value    V
}

const smallestNodeTable = 8 // slots

func newNodeTable[V any](w writing) *nodeTable[V] {
	t := arena.Alloc[nodeTable[V]](w.memory)
	t.slots = newPages[nodeSlot[V]](smallestNodeTable, w)
	return t
}

func (s *nodeSlot[V]) node() Node { return Node{s.next - 1, s.relation} }

// home is the first slot in which a node is looked up.
func (t *nodeTable[V]) home(n Node) int {
	key := uint64(n.Object)<<32 | uint64(n.Relation)
	return int((key*0x9e3779b97f4a7c15)>>32) & (t.slots.len() - 1)
}

// slot is the slot that has the node, or the free one where it would be added.
func (t *nodeTable[V]) slot(n Node) (i int, found bool) {
	for i = t.home(n); ; i = (i + 1) & (t.slots.len() - 1) {
		switch s := t.slots.at(i); {
		case s.next == 0:
			return i, false
		case s.node() == n:
			return i, true
		}
	}
}

// find returns the value of a node. A nil table has none.
func (t *nodeTable[V]) find(n Node) (value V, found bool) {
	if t == nil {
		return value, false
	}
	i, found := t.slot(n)
	return t.slots.at(i).value, found
}

func (t *nodeTable[V]) len() int {
	if t == nil {
		return 0
	}
	return t.used
}

// put sets the value of a node.
func (t *nodeTable[V]) put(n Node, value V, w writing) {
	i, found := t.slot(n)
	if !found {
		t.used++
		if 4*t.used > 3*t.slots.len() {
			t.resize(2*t.slots.len(), w)
			i, _ = t.slot(n)
		}
	}
	*t.slots.change(i, w) = nodeSlot[V]{n.Object + 1, n.Relation, value}
}

func (t *nodeTable[V]) resize(size int, w writing) {
	old := t.slots
	t.slots = newPages[nodeSlot[V]](size, w)
	for i := range old.len() {
		if s := old.at(i); s.next != 0 {
			to, _ := t.slot(s.node())
			*t.slots.change(to, w) = *s
		}
	}
	old.free(w)
}

// remove removes a node that the table has. Nodes in later slots that would no longer be found move
// up.
func (t *nodeTable[V]) remove(n Node, w writing) {
	i, _ := t.slot(n)
	mask := t.slots.len() - 1
	for j := (i + 1) & mask; t.slots.at(j).next != 0; j = (j + 1) & mask {
		if have := t.slots.at(j); (j-t.home(have.node()))&mask >= (j-i)&mask { // its home is not after i
			*t.slots.change(i, w) = *have
			i = j
		}
	}
	*t.slots.change(i, w) = nodeSlot[V]{}
	t.used--
	if 8*t.used < t.slots.len() && t.slots.len() > smallestNodeTable {
		t.resize(t.slots.len()/2, w)
	}
}

// all yields the nodes with their values.
func (t *nodeTable[V]) all() iter.Seq2[Node, V] {
	return func(yield func(Node, V) bool) {
		if t == nil {
			return
		}
		for i := range t.slots.len() {
			if s := t.slots.at(i); s.next != 0 && !yield(s.node(), s.value) {
				return
			}
		}
	}
}

// unpinned returns a copy of the table, which shares its pages, and returns the table.
func (t *nodeTable[V]) unpinned(w writing) *nodeTable[V] {
	if t == nil {
		return nil
	}
	c := arena.Alloc[nodeTable[V]](w.memory)
	*c = *t
	arena.Free(w.memory, t)
	return c
}

// free returns the memory of the table.
func (t *nodeTable[V]) free(w writing) {
	if t != nil {
		t.slots.free(w)
		arena.Free(w.memory, t)
	}
}
