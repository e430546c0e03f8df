// Package importer reads models, relationships and the assertions that test them, from the files
// of this product and of other authorization engines.
//
// A reader for each engine (importer/native, importer/openfga, importer/spicedb) translates its
// files into [Data]: resource types, relations and assertions of this product. Constructs without
// an equivalent are in the report with their place. [Validate] runs the assertions on an engine in
// memory and reports the answers that differ, before anything is imported. [Uncovered] names the
// parts of the types that no assertion depends on.
package importer

import (
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Data is the content of the files.
type Data struct {
	Types      []schema.Type
	Relations  []engine.WriteOp
	Assertions []Assertion
	Report     []Finding
}

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

// Place is a position in the files.
type Place struct {
	File string
	Line int // from 1; 0 if unknown
}

// Finding is an entry of the report.
type Finding struct {
	At      Place
	Kind    FindingKind
	Message string
}

// FindingKind is the severity of a finding.
type FindingKind string

const (
	// Renamed: a name that is not valid here was replaced everywhere.
	Renamed FindingKind = "renamed"
	// Widened: the translation accepts writes that the original refuses; the answers are the
	// same.
	Widened FindingKind = "widened"
	// Unsupported: a construct has no equivalent and was left out.
	Unsupported FindingKind = "unsupported"
)

// Find adds a finding to the report.
func (w *Data) Find(at Place, kind FindingKind, message string) {
	w.Report = append(w.Report, Finding{at, kind, message})
}
