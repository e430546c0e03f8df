// Package importer reads the files of other authorization engines: models,
// relationships and the assertions that test them.
//
// A reader for each engine (importer/openfga, importer/spicedb) turns its files into
// a [Data]: resource types, relations and assertions of this product. What has no
// equivalent is never dropped silently: it is in the report, with the place where it
// was found. [Validate] runs the assertions on an engine in memory and reports the
// answers that differ, before anything is imported.
package importer

import (
	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Data is what was read.
type Data struct {
	Types      []schema.Type
	Relations  []engine.WriteOp
	Assertions []Assertion
	Report     []Finding
}

// Assertion is an answer that the files expect. Exactly one of the three
// questions is set.
type Assertion struct {
	At Place
	// Check asks whether Subject may do Action to Resource.
	Check *Check
	// Resources asks to which resources of a type the subject may do the action.
	Resources *Resources
	// Subjects asks which subjects of a kind may do the action to the resource.
	Subjects *Subjects

	// Context and Contextual are what the question brings along.
	Context    map[string]any
	Contextual []engine.WriteOp
}

// Check is an assertion about one subject and one resource.
type Check struct {
	Subject  tuplestore.Subject
	Action   string
	Resource tuplestore.Object
	Want     Answer
}

// Answer is what a check is expected to say.
type Answer string

const (
	Allowed Answer = "allowed"
	Denied  Answer = "denied"
	// Undecided: it depends on values that the question does not bring along.
	Undecided Answer = "undecided"
)

// Resources is an assertion about a list of resources; Want holds their IDs, in
// any order.
type Resources struct {
	Subject tuplestore.Subject
	Action  string
	Type    string
	Want    []string
}

// Subjects is an assertion about a list of subjects of one kind: the objects of
// a type or, with a relation, usersets. Want holds their IDs, in any order, the
// wildcard among them.
type Subjects struct {
	Resource       tuplestore.Object
	Action         string
	Type, Relation string
	Want           []string
	// Partial: Want need not be all of them.
	Partial bool
}

// Place is where in the files something stands.
type Place struct {
	File string
	Line int // from 1; 0 if unknown
}

// Finding is something that a reader of the report should know.
type Finding struct {
	At      Place
	Kind    FindingKind
	Message string
}

// FindingKind says how much a finding matters.
type FindingKind string

const (
	// Renamed: a name that this product does not allow was replaced, everywhere.
	Renamed FindingKind = "renamed"
	// Widened: what was translated accepts more than the original, in writing;
	// the answers are the same.
	Widened FindingKind = "widened"
	// Unsupported: it has no equivalent and was left out.
	Unsupported FindingKind = "unsupported"
)

// Find adds a finding to the report.
func (w *Data) Find(at Place, kind FindingKind, message string) {
	w.Report = append(w.Report, Finding{at, kind, message})
}
