package graph

import "stonetown/engine/internal/arena"

// pages is a list in pages, so that a pinned copy of a graph shares all that have not changed
// since. The list of pages is shared, too, until one of them changes. A list of up to one page is
// a slice, which takes as much memory as it has items.
type pages[T any] struct {
	small []T        // nil if there are more items than a page has
	list  []*page[T] // otherwise
	made  []uint64   // the generation in which a page was made or copied
	own   uint64     // the generation in which small or list was made or copied
	n     int        // the number of items
	// copied, if not nil, completes the copy of items that refer to what they alone have.
	copied func([]T, writing)
}

// pageSize is the number of items of a page: 16 KiB of objects. The pages are few enough that
// the processor keeps the list of them, and small enough to be copied by a write.
const pageSize = 256

type page[T any] [pageSize]T

// writing is what a change of a graph has to know: whether there are pins, the generation that
// began with the last one, and where memory comes from. What was made before may be pinned.
type writing struct {
	pinned     bool
	generation uint64
	memory     *arena.Arena
}

func (p *pages[T]) len() int { return p.n }

// at returns an item, to be read.
func (p *pages[T]) at(i int) *T {
	if p.small != nil {
		return &p.small[i]
	}
	return &p.list[uint(i)/pageSize][uint(i)%pageSize]
}

// change returns an item, to be changed.
func (p *pages[T]) change(i int, w writing) *T {
	if w.pinned {
		p.unpin(i/pageSize, w)
	}
	return p.at(i)
}

// unpin copies a page if it may be pinned.
func (p *pages[T]) unpin(n int, w writing) {
	if p.own != w.generation {
		p.own = w.generation
		p.small, p.list, p.made = replaced(p.small, w), replaced(p.list, w), replaced(p.made, w)
		p.complete(p.small, w)
	}
	if p.small != nil || p.made[n] == w.generation {
		return
	}
	old, c := p.list[n], arena.Alloc[page[T]](w.memory)
	*c = *old
	p.complete(c[:], w)
	p.list[n], p.made[n] = c, w.generation
	arena.Free(w.memory, old)
}

// replaced returns a copy of a slice, which it returns to the memory.
func replaced[T any](s []T, w writing) []T {
	c := arena.Clone(w.memory, s)
	arena.FreeSlice(w.memory, s)
	return c
}

func (p *pages[T]) complete(items []T, w writing) {
	if p.copied != nil {
		p.copied(items, w)
	}
}

// add adds an item and returns its place.
func (p *pages[T]) add(item T, w writing) int {
	i := p.n
	p.n++
	if i < pageSize {
		// What is appended is not part of a slice that a pinned graph has.
		p.small = arena.Append(w.memory, p.small, item)
		return i
	}
	if i%pageSize == 0 {
		if p.small != nil {
			first := arena.Alloc[page[T]](w.memory)
			copy(first[:], p.small)
			p.complete(first[:], w)
			arena.FreeSlice(w.memory, p.small)
			p.small = nil
			p.addPage(first, w)
		}
		p.addPage(arena.Alloc[page[T]](w.memory), w)
	}
	*p.change(i, w) = item
	return i
}

func (p *pages[T]) addPage(added *page[T], w writing) {
	p.list, p.made = arena.Append(w.memory, p.list, added), arena.Append(w.memory, p.made, w.generation)
}

// free returns the memory of the list. Its items have no memory of their own.
func (p *pages[T]) free(w writing) {
	for _, old := range p.list {
		arena.Free(w.memory, old)
	}
	arena.FreeSlice(w.memory, p.small)
	arena.FreeSlice(w.memory, p.list)
	arena.FreeSlice(w.memory, p.made)
}

// newPages returns a list of zero items.
func newPages[T any](n int, w writing) pages[T] {
	p := pages[T]{own: w.generation, n: n}
	if n <= pageSize {
		p.small = arena.Make[T](w.memory, n, n)
		return p
	}
	for range (n + pageSize - 1) / pageSize {
		p.addPage(arena.Alloc[page[T]](w.memory), w)
	}
	return p
}
