package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/traversal"
	"stonetown/engine/internal/work"
	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// ListSubjectsRequest asks for the subjects of a kind that may perform an action on a
// resource.
type ListSubjectsRequest struct {
	Resource tuplestore.Object
	Action   string // mapped to a relation as for a check
	// SubjectType and SubjectRelation are the kind: objects of a type or, with a
	// relation, usersets. The type group without a relation means its members.
	SubjectType, SubjectRelation string
	// IDPrefix admits only subjects whose IDs begin with it, and the wildcard.
	IDPrefix string
	// IDs admits only subjects with these IDs, unless it is nil. The list then has each of
	// them that a check allows, and the wildcard only if it is among them.
	IDs []string
	// Context and Contextual are as for a check.
	Context     map[string]any
	Contextual  []WriteOp
	Consistency Consistency
	// After omits entries up to that of this subject ID.
	After string
	// Limit is the maximum number of entries; 0: unlimited.
	Limit int
}

// SubjectList is the answer to a [ListSubjectsRequest].
type SubjectList struct {
	// Entries are in bytewise order of the subject's ID, the wildcard first.
	Entries []SubjectEntry
	Token   string // names the revision that the list reflects
}

// SubjectEntry is one subject of a list. The wildcard represents all subjects of the type
// that no entry names.
type SubjectEntry struct {
	Subject tuplestore.Subject
	// Excluded: the wildcard is listed, but not for this subject.
	Excluded bool
}

// ListSubjects lists the subjects that a check of each would allow at the same revision.
// The list is complete. Errors are those of [Engine.Check], [*UnknownTypeError],
// [*UndefinedRelationError], [*ResourceNotFoundError], and [*ConditionError] or
// [*NegativeCycleError] if a subject cannot be decided.
func (e *Engine) ListSubjects(ctx context.Context, tenantID string, req ListSubjectsRequest) (answer *SubjectList, err error) {
	ctx, span := tracing.Start(ctx, "engine.list_subjects")
	err = e.attempt(ctx, tenantID, func(l work.Limits) error {
		answer, err = e.listSubjectsWithin(ctx, tenantID, &req, l)
		return err
	})
	span.End(err)
	return answer, err
}

func (e *Engine) listSubjectsWithin(ctx context.Context, tenantID string, req *ListSubjectsRequest, l work.Limits) (*SubjectList, error) {
	v, err := e.readView(ctx, tenantID, req.Consistency, l)
	if err != nil {
		return nil, fmt.Errorf("list subjects: %w", err)
	}
	defer v.leave()
	entries, err := v.listSubjects(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("list subjects: %w", err)
	}
	return &SubjectList{Entries: entries, Token: v.at.token}, nil
}

func (v *readView) listSubjects(ctx context.Context, req *ListSubjectsRequest) ([]SubjectEntry, error) {
	// The empty ID matches no tuple, so it represents every subject of the type that no
	// tuple names.
	other, err := checkedSubject(v.at.compiled, tuplestore.Subject{Type: req.SubjectType, ID: "?", Relation: req.SubjectRelation})
	if err != nil {
		return nil, err
	}
	other.ID = ""
	target := resolve(v.at.compiled, req.Resource.Type, req.Action)
	if target.err != nil {
		return nil, target.err
	}
	if req.IDs != nil {
		return v.checkSubjects(ctx, req, other)
	}
	if err := v.addContextual(req.Contextual); err != nil {
		return nil, err
	}
	v.begin(ctx, other, req.Context)
	resource, ok := v.view.Resource(req.Resource)
	if !ok {
		return nil, &ResourceNotFoundError{Resource: req.Resource}
	}
	var forward traversal.Forward
	registered, err := forward.Run(ctx, &v.view, resource, target.rule, other)
	if err != nil {
		return nil, err
	}
	if !registered {
		return nil, &ResourceNotFoundError{Resource: req.Resource}
	}
	v.eval.GraphIsComplete() // the traversal has read all tuples that the answer depends on

	question := eval.Question{Object: resource, Rule: target.rule}
	var entries []SubjectEntry
	full := func() bool { return req.Limit > 0 && len(entries) == req.Limit }
	everyone := false
	if forward.Everyone {
		if everyone, err = v.evaluateFor(ctx, other, question); err != nil {
			return nil, err
		}
		if everyone && req.After == "" {
			all := other
			all.ID = tuplestore.Wildcard
			entries = append(entries, SubjectEntry{Subject: all})
		}
	}
	found := make([]candidate, 0, len(forward.Found))
	for object, sure := range forward.Found {
		if id := v.view.Key(object).ID; req.isAfter(id) && strings.HasPrefix(id, req.IDPrefix) {
			found = append(found, candidate{object, id, sure})
		}
	}
	sortCandidates(found)
	for _, c := range found {
		if full() {
			break
		}
		s := other
		s.ID = c.id
		allowed := c.sure
		if !allowed {
			if allowed, err = v.evaluateFor(ctx, s, question); err != nil {
				return nil, err
			}
		}
		if allowed || everyone {
			entries = append(entries, SubjectEntry{Subject: s, Excluded: !allowed})
		}
	}
	return entries, nil
}

// isAfter reports whether the entry of a subject other than the wildcard is still to be
// listed.
func (r *ListSubjectsRequest) isAfter(id string) bool {
	return r.After == "" || r.After == tuplestore.Wildcard || id > r.After
}

// checkSubjects makes a list of the subjects that the request names by ID, of the kind of a
// subject.
func (v *readView) checkSubjects(ctx context.Context, req *ListSubjectsRequest, kind tuplestore.Subject) ([]SubjectEntry, error) {
	var ids []string
	for _, id := range slices.Compact(slices.Sorted(slices.Values(req.IDs))) {
		switch {
		case !strings.HasPrefix(id, req.IDPrefix):
		case id == tuplestore.Wildcard && req.After == "":
			ids = slices.Insert(ids, 0, id)
		case id != tuplestore.Wildcard && req.isAfter(id):
			ids = append(ids, id)
		}
	}
	checks := CheckRequest{Context: req.Context, Contextual: req.Contextual}
	for _, id := range ids {
		s := kind
		s.ID = id
		checks.Queries = append(checks.Queries, Query{Resource: req.Resource, Action: req.Action, Subject: &s})
	}
	c := check{readView: *v, req: &checks, response: &CheckResponse{Decisions: make([]Decision, len(ids))}}
	if err := c.answerAboutSeveral(ctx); err != nil {
		return nil, err
	}
	var entries []SubjectEntry
	for i, d := range c.response.Decisions {
		if d.Err != nil {
			return nil, d.Err
		}
		if d.Allowed && (req.Limit == 0 || len(entries) < req.Limit) {
			entries = append(entries, SubjectEntry{Subject: *checks.Queries[i].Subject})
		}
	}
	return entries, nil
}

// evaluateFor answers a question for another subject.
func (v *readView) evaluateFor(ctx context.Context, s tuplestore.Subject, q eval.Question) (bool, error) {
	v.eval.SetSubject(v.view.Subject(s))
	v.eval.Ask(&q)
	questions := []eval.Question{q}
	if err := v.eval.Run(ctx, questions); err != nil {
		return false, err
	}
	return v.eval.Answer(questions[0])
}
