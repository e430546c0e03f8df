package chunks

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

type item struct {
	number uint64
	text   string
}

func random(r *rand.Rand, n int) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{r.Uint64() >> r.IntN(64), strings.Repeat("x", r.IntN(3)*r.IntN(40))}
	}
	items[n/2] = item{math.MaxUint64, strings.Repeat("large", chunkBytes/4)}
	return items
}

func write(t testing.TB, items []item) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewWriter(&file)
	for _, i := range items {
		w.Number(i.number)
		w.Text(i.text)
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func read(file []byte, n int) ([]item, error) {
	r := NewReader(bytes.NewReader(file), int64(len(file)))
	var items []item
	for range n {
		items = append(items, item{r.Number(), r.Text()})
		if r.Err() != nil {
			return nil, r.Err()
		}
	}
	return items, r.End()
}

func TestReadReturnsWhatWasWritten(t *testing.T) {
	for seed := range uint64(5) {
		items := random(rand.New(rand.NewPCG(seed, 0)), 50_000)
		have, err := read(write(t, items), len(items))
		if err != nil || !slices.Equal(have, items) {
			t.Fatalf("seed %d: %d items, %v", seed, len(have), err)
		}
	}
}

// A file with any byte changed, left out or added is damaged.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	items := random(r, 20_000)
	file := write(t, items)
	for name, damaged := range map[string]func() []byte{
		"truncated": func() []byte { return file[:r.IntN(len(file))] },
		"longer":    func() []byte { return append(slices.Clone(file), 0) },
		"changed": func() []byte {
			c := slices.Clone(file)
			c[r.IntN(len(c))] ^= 1 << r.IntN(8)
			return c
		},
		"without its last chunk": func() []byte { return file[:len(file)-headerBytes] },
		"empty":                  func() []byte { return nil },
	} {
		for range 50 {
			if _, err := read(damaged(), len(items)); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if _, err := read(file, len(items)-1); !errors.Is(err, ErrDamaged) {
		t.Errorf("a file of which only a part is read: %v", err)
	}
	if _, err := read(file, len(items)+1); !errors.Is(err, ErrDamaged) {
		t.Errorf("a read beyond the end: %v", err)
	}
}

// A count that the file cannot have is damage, before memory is allocated.
func TestCount(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file)
	w.Number(2)
	w.Number(7)
	w.Number(1 << 40)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(&file, int64(file.Len()))
	if n := r.Count(); n != 2 || r.Err() != nil {
		t.Errorf("count %d, %v", n, r.Err())
	}
	r.Number()
	if n := r.Count(); n != 0 || !errors.Is(r.Err(), ErrDamaged) {
		t.Errorf("count %d, %v", n, r.Err())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

func TestWriteError(t *testing.T) {
	w := NewWriter(failing{})
	w.Text("some")
	if err := w.End(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(write(f, random(rand.New(rand.NewPCG(1, 1)), 100)))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := read(file, 100); err != nil && !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	})
}
