package bench

import (
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Workload is tuples and questions about them whose answers are known. The same
// seeds give the same questions.
type Workload interface {
	Name() string
	// Types are the resource types, in the order in which they are to be defined.
	Types() []schema.Type
	// Tuples yields the tuples, always the same in the same order.
	Tuples(yield func(tuplestore.Tuple) bool)
	// Questioner returns the generator of one worker.
	Questioner(seed, worker uint64) Questioner
}

// Questioner draws questions. It is not safe for concurrent use.
type Questioner interface {
	// Next draws a question.
	Next() Question
	// Batch draws questions about one subject.
	Batch(size int) []Question
}

// Question is a check and its right answer, which comes from the generator's own
// arrays and not from an engine.
type Question struct {
	Subject  tuplestore.Subject
	Resource tuplestore.Object
	Action   string
	Allowed  bool
}
