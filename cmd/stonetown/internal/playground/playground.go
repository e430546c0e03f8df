// Package playground answers questions about a model without a server and without a database.
//
// A document is the text of one file that [stonetown/cmd/stonetown/internal/importer/engines] reads:
// types, relations and tests in the format of this product, or a file of another engine. Each
// request carries the document; a [Session] keeps the last one loaded, for the next question. The
// engine, the reader and the tests are those of the command stonetown test.
//
// Package playground/wasm is the program for browsers.
package playground

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/engines"
	"stonetown/engine"
	"stonetown/engine/assertions"
	"stonetown/internal/notation"
	"stonetown/internal/proofgraph"
	"stonetown/tuplestore"
)

// Limits of a request.
const (
	MaxText  = 1 << 20 // bytes of a document
	maxField = 10_000  // bytes of a field of a question
	maxIDs   = 1000    // ids of an answer
	// depth and relations are how far an expansion goes, and how many relations it has.
	depth     = 10
	relations = 500
)

// Request is a document and an operation on it.
type Request struct {
	Op   Op     `json:"op"`
	Text string `json:"text"`

	// The question. Context is a JSON object, At a time in the format of RFC 3339; both can be empty.
	Subject  string `json:"subject"`
	Action   string `json:"action"`
	Resource string `json:"resource"`
	Type     string `json:"type"`
	Context  string `json:"context"`
	At       string `json:"at"`
}

// Op is an operation.
type Op string

const (
	Run       Op = "run"       // validate the document and run its tests
	Uncovered Op = "uncovered" // name the parts of the types that no test depends on
	Check     Op = "check"     // may the subject do the action to the resource, and why?
	Resources Op = "resources" // to which resources of the type may the subject do the action?
	Subjects  Op = "subjects"  // which subjects of the type may do the action to the resource?
)

// Answer is the answer to a request. It has the members of its operation, or Error.
type Answer struct {
	Error string `json:"error,omitempty"`
	Field string `json:"field,omitempty"` // of the question that the error is about
	Line  int    `json:"line,omitempty"`  // of the text that the error is about

	// Of Run.
	Engine    engines.Engine        `json:"engine,omitempty"`
	Types     []engine.TypeDocument `json:"types,omitempty"`
	Relations int                   `json:"relations,omitempty"`
	Findings  []Finding             `json:"findings,omitempty"`
	Tests     []Test                `json:"tests,omitempty"`

	// Of Uncovered.
	Parts []string `json:"parts,omitempty"`

	// Of Check: the decision, and its graph for the console's explorer.
	Decision *proofgraph.Decision `json:"decision,omitempty"`
	Graph    json.RawMessage      `json:"graph,omitempty"`
	Unknown  bool                 `json:"unknown,omitempty"` // no relation names the resource

	// Of Resources and Subjects.
	IDs  []string `json:"ids,omitempty"`
	More bool     `json:"more,omitempty"` // there are more ids
}

// Finding is an entry of the report about a file of another engine.
type Finding struct {
	Line    int                  `json:"line,omitempty"`
	Kind    importer.FindingKind `json:"kind"`
	Message string               `json:"message"`
}

// Test is a tested assertion.
type Test struct {
	Line     int    `json:"line,omitempty"`
	Name     string `json:"name,omitempty"`
	Question string `json:"question"`
	// Want and Got are set if the assertion does not hold.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
}

// Session answers requests, one after the other.
type Session struct {
	text  string // of the document that is loaded
	data  *importer.Data
	world *assertions.World // nil: there is none
}

// JSON answers a request in JSON with an answer in JSON.
func (s *Session) JSON(ctx context.Context, request []byte) []byte {
	var req Request
	a := new(Answer)
	if err := json.Unmarshal(request, &req); err != nil {
		a.Error = "the request is not JSON: " + err.Error()
	} else {
		a = s.Respond(ctx, req)
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic("playground: " + err.Error()) // an answer has only texts and numbers
	}
	return text
}

// Respond answers a request.
func (s *Session) Respond(ctx context.Context, req Request) *Answer {
	a := new(Answer)
	if err := s.respond(ctx, req, a); err != nil {
		return failure(err)
	}
	return a
}

// Close frees the document that is loaded.
func (s *Session) Close() {
	if s.world != nil {
		s.world.Close()
	}
	*s = Session{}
}

// failure represents an error. Those of readers begin with the file and the line.
func failure(err error) *Answer {
	a := &Answer{Error: err.Error()}
	if invalid, ok := errors.AsType[*fieldError](err); ok {
		a.Field = invalid.field
	}
	if at := place.FindStringSubmatch(a.Error); at != nil {
		a.Line, _ = strconv.Atoi(at[1]) // 0 if there is none
		a.Error = at[2]
	}
	return a
}

var place = regexp.MustCompile(`(?s)^document\.[a-z.]+:(?:(\d{1,9}):)? (.+)$`)

// fieldError is an error of a field of a question.
type fieldError struct {
	field   string
	problem string
}

func (e *fieldError) Error() string { return e.problem }

func (s *Session) respond(ctx context.Context, req Request, a *Answer) error {
	if len(req.Text) > MaxText {
		return fmt.Errorf("the document is longer than %d bytes", MaxText)
	}
	from, name := kindOf(req.Text)
	if s.data == nil || s.text != req.Text {
		s.Close()
		data, err := engines.Read(file{name, req.Text}, name, from)
		if err != nil {
			return err
		}
		s.text, s.data = req.Text, data
	}
	switch req.Op {
	case Run:
		a.Engine = from
		return a.run(ctx, s.data)
	case Uncovered:
		parts, err := importer.Uncovered(ctx, s.data)
		a.Parts = parts
		return err
	case Check, Resources, Subjects:
		q, err := question(req)
		if err != nil {
			return err
		}
		if s.world == nil {
			if s.world, err = assertions.Load(ctx, s.data.Types, s.data.Relations, nil); err != nil {
				return err
			}
		}
		return a.ask(ctx, s.world, q)
	}
	return fmt.Errorf("there is no operation %q", req.Op)
}

// kinds are the kinds of files, by what only they have.
var kinds = []struct {
	has    *regexp.Regexp
	engine engines.Engine
	name   string
}{
	{regexp.MustCompile(`(?m)^["']?types["']?:`), engines.Stonetown, "document.test.yaml"},
	{regexp.MustCompile(`(?m)^["']?(schema|schemaFile|relationships|relationshipsFile|validation|assertions)["']?:`), engines.SpiceDB, "document.yaml"},
	{regexp.MustCompile(`(?m)^["']?(model|model_file|tuples|tuple_file)["']?:`), engines.OpenFGA, "document.fga.yaml"},
	{regexp.MustCompile(`^\s*\{`), engines.OpenFGA, "document.json"},
	{regexp.MustCompile(`(?m)^\s*schema +1\.`), engines.OpenFGA, "document.fga"},
	{regexp.MustCompile(`(?m)^\s*(definition|caveat) `), engines.SpiceDB, "document.zed"},
}

// kindOf returns the engine of a document, and a name that its reader expects. Patterns decide, and
// not a parser, because the text may be incomplete.
func kindOf(text string) (engines.Engine, string) {
	for _, k := range kinds {
		if k.has.MatchString(text) {
			return k.engine, k.name
		}
	}
	return engines.Stonetown, "document.test.yaml"
}

// run validates the types and the relations, and runs the tests.
func (a *Answer) run(ctx context.Context, data *importer.Data) error {
	result, err := importer.Validate(ctx, data)
	if err != nil {
		return err
	}
	for _, t := range data.Types {
		a.Types = append(a.Types, engine.TypeDocumentOf(t))
	}
	a.Relations = len(data.Relations)
	for _, f := range data.Report {
		a.Findings = append(a.Findings, Finding{f.At.Line, f.Kind, f.Message})
	}
	for _, tested := range data.Assertions {
		a.Tests = append(a.Tests, Test{Line: tested.At.Line, Name: tested.Name, Question: tested.Question()})
	}
	for _, d := range result.Differences {
		a.Tests[d.Index].Want, a.Tests[d.Index].Got = d.Want, d.Got
	}
	return nil
}

// ask answers a question.
func (a *Answer) ask(ctx context.Context, world *assertions.World, q assertions.Assertion) error {
	if q.Check == nil {
		ids, err := world.List(ctx, q)
		a.IDs, a.More = ids[:min(len(ids), maxIDs)], len(ids) > maxIDs
		return err
	}
	d, tree, err := world.Explain(ctx, q, depth, relations)
	if err != nil {
		return err
	}
	decision := decisionOf(d)
	a.Decision, a.Unknown = &decision, tree == nil
	if tree == nil {
		return nil
	}
	graph, err := proofgraph.Explore(nodeOf(tree), subjectOf(engine.SubjectDocumentOf(q.Check.Subject)), decision)
	a.Graph = json.RawMessage(graph)
	return err
}

// question reads the question of a request.
func question(req Request) (q assertions.Assertion, err error) {
	for field, text := range map[string]string{
		"subject": req.Subject, "action": req.Action, "resource": req.Resource, "type": req.Type, "context": req.Context, "at": req.At,
	} {
		if len(text) > maxField {
			return q, &fieldError{field, fmt.Sprintf("longer than %d bytes", maxField)}
		}
	}
	if req.Action == "" {
		return q, &fieldError{"action", "enter an action"}
	}
	var subject tuplestore.Subject
	if req.Op != Subjects {
		s, err := notation.ReadSubject(req.Subject)
		if err != nil {
			return q, &fieldError{"subject", err.Error()}
		}
		subject = tuplestore.Subject(s)
	}
	var resource tuplestore.Object
	if req.Op != Resources {
		r, err := notation.ReadRef(req.Resource)
		if err != nil {
			return q, &fieldError{"resource", err.Error()}
		}
		resource = tuplestore.Object{Type: r.Type, ID: r.ExternalID}
	}
	if req.Op != Check && req.Type == "" {
		return q, &fieldError{"type", "enter a type"}
	}
	switch req.Op {
	case Resources:
		q.Resources = &assertions.Resources{Subject: subject, Action: req.Action, Type: req.Type}
	case Subjects:
		q.Subjects = &assertions.Subjects{Resource: resource, Action: req.Action}
		q.Subjects.Type, q.Subjects.Relation, _ = strings.Cut(req.Type, "#")
	default:
		q.Check = &assertions.Check{Subject: subject, Action: req.Action, Resource: resource}
	}
	if strings.TrimSpace(req.Context) != "" {
		if json.Unmarshal([]byte(req.Context), &q.Context) != nil || q.Context == nil {
			return q, &fieldError{"context", `values for conditions are a JSON object, such as {"ip": "192.0.2.7"}`}
		}
	}
	if req.At != "" {
		if q.Instant, err = time.Parse(time.RFC3339, req.At); err != nil {
			return q, &fieldError{"at", "a time is written as 2026-12-01T09:00:00Z"}
		}
	}
	return q, nil
}

// decisionOf represents a decision.
func decisionOf(d engine.Decision) proofgraph.Decision {
	out := proofgraph.Decision{Allowed: d.Allowed, Reasons: reasonsOf(d.Reasons)}
	if d.Denial == nil {
		return out
	}
	out.Denial = &proofgraph.Denial{Truncated: d.Denial.Truncated}
	for _, way := range d.Denial.Ways {
		var w proofgraph.Way
		for _, r := range way.Relations {
			item := proofgraph.Missing{
				Resource: refOf(r.Object), Relation: r.Relation, Subject: subjectOf(engine.SubjectDocumentOf(r.Subject)), State: string(r.State),
			}
			item.ExpiresAt, item.Condition = termsOf(r.Qualifier)
			w.Relations = append(w.Relations, item)
		}
		for _, x := range way.Exclusions {
			w.Exclusions = append(w.Exclusions, proofgraph.Exclusion{Resource: refOf(x.Node.Object), Relation: x.Node.Relation, Reasons: reasonsOf(x.Reasons)})
		}
		out.Denial.Ways = append(out.Denial.Ways, w)
	}
	return out
}

func reasonsOf(list []engine.Reason) (out []proofgraph.Reason) {
	for _, r := range list {
		out = append(out, proofgraph.Reason{Via: r.Via, Rewrite: r.Rewrite, Text: r.Text})
	}
	return out
}

// nodeOf represents a part of an expansion.
func nodeOf(n *engine.ExpansionNode) *proofgraph.Node {
	out := &proofgraph.Node{
		Kind: string(n.Kind), Resource: refOf(n.Resource), Relation: n.Relation, Tupleset: n.Tupleset, Cut: string(n.Cut),
		Subjects: factsOf(n.Subjects), Links: factsOf(n.Links),
	}
	if n.All {
		out.Mode = "all"
	}
	if n.Next != nil {
		out.Next = cmp.Or(out.Cut, string(engine.CutLimit)) // there is no next page: a larger document is not for a picture
	}
	for _, c := range n.Children {
		out.Children = append(out.Children, nodeOf(c))
	}
	return out
}

func factsOf(facts []tuplestore.Fact) (out []proofgraph.Fact) {
	for _, f := range facts {
		fact := proofgraph.Fact{Subject: subjectOf(engine.SubjectDocumentOf(f.Subject))}
		fact.ExpiresAt, fact.Condition = termsOf(f.Qualifier)
		out = append(out, fact)
	}
	return out
}

func termsOf(q tuplestore.Qualifier) (expiresAt string, c *proofgraph.Condition) {
	if q.ExpiresAt != 0 {
		expiresAt = time.UnixMicro(q.ExpiresAt).UTC().Format(time.RFC3339)
	}
	if q.Condition != "" {
		c = &proofgraph.Condition{Name: q.Condition}
	}
	return expiresAt, c
}

func refOf(o tuplestore.Object) notation.Ref { return notation.Ref{Type: o.Type, ExternalID: o.ID} }

func subjectOf(s engine.SubjectDocument) notation.Subject {
	return notation.Subject{Type: s.Type, ID: s.ID, Relation: s.Relation}
}
