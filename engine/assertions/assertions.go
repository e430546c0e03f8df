// Package assertions tests resource types by the answers that they are to give.
//
// An [Assertion] is an expected answer to a check or a list. It is evaluated in a [World]: an engine
// in memory that has only the types and the relations of the test. The command stonetown test does
// so with the files of a repository, and plans of changed types with the [Set]s that tenants have
// stored ([Store]).
package assertions

import (
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// Assertion is an answer that the files expect. Exactly one of the three questions is set.
type Assertion struct {
	At   Place
	Name string // of the test that it is part of; may be empty
	// Check: may Subject do Action to Resource?
	Check *Check
	// Resources: to which resources of a type may the subject do the action?
	Resources *Resources
	// Subjects: which subjects of a kind may do the action to the resource?
	Subjects *Subjects

	// Context and Contextual are part of the request.
	Context    map[string]any
	Contextual []engine.WriteOp
	// Instant is the time of the request; zero: now.
	Instant time.Time
}

// Check is an assertion about one subject and one resource.
type Check struct {
	Subject  tuplestore.Subject
	Action   string
	Resource tuplestore.Object
	Want     Answer
	// Reasons are steps that the proof of an allowed check must have; see [engine.Reason].
	Reasons []string
}

// Answer is the expected answer to a check.
type Answer string

const (
	Allowed Answer = "allowed"
	Denied  Answer = "denied"
	// Undecided: the answer depends on values that the request does not have.
	Undecided Answer = "undecided"
)

// Resources is an assertion about a list of resources; Want has their ids, in any order.
type Resources struct {
	Subject tuplestore.Subject
	Action  string
	Type    string
	Want    []string
}

// Subjects is an assertion about a list of subjects of one kind: the objects of a type or, with
// a relation, usersets. Want has their ids and the wildcard, in any order.
type Subjects struct {
	Resource       tuplestore.Object
	Action         string
	Type, Relation string
	Want           []string
	// Partial: Want may be a part of them.
	Partial bool
}

// Place is a position in files; zero if there are none.
type Place struct {
	File string
	Line int // from 1; 0 if unknown
}
