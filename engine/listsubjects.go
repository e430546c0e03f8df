package engine

import (
	"context"
	"fmt"

	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// ListSubjectsRequest asks which subjects of a kind may do something to a
// resource.
type ListSubjectsRequest struct {
	Resource tuplestore.Object
	Action   string // mapped to a relation as for a check
	// SubjectType and SubjectRelation are the kind: objects of a type or, with a
	// relation, usersets. The type group without a relation means its members.
	SubjectType, SubjectRelation string
	// Context and Contextual are as for a check.
	Context     map[string]any
	Contextual  []WriteOp
	Consistency Consistency
	// After leaves out entries up to that of this subject ID.
	After string
	// Limit ends the list after so many entries; 0: not at all.
	Limit int
}

// SubjectList is the answer to a [ListSubjectsRequest].
type SubjectList struct {
	// Entries are in bytewise order of the subject's ID, the wildcard first.
	Entries []SubjectEntry
	Token   string // names the revision that the list reflects
}

// SubjectEntry is one subject of a list. The wildcard stands for all subjects of
// the type that no entry names.
type SubjectEntry struct {
	Subject tuplestore.Subject
	// Excluded: the wildcard is listed, but not for this subject.
	Excluded bool
}

// ListSubjects lists subjects. What it lists is what a check of each would
// allow at the same revision; nothing is left out. Errors are those of
// [Engine.Check], [*UnknownTypeError], [*UndefinedRelationError],
// [*ResourceNotFoundError], and [*ConditionError] or [*NegativeCycleError] if it is
// undecided whether some subject belongs to the list.
func (e *Engine) ListSubjects(ctx context.Context, tenantID string, req ListSubjectsRequest) (answer *SubjectList, err error) {
	ctx, span := tracing.Start(ctx, "engine.list_subjects")
	err = e.attempt(ctx, tenantID, func(l limits) error {
		answer, err = e.listSubjectsWithin(ctx, tenantID, &req, l)
		return err
	})
	span.End(err)
	return answer, err
}

func (e *Engine) listSubjectsWithin(ctx context.Context, tenantID string, req *ListSubjectsRequest, l limits) (*SubjectList, error) {
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
	// Nobody has the empty ID, so a subject with it is anyone of the type whom
	// no tuple names.
	anyone, err := checkedSubject(v.at.compiled, tuplestore.Subject{Type: req.SubjectType, ID: "?", Relation: req.SubjectRelation})
	if err != nil {
		return nil, err
	}
	anyone.ID = ""
	target := resolve(v.at.compiled, req.Resource.Type, req.Action)
	if target.err != nil {
		return nil, target.err
	}
	if err := v.bring(req.Contextual); err != nil {
		return nil, err
	}
	e := v.evaluation(ctx, anyone, req.Context)
	defer e.release()
	w := forward{readView: v, e: e, seen: map[uint64]bool{}, found: map[objectID]bool{}}
	if err := w.run(ctx, req.Resource, target.rule, anyone); err != nil {
		return nil, err
	}
	e.fetch = nil // the graph has all that the resource leads to

	root := asked{object: w.root, rule: target.rule}
	var entries []SubjectEntry
	full := func() bool { return req.Limit > 0 && len(entries) == req.Limit }
	everyone := false
	if w.everyone {
		if everyone, err = e.settleFor(anyone, root); err != nil {
			return nil, err
		}
		if everyone && req.After == "" {
			all := anyone
			all.ID = tuplestore.Wildcard
			entries = append(entries, SubjectEntry{Subject: all})
		}
	}
	found := make([]candidate, 0, len(w.found))
	for object, sure := range w.found {
		if id := e.key(object).id; req.After == "" || req.After == tuplestore.Wildcard || id > req.After {
			found = append(found, candidate{object, id, sure})
		}
	}
	sortCandidates(found)
	for _, c := range found {
		if full() {
			break
		}
		s := anyone
		s.ID = c.id
		allowed := c.sure
		if !allowed {
			if allowed, err = e.settleFor(s, root); err != nil {
				return nil, err
			}
		}
		if allowed || everyone {
			entries = append(entries, SubjectEntry{Subject: s, Excluded: !allowed})
		}
	}
	return entries, nil
}

// settleFor answers one question about another subject.
func (e *evaluation) settleFor(s tuplestore.Subject, root asked) (bool, error) {
	e.about(s)
	e.begin()
	root.goal = e.ask(root.object, root.rule, certain)
	if err := e.run(); err != nil {
		return false, err
	}
	if e.undecided {
		roots := []asked{root}
		if err := e.rerun(roots); err != nil {
			return false, err
		}
		root = roots[0]
	}
	return e.answer(root)
}
