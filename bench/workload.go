package bench

import (
	"context"
	"fmt"
	"path"
	"strings"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Workload is tuples and questions about them whose answers are known. The same seeds give
// the same questions. Workloads with different tuples have no resource in common, so that
// all can be in one store.
type Workload interface {
	// Name is the name on the command line and in reports, such as "chain-30".
	Name() string
	// Types are the resource types, in the order in which they are to be defined.
	Types() []schema.Type
	// Tuples yields the tuples, always the same in the same order.
	Tuples(yield func(tuplestore.Tuple) bool)
	// Questioner returns the generator of one worker.
	Questioner(seed, worker uint64) Questioner
}

// Growing is a workload to which tuples can be added during checks.
type Growing interface {
	Workload
	// New returns the n-th tuple that a worker adds, and a question that it makes allowed.
	New(worker uint64, n int) (tuplestore.Tuple, Question)
}

// Workloads returns all workloads, first the one with the most measurements.
func Workloads() []Workload {
	docs := NewDocs()
	return []Workload{
		docs, docs.Zipf(), Chain(1), Chain(10), Chain(30), NestedGroups(30), Group(1_000_000), Diamond(1000), Exclusions(), Tenants(1000),
	}
}

// special is a workload with measurements of its own.
type special interface {
	Workload
	measure(ctx context.Context, r *run, targets ...Target)
}

// onDocs is a workload with the tuples of [Docs].
type onDocs interface {
	docs() *Docs
}

// Choose returns the workloads whose names match one of the patterns, separated by
// commas, such as "docs,chain-*".
func Choose(patterns string) ([]Workload, error) {
	var chosen []Workload
	all := Workloads()
	docs := all[0].(*Docs)
	all = append(all, Load{docs}, Writes{docs}, Stalls{docs}, NewLargerThanMemory(docs))
	for pattern := range strings.SplitSeq(patterns, ",") {
		before := len(chosen)
		for _, w := range all {
			if ok, err := path.Match(pattern, w.Name()); err != nil {
				return nil, err
			} else if ok {
				chosen = append(chosen, w)
			}
		}
		if len(chosen) == before {
			var names []string
			for _, w := range all {
				names = append(names, w.Name())
			}
			return nil, fmt.Errorf("no workload %q; there are %s", pattern, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}

// Questioner draws questions. It is not safe for concurrent use.
type Questioner interface {
	// Next draws a question.
	Next() Question
	// Batch draws questions about one subject.
	Batch(size int) []Question
}

// Question is a check and its correct answer, which comes from the generator's own arrays
// and not from an engine.
type Question struct {
	Subject  tuplestore.Subject
	Resource tuplestore.Object
	Action   string
	Allowed  bool
}
