package graph

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"testing"

	"stonetown/engine/internal/arena"
	"stonetown/engine/internal/chunks"
	"stonetown/tuplestore"
)

func write(t testing.TB, g *Graph) []byte {
	t.Helper()
	var file bytes.Buffer
	w := chunks.NewWriter(&file)
	g.WriteTo(w)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func read(file []byte) (*Graph, error) { return readTo(nil, file) }

func readTo(memory *arena.Arena, file []byte) (*Graph, error) {
	r := chunks.NewReader(bytes.NewReader(file), int64(len(file)))
	g := Read(r, memory)
	return g, r.End()
}

// A graph read from a file has what the written one had, takes as much memory, and goes on as that
// one does.
func TestGraphInFile(t *testing.T) {
	for name, newGraph := range memories {
		t.Run(name, func(t *testing.T) { testGraphInFile(t, newGraph) })
	}
}

func testGraphInFile(t *testing.T, newGraph func(t *testing.T) *Graph) {
	for seed := range uint64(3) {
		w := &world{rand.New(rand.NewPCG(seed, 2)), newGraph(t), map[tuplestore.Tuple]tuplestore.Qualifier{}}
		for step := range 20_000 {
			w.change(step/4000%2 == 0)
			if step%5000 != 2500 {
				continue
			}
			if seed == 1 {
				w.graph.Rename(map[string]string{"doc": "paper", "paper": "doc"}, map[string]string{"r1": "r2", "r2": "r1"})
				w.graph.Rename(map[string]string{"doc": "paper", "paper": "doc"}, map[string]string{"r1": "r2", "r2": "r1"})
			}
			if seed == 2 {
				w.graph.IndexBackward()
			}
			g, err := readTo(newGraph(t).Arena(), write(t, w.graph))
			if err != nil {
				t.Fatal(err)
			}
			if have, _ := contents(g); !maps.Equal(have, w.model) {
				t.Fatalf("seed %d, step %d: %d tuples, want %d", seed, step, len(have), len(w.model))
			}
			for tuple := range w.model {
				if o := g.Find(tuple.Object); o == NoObject || g.Object(o) != tuple.Object {
					t.Fatalf("seed %d, step %d: %s is not found", seed, step, tuple.Object)
				}
			}
			want := w.graph.Bytes()
			if w.graph.HasBackward() {
				want -= backwardBytes * int64(relations(w.model))
				g.IndexBackward()
				want += backwardBytes * int64(relations(w.model))
			}
			if g.Bytes() != want {
				t.Errorf("seed %d, step %d: %d bytes, want %d", seed, step, g.Bytes(), want)
			}
			w.graph = g
		}
	}
}

func TestEmptyGraphInFile(t *testing.T) {
	g, err := read(write(t, New()))
	if err != nil || g.Bytes() != 0 || g.Find(tuplestore.Object{Type: "doc", ID: "1"}) != NoObject {
		t.Errorf("%d bytes, %v", g.Bytes(), err)
	}
}

// What other numbers and texts lead to is an error, never a panic.
func FuzzReadGraph(f *testing.F) {
	w := &world{rand.New(rand.NewPCG(1, 2)), New(), map[tuplestore.Tuple]tuplestore.Qualifier{}}
	for range 100 {
		w.change(true)
	}
	f.Add([]byte{2, 1, 'd', 1, 'u', 1, 1, 'r', 2, 3, 1, 'x', 1, 1, 0, 1, 5, 1, 'y', 1, 0})
	f.Add(write(f, w.graph)[8:])
	f.Fuzz(func(t *testing.T, content []byte) {
		r := chunks.NewReader(bytes.NewReader(inChunk(content)), int64(len(content)+16))
		g := Read(r, nil)
		if err := r.End(); err != nil {
			if !errors.Is(err, chunks.ErrDamaged) {
				t.Error(err)
			}
			return
		}
		g.Add(tuplestore.Fact{Tuple: tuplestore.Presence(tuplestore.Object{Type: "doc", ID: "new"})})
		contents(g)
	})
}

// inChunk returns a file of one chunk.
func inChunk(content []byte) []byte {
	checksum := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	file := binary.LittleEndian.AppendUint32(nil, uint32(len(content)))
	file = append(binary.LittleEndian.AppendUint32(file, checksum), content...)
	return append(file, make([]byte, 8)...)
}

// BenchmarkGraphInFile measures writing and reading a graph of the tuples of a drive.
func BenchmarkGraphInFile(b *testing.B) {
	for _, documents := range []int{55_000, 3_400_000} {
		g := New()
		drive(g, documents)
		file := write(b, g)
		tuples := float64(3 * documents)
		for name, op := range map[string]func(){
			"write": func() { write(b, g) },
			"read": func() {
				if _, err := read(file); err != nil {
					b.Fatal(err)
				}
			},
		} {
			b.Run(fmt.Sprint(name, " ", 3*documents, " tuples"), func(b *testing.B) {
				for b.Loop() {
					op()
				}
				b.ReportMetric(float64(len(file))/tuples, "B/tuple")
				b.ReportMetric(tuples*float64(b.N)/b.Elapsed().Seconds(), "tuples/s")
			})
		}
	}
}
