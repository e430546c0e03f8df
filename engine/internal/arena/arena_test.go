//go:build unix

package arena

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

func newArena(t testing.TB, most int64) *Arena {
	t.Helper()
	a, err := New(t.TempDir(), most)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What is allocated keeps what is written to it, and is zero before, while blocks come and go.
func TestBlocksDoNotOverlap(t *testing.T) {
	a := newArena(t, 1<<30)
	r := rand.New(rand.NewPCG(1, 2))
	type slice struct {
		numbers []uint32
		text    string
		want    uint32
	}
	var live []slice
	largest := int64(0)
	for step := range 30_000 {
		a.Begin(uint64(step), uint64(step-r.IntN(3)+1))
		if len(live) > 200 || len(live) > 0 && r.IntN(3) == 0 {
			i := r.IntN(len(live))
			s := live[i]
			if s.text != fmt.Sprint("text ", s.want) || slices.ContainsFunc(s.numbers, func(n uint32) bool { return n != s.want }) {
				t.Fatalf("step %d: %v", step, s)
			}
			FreeSlice(a, s.numbers)
			FreeText(a, s.text)
			live = slices.Delete(live, i, i+1)
			continue
		}
		s := slice{numbers: Make[uint32](a, 1+r.IntN(40), 40), want: uint32(step)}
		if r.IntN(100) == 0 {
			s.numbers = Make[uint32](a, 1_000, 1_000)
		}
		if i := slices.IndexFunc(s.numbers, func(n uint32) bool { return n != 0 }); i >= 0 {
			t.Fatalf("step %d: a new block is not zero", step)
		}
		for i := range s.numbers {
			s.numbers[i] = s.want
		}
		for range r.IntN(100) {
			s.numbers = Append(a, s.numbers, s.want)
		}
		s.text = Text(a, fmt.Sprint("text ", s.want))
		live = append(live, s)
		if step < 15_000 {
			largest = a.Bytes()
		}
	}
	if a.Bytes() > 2*largest || a.Err() != nil {
		t.Errorf("the file grew from %d to %d bytes: %v", largest, a.Bytes(), a.Err())
	}
}

// Blocks that are returned while they are in use are handed out again only after that.
func TestReturnedBlocksInUse(t *testing.T) {
	a := newArena(t, 1<<30)
	a.Begin(3, 2)
	text := Text(a, "12345678")
	FreeText(a, text)
	for _, oldest := range []uint64{2, 3} {
		a.Begin(4, oldest)
		if other := Text(a, "abcdefgh"); text != "12345678" || other != "abcdefgh" {
			t.Errorf("%q, %q", text, other)
		}
	}
	a.Begin(5, 4)
	if Text(a, "ABCDEFGH"); text != "ABCDEFGH" {
		t.Error("the block is not used again")
	}
}

// An arena that may not grow goes on, and says so.
func TestFullArena(t *testing.T) {
	a := newArena(t, 300<<10)
	var texts []string
	for i := range 100_000 {
		texts = append(texts, Text(a, fmt.Sprint("text ", i)))
	}
	if !errors.Is(a.Err(), ErrFull) || a.Bytes() > 300<<10 {
		t.Errorf("%d bytes, %v", a.Bytes(), a.Err())
	}
	for i, text := range texts {
		if text != fmt.Sprint("text ", i) {
			t.Fatalf("%q is text %d", text, i)
		}
	}
	runtime.KeepAlive(a)
}

// What has to stay free of the disk is bounded, however large the disk is.
func TestReserveOfDisk(t *testing.T) {
	a := newArena(t, 1<<30)
	if err := leavesFree(a.file, 0, 0); err != nil {
		t.Error(err)
	}
	if err := leavesFree(a.file, 1<<60, 0); !errors.Is(err, ErrFull) {
		t.Errorf("room for %d bytes: %v", 1<<60, err)
	}
}

// A nil arena is the heap.
func TestHeap(t *testing.T) {
	s := Append(nil, Make[int](nil, 1, 1), 7)
	FreeSlice(nil, s)
	if !slices.Equal(s, []int{0, 7}) || Text(nil, "a") != "a" || *Alloc[int](nil) != 0 {
		t.Error(s)
	}
	(*Arena)(nil).Begin(1, 1)
}
