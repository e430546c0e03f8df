// Package arena allocates memory in a mapped file, outside of Go's heap. The kernel keeps in memory
// what is used of it, and writes the rest to disk when it needs the memory for something else, so an
// arena can be larger than the memory of the machine.
//
// What is in an arena may have pointers to the same arena, and none to the heap, because the garbage
// collector does not see them. Blocks are returned with [Free] and [FreeSlice]. A nil *Arena stands
// for Go's heap: the functions then are those of the language.
//
// The memory is unmapped when the garbage collector finds that nothing refers to the Arena any more.
// Code that has pointers to blocks therefore keeps one to the Arena, and copies strings that have to
// live longer ([Outside]).
package arena

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"
)

// ErrFull is the error of an arena that would become larger than it may.
var ErrFull = errors.New("the mapped file would be too large")

// Arena is memory in a mapped file. It is not safe for concurrent use.
type Arena struct {
	file     *os.File
	mappings *mappings
	most     int64                    // how many bytes the file may have
	bytes    int64                    // of the file
	rest     []byte                   // of the last segment, not handed out yet
	free     map[int][]unsafe.Pointer // blocks to hand out again, by size
	retired  []retired                // blocks that may be in use, by generation

	generation, oldest uint64 // of the change in progress
	err                error
}

type block struct {
	at   unsafe.Pointer
	size int
}

// retired is a block that was returned in a generation.
type retired struct {
	block
	generation uint64
}

const (
	smallestBlock  = 8
	cacheLine      = 64
	firstSegment   = 256 << 10
	largestSegment = 64 << 20
	// An arena leaves a tenth of the disk free, or freeBytes if that is less.
	freeBytes = 2 << 30
)

// New returns an empty arena of at most the given number of bytes, in a file in a folder. The file
// has no name any more, so it ends with the process. The error of a system on which that is not
// possible is [errors.ErrUnsupported].
func New(folder string, most int64) (*Arena, error) {
	file, err := createUnnamed(folder)
	if err != nil {
		return nil, fmt.Errorf("mapped file: %w", err)
	}
	a := &Arena{file: file, mappings: new(mappings), most: most, free: map[int][]unsafe.Pointer{}, oldest: 1}
	runtime.AddCleanup(a, func(m *mappings) { m.unmap(); file.Close() }, a.mappings)
	return a, nil
}

// Bytes returns the size of the file.
func (a *Arena) Bytes() int64 { return a.bytes }

// Err returns why the file could not grow, nil if it could. What was allocated after that takes
// memory, so the arena should not be used much longer.
func (a *Arena) Err() error {
	if a == nil {
		return nil
	}
	return a.err
}

// Begin begins a change of what is in the arena, in a generation, which never decreases. Something
// else may still read what there was in the oldest generation in use, or in a later one: what is
// returned is not handed out again until all that are in use are later. Without any, oldest is later
// than generation.
func (a *Arena) Begin(generation, oldest uint64) {
	if a == nil {
		return
	}
	a.generation, a.oldest = generation, oldest
	n := 0
	for n < len(a.retired) && a.retired[n].generation < oldest {
		a.reuse(a.retired[n].block)
		n++
	}
	if n > 0 {
		a.retired = append(a.retired[:0], a.retired[n:]...)
	}
}

// alloc returns a block of zeros.
func (a *Arena) alloc(size int) unsafe.Pointer {
	size = rounded(size)
	if free := a.free[size]; len(free) > 0 {
		at := free[len(free)-1]
		a.free[size] = free[:len(free)-1]
		// As bytes: a write of a pointer would show the garbage collector what was there before.
		clear(unsafe.Slice((*byte)(at), size))
		return at
	}
	if size >= cacheLine {
		a.rest = a.rest[a.misaligned():]
	}
	if len(a.rest) < size {
		a.grow(size)
	}
	at := unsafe.Pointer(unsafe.SliceData(a.rest))
	a.rest = a.rest[size:]
	return at
}

// misaligned returns how many bytes there are before the next cache line.
func (a *Arena) misaligned() int {
	at := int(uintptr(unsafe.Pointer(unsafe.SliceData(a.rest))) % cacheLine)
	if at == 0 {
		return 0
	}
	return min(cacheLine-at, len(a.rest))
}

func rounded(size int) int {
	return (max(size, smallestBlock) + smallestBlock - 1) &^ (smallestBlock - 1)
}

// grow adds a segment, with room for a block. If the file cannot grow, that is memory without a
// file, for the owner to find out.
func (a *Arena) grow(size int) {
	page := os.Getpagesize()
	size = (size + page - 1) / page * page
	if a.err == nil {
		a.rest, a.err = a.extend(max(size, int(min(max(a.bytes, firstSegment), largestSegment))))
	}
	if a.err == nil {
		return
	}
	rest, err := a.mappings.addAnonymous(max(size, firstSegment))
	if err != nil {
		panic(fmt.Sprintf("out of memory: %v, after %v", err, a.err))
	}
	a.rest = rest
}

// extend extends the file by a number of bytes.
func (a *Arena) extend(size int) ([]byte, error) {
	if a.bytes+int64(size) > a.most {
		return nil, ErrFull
	}
	if err := leavesFree(a.file, uint64(size), freeBytes); err != nil {
		return nil, err
	}
	if err := reserve(a.file, a.bytes, int64(size)); err != nil {
		return nil, fmt.Errorf("mapped file: %w", err)
	}
	memory, err := a.mappings.add(a.file, a.bytes, size)
	if err != nil {
		return nil, fmt.Errorf("mapped file: %w", err)
	}
	a.bytes += int64(size)
	return memory, nil
}

// giveBack takes a block back.
func (a *Arena) giveBack(b block) {
	if b.size = rounded(b.size); a.oldest <= a.generation {
		a.retired = append(a.retired, retired{b, a.generation})
		return
	}
	a.reuse(b)
}

func (a *Arena) reuse(b block) { a.free[b.size] = append(a.free[b.size], b.at) }

// Alloc returns a zero T.
func Alloc[T any](a *Arena) *T {
	if a == nil {
		return new(T)
	}
	return (*T)(a.alloc(int(unsafe.Sizeof(*new(T)))))
}

// Make returns a slice of zeros.
func Make[T any](a *Arena, length, capacity int) []T {
	if a == nil || capacity == 0 {
		return make([]T, length, capacity)
	}
	at := a.alloc(capacity * int(unsafe.Sizeof(*new(T))))
	return unsafe.Slice((*T)(at), capacity)[:length]
}

// Append is append of one item. A slice that is replaced by a larger one is returned.
func Append[T any](a *Arena, s []T, item T) []T {
	if a == nil || len(s) < cap(s) {
		return append(s, item)
	}
	grown := Make[T](a, len(s)+1, max(4, 2*cap(s)))
	copy(grown, s)
	grown[len(s)] = item
	FreeSlice(a, s)
	return grown
}

// Clone returns a copy of a slice.
func Clone[T any](a *Arena, s []T) []T {
	if s == nil {
		return nil
	}
	c := Make[T](a, len(s), len(s))
	copy(c, s)
	return c
}

// Text returns a copy of a string in the arena, or the string if it is on the heap.
func Text(a *Arena, s string) string {
	if a == nil || s == "" {
		return s
	}
	at := a.alloc(len(s))
	copy(unsafe.Slice((*byte)(at), len(s)), s)
	return unsafe.String((*byte)(at), len(s))
}

// Free returns what Alloc returned.
func Free[T any](a *Arena, p *T) {
	if a != nil && p != nil {
		a.giveBack(block{unsafe.Pointer(p), int(unsafe.Sizeof(*p))})
	}
}

// FreeSlice returns a slice from Make, Append or Clone. It has to be the whole of it.
func FreeSlice[T any](a *Arena, s []T) {
	if a != nil && cap(s) > 0 {
		a.giveBack(block{unsafe.Pointer(unsafe.SliceData(s)), cap(s) * int(unsafe.Sizeof(*new(T)))})
	}
}

// FreeText returns a string from Text.
func FreeText(a *Arena, s string) {
	if a != nil && s != "" {
		a.giveBack(block{unsafe.Pointer(unsafe.StringData(s)), len(s)})
	}
}

// Outside returns a string that does not depend on the arena.
func Outside(a *Arena, s string) string {
	if a == nil {
		return s
	}
	return strings.Clone(s)
}
