package graph

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"stonetown/tuplestore"
)

// BenchmarkGraphMemory measures the memory of the tuples of a drive: each document has a
// folder, an owner and a viewer, and is registered, which is not counted as a tuple. It
// also reports the ratio of the estimate to the memory.
func BenchmarkGraphMemory(b *testing.B) {
	for _, documents := range []int{10_000, 3_400_000} {
		b.Run(fmt.Sprint(3*documents, " tuples"), func(b *testing.B) {
			heap := func() uint64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			for b.Loop() {
				before := heap()
				g := New()
				drive(g, documents)
				taken := float64(heap() - before)
				b.ReportMetric(taken/float64(3*documents), "B/tuple")
				b.ReportMetric(float64(g.bytes)/taken, "estimate/actual")
				runtime.KeepAlive(g)
			}
			b.ReportMetric(float64(3*documents*b.N)/b.Elapsed().Seconds(), "tuples/s")
		})
	}
}

// drive adds the tuples of documents.
func drive(g *Graph, documents int) {
	add := func(object tuplestore.Object, relation string, subject tuplestore.Subject) {
		g.Add(tuplestore.Fact{Tuple: tuplestore.Tuple{Object: object, Relation: relation, Subject: subject}})
	}
	for i := range documents {
		d := tuplestore.Object{Type: "document", ID: "d" + strconv.Itoa(i)}
		g.Add(tuplestore.Fact{Tuple: tuplestore.Presence(d)})
		add(d, "parent", tuplestore.Subject{Type: "folder", ID: "f" + strconv.Itoa(i*7919%(documents/25))})
		add(d, "owner", tuplestore.Subject{Type: "user", ID: "u" + strconv.Itoa(i*104729%(documents/5))})
		add(d, "viewer", tuplestore.Subject{Type: "user", ID: "u" + strconv.Itoa(i*31%(documents/5))})
	}
}
