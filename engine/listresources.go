package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// ListResourcesRequest asks which resources of a type a subject may do
// something to.
type ListResourcesRequest struct {
	Subject tuplestore.Subject
	Type    string
	Action  string // mapped to a relation as for a check
	// Context and Contextual are as for a check.
	Context     map[string]any
	Contextual  []WriteOp
	Consistency Consistency
	// After leaves out IDs up to this one, in bytewise order.
	After string
	// Limit ends the list after so many; 0: not at all.
	Limit int
}

// ResourceList is the answer to a [ListResourcesRequest].
type ResourceList struct {
	// IDs are in bytewise order.
	IDs   []string
	Token string // names the revision that the list reflects
}

// ListResources lists registered resources. What it lists is what a check of
// each would allow at the same revision; nothing is left out. Errors are those
// of [Engine.Check], [*UnknownTypeError], [*UndefinedRelationError], and
// [*ConditionError] or [*NegativeCycleError] if it is undecided whether some
// resource belongs to the list.
func (e *Engine) ListResources(ctx context.Context, tenantID string, req ListResourcesRequest) (answer *ResourceList, err error) {
	ctx, span := tracing.Start(ctx, "engine.list_resources")
	err = e.attempt(ctx, tenantID, func(l limits) error {
		answer, err = e.listResourcesWithin(ctx, tenantID, &req, l)
		return err
	})
	span.End(err)
	return answer, err
}

func (e *Engine) listResourcesWithin(ctx context.Context, tenantID string, req *ListResourcesRequest, l limits) (*ResourceList, error) {
	v, err := e.reverseView(ctx, tenantID, req.Consistency, l)
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	defer v.leave()
	ids, err := v.listResources(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	return &ResourceList{IDs: ids, Token: v.at.token}, nil
}

// reverseView is a view of a graph that can be traversed in reverse, from subjects.
func (e *Engine) reverseView(ctx context.Context, tenantID string, c Consistency, l limits) (readView, error) {
	for {
		v, err := e.readView(ctx, tenantID, c, l)
		if err != nil || v.graph.back != nil {
			return v, err
		}
		if v.reader != nil {
			v.graph.indexBackward()
			return v, nil
		}
		v.leave()
		e.tenant(tenantID).indexBackward()
	}
}

func (t *tenant) indexBackward() {
	t.mu.Lock()
	if t.graph != nil {
		t.graph.indexBackward()
	}
	t.mu.Unlock()
	t.account()
}

func (v *readView) listResources(ctx context.Context, req *ListResourcesRequest) ([]string, error) {
	subject, err := checkedSubject(v.at.compiled, req.Subject)
	if err != nil {
		return nil, err
	}
	target := resolve(v.at.compiled, req.Type, req.Action)
	if target.err != nil {
		return nil, target.err
	}
	if err := v.bring(req.Contextual); err != nil {
		return nil, err
	}
	e := v.evaluation(ctx, subject, req.Context)
	defer e.release()
	found, err := v.candidates(ctx, e, subject, req.Type, target.rule)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(c candidate) bool { return c.id <= req.After })
	sortCandidates(found)

	var ids []string
	for len(found) > 0 && (req.Limit == 0 || len(ids) < req.Limit) {
		chunk := found[:min(verifiedAtOnce, len(found))]
		found = found[len(chunk):]
		if err := v.verify(e, chunk, target.rule); err != nil {
			return nil, err
		}
		for _, c := range chunk {
			if c.sure {
				ids = append(ids, c.id)
			}
		}
	}
	if req.Limit > 0 && len(ids) > req.Limit {
		ids = ids[:req.Limit]
	}
	return ids, nil
}

// candidate is an object that may belong to a list.
type candidate struct {
	object objectID
	id     string
	sure   bool
}

func sortCandidates(list []candidate) {
	slices.SortFunc(list, func(a, b candidate) int { return strings.Compare(a.id, b.id) })
}

// verifiedAtOnce is how many candidates are checked in one go: many, since cold
// each go costs some reads, but not all when only a page is wanted.
const verifiedAtOnce = 1000

// verify checks the candidates that are not sure, and makes them so if they are
// allowed.
func (v *readView) verify(e *evaluation, chunk []candidate, rule int32) error {
	var roots []asked
	e.begin()
	for i, c := range chunk {
		if c.sure {
			continue
		}
		object, ok := v.object(e, e.object(c.object))
		if !ok {
			continue
		}
		if e.searchable() {
			allowed, err := e.reaches(object, rule)
			if err == nil {
				chunk[i].sure = allowed
				continue
			}
			if !errors.Is(err, errNotReachability) {
				return err
			}
		}
		roots = append(roots, asked{query: i, object: object, rule: rule, goal: e.ask(object, rule, certain)})
	}
	if len(roots) == 0 {
		return nil
	}
	if err := e.run(); err != nil {
		return err
	}
	if e.undecided {
		if err := e.rerun(roots); err != nil {
			return err
		}
	}
	for _, root := range roots {
		if !e.isPresent(root.object) {
			continue
		}
		allowed, err := e.answer(root)
		if err != nil {
			return err
		}
		chunk[root.query].sure = allowed
	}
	return nil
}

// candidates are the resources of the type that the subject might be allowed.
func (v *readView) candidates(ctx context.Context, e *evaluation, subject tuplestore.Subject, typ string, rule int32) ([]candidate, error) {
	target := typeRelation{typeID(v.graph.types.numbers[typ]), v.program.rules[rule].relation}
	s := reverse{readView: v, e: e, inverse: v.program.inverse(), named: map[objectID]bool{}}
	s.towards = s.inverse.towards(target)
	if err := s.run(ctx, subject); err != nil {
		return nil, err
	}
	var list []candidate
	for _, set := range s.sets {
		if set.relation == target.relation && e.key(set.object).typ == target.typ {
			list = append(list, candidate{set.object, e.key(set.object).id, set.sure})
		}
	}
	return list, nil
}
