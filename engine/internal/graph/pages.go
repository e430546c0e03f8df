package graph

import "slices"

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
	copied func([]T)
}

// pageSize is the number of items of a page: 32 KiB of objects. The pages are few enough that
// the processor keeps the list of them, and small enough to be copied by a write.
const pageSize = 512

type page[T any] [pageSize]T

// writing is what a change of a graph has to know of pins: whether there are any, and the
// generation that began with the last one. What was made before may be pinned.
type writing struct {
	pinned     bool
	generation uint64
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
		if p.small != nil {
			p.small = slices.Clone(p.small)
			p.complete(p.small)
		}
		p.list, p.made = slices.Clone(p.list), slices.Clone(p.made)
	}
	if p.small != nil || p.made[n] == w.generation {
		return
	}
	c := *p.list[n]
	p.complete(c[:])
	p.list[n], p.made[n] = &c, w.generation
}

func (p *pages[T]) complete(items []T) {
	if p.copied != nil {
		p.copied(items)
	}
}

// add adds an item and returns its place.
func (p *pages[T]) add(item T, w writing) int {
	i := p.n
	p.n++
	if i < pageSize {
		// What is appended is not part of a slice that a pinned graph has.
		p.small = append(p.small, item)
		return i
	}
	if i%pageSize == 0 {
		if p.small != nil {
			first := page[T](p.small)
			p.complete(first[:])
			p.list, p.made, p.small = append(p.list, &first), append(p.made, w.generation), nil
		}
		p.list, p.made = append(p.list, new(page[T])), append(p.made, w.generation)
	}
	*p.change(i, w) = item
	return i
}

// newPages returns a list of zero items.
func newPages[T any](n int, w writing) pages[T] {
	p := pages[T]{own: w.generation, n: n}
	if n <= pageSize {
		p.small = make([]T, n)
		return p
	}
	for range (n + pageSize - 1) / pageSize {
		p.list, p.made = append(p.list, new(page[T])), append(p.made, w.generation)
	}
	return p
}
