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
	"stonetown/engine"
	"stonetown/engine/assertions"
	"stonetown/schema"
)

// Data is the content of the files.
type Data struct {
	Types      []schema.Type
	Relations  []engine.WriteOp
	Assertions []Assertion
	Report     []Finding
}

// What the files assert.
type (
	Assertion = assertions.Assertion
	Check     = assertions.Check
	Resources = assertions.Resources
	Subjects  = assertions.Subjects
	Answer    = assertions.Answer
	Place     = assertions.Place
)

const (
	Allowed   = assertions.Allowed
	Denied    = assertions.Denied
	Undecided = assertions.Undecided
)

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
