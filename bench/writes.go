package bench

import (
	"context"
	"fmt"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Writes is durable writes to [Docs]. Each call creates the relation of a new document: one caller,
// and many at once; or 500 relations, of new documents or of those that exist, on targets that take
// so many.
type Writes struct{ *Docs }

// Name implements [Workload].
func (Writes) Name() string { return "writes" }

func (w Writes) measure(ctx context.Context, r *run, targets ...Target) {
	r.prepare(ctx, w, targets)
	for i, f := range []Figure{
		{Measure: "write", Workers: 1, PerCall: 1},
		{Measure: "write", Workers: remoteWorkers, PerCall: 1},
		{Measure: "write", Workers: 1, PerCall: 500},
		{Measure: writeExisting, Workers: 1, PerCall: 500},
	} {
		var meters []*meter
		for _, t := range targets {
			if f.PerCall <= t.WriteLimit() {
				f.Target, f.Workload = t.Name(), w.Name()
				meters = append(meters, w.writing(t, f, 2_000_000+1000*i))
			}
		}
		r.measure(ctx, meters...)
	}
}

// writeExisting is the measure of writes of relations of documents that exist.
const writeExisting = "write, documents that exist"

// writing returns the meter of a figure. Those of different writers write different tuples.
func (w Writes) writing(t Target, f Figure, writer int) *meter {
	return newMeter(f, func(worker int) func(context.Context) error {
		writer, n := writer+worker, 0
		return func(ctx context.Context) error {
			tuples := make([]tuplestore.Tuple, f.PerCall)
			for i := range tuples {
				n++
				if f.Measure == writeExisting {
					viewer := object(schema.UserType, fmt.Sprint("new", writer, "-"), n)
					tuples[i] = tuplestore.Tuple{Object: object("document", "d", n%docsDocuments), Relation: "viewer", Subject: asSubject(viewer, "")}
				} else {
					tuples[i], _ = w.New(uint64(writer), n)
				}
			}
			return t.Write(ctx, tuples)
		}
	})
}
