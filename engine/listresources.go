package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/traversal"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// ListResourcesRequest asks for the resources of a type on which a subject may perform an
// action.
type ListResourcesRequest struct {
	Subject tuplestore.Subject
	Type    string
	Action  string // mapped to a relation as for a check
	// Context and Contextual are as for a check.
	Context     map[string]any
	Contextual  []WriteOp
	Consistency Consistency
	// After omits IDs up to this one, in bytewise order.
	After string
	// Limit is the maximum number of IDs; 0: unlimited.
	Limit int
}

// ResourceList is the answer to a [ListResourcesRequest].
type ResourceList struct {
	// IDs are in bytewise order.
	IDs   []string
	Token string // names the revision that the list reflects
}

// ListResources lists the registered resources that a check of each would allow at the same
// revision. The list is complete. Errors are those of [Engine.Check], [*UnknownTypeError],
// [*UndefinedRelationError], and [*ConditionError] or [*NegativeCycleError] if a resource
// cannot be decided.
func (e *Engine) ListResources(ctx context.Context, tenantID string, req ListResourcesRequest) (answer *ResourceList, err error) {
	ctx, span := tracing.Start(ctx, "engine.list_resources")
	err = e.attempt(ctx, tenantID, func(l work.Limits) error {
		answer, err = e.listResourcesWithin(ctx, tenantID, &req, l)
		return err
	})
	span.End(err)
	return answer, err
}

func (e *Engine) listResourcesWithin(ctx context.Context, tenantID string, req *ListResourcesRequest, l work.Limits) (*ResourceList, error) {
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

// reverseView returns a view of a graph that can be traversed in reverse, from subjects.
func (e *Engine) reverseView(ctx context.Context, tenantID string, c Consistency, l work.Limits) (readView, error) {
	for {
		v, err := e.readView(ctx, tenantID, c, l)
		if err != nil || v.view.Graph.HasBackward() {
			return v, err
		}
		if v.view.Reader != nil {
			v.view.Graph.IndexBackward()
			return v, nil
		}
		v.leave()
		e.tenant(tenantID).indexBackward()
	}
}

// indexBackward builds the index of the graph in parts, so that other requests need not wait.
func (t *tenant) indexBackward() {
	for done := false; !done; {
		t.mu.Lock()
		done = t.graph == nil || t.graph.IndexMoreBackward()
		t.mu.Unlock()
	}
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
	if err := v.addContextual(req.Contextual); err != nil {
		return nil, err
	}
	s := v.begin(ctx, subject, req.Context)
	return v.allowedIDs(ctx, s, req.Type, target.rule, ResourceFilter{}, req.After, req.Limit, []string{})
}

// ResourceFilter restricts a list of resources. Its zero value admits all.
type ResourceFilter struct {
	IDPrefix string
	// IDs admits only these IDs, unless it is nil. The list is then made by checks of them.
	IDs []string
}

// allowedIDs lists the resources of a type for which a rule's set contains the subject. The list is in
// the memory of ids if that is enough.
func (v *readView) allowedIDs(ctx context.Context, s view.Subject, typ string, rule int32, f ResourceFilter, after string, limit int, ids []string) ([]string, error) {
	l := v.engine.takeListing(v.limits.Heavy)
	defer v.engine.release(l, v.limits.Heavy)
	if f.IDs != nil {
		l.candidates = v.named(typ, f.IDs)
	} else if err := l.reach(ctx, v, s, typ, rule); err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(l.candidates, func(c candidate) bool { return c.id <= after || !strings.HasPrefix(c.id, f.IDPrefix) })
	sortCandidates(found)

	expected := len(found)
	if limit > 0 {
		expected = min(limit, expected)
	}
	ids = slices.Grow(ids[:0], expected)
	for len(found) > 0 && (limit == 0 || len(ids) < limit) {
		chunk := found[:min(verifiedAtOnce, len(found))]
		found = found[len(chunk):]
		if err := v.verify(ctx, s, chunk, rule); err != nil {
			return nil, err
		}
		for _, c := range chunk {
			if c.sure {
				ids = append(ids, c.id)
			}
		}
	}
	if limit > 0 && len(ids) > limit {
		ids = ids[:limit]
	}
	return ids, nil
}

// named returns the resources of a type that IDs name, each once. None of them is sure.
func (v *readView) named(typ string, ids []string) []candidate {
	list := make([]candidate, 0, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if object, ok := v.view.Resource(tuplestore.Object{Type: typ, ID: id}); ok {
			list = append(list, candidate{object: object, id: id})
		}
	}
	return list
}

// candidate is an object that may belong to a list.
type candidate struct {
	object graph.ObjectID
	id     string
	sure   bool
}

func sortCandidates(list []candidate) {
	slices.SortFunc(list, func(a, b candidate) int { return strings.Compare(a.id, b.id) })
}

// verifiedAtOnce is how many candidates are checked together: many, because on a tenant that
// is not resident each time takes several reads, but not all if only a page is required.
const verifiedAtOnce = 1000

// verify checks the candidates that are not sure, and makes them sure if they are allowed.
func (v *readView) verify(ctx context.Context, s view.Subject, chunk []candidate, rule int32) error {
	var questions []eval.Question
	v.reach.Begin(&v.view, s)
	v.eval.Reset()
	tryReachability := traversal.Decides(&v.view, s)
	for i, c := range chunk {
		if c.sure {
			continue
		}
		object, ok := v.view.Resource(v.view.Object(c.object))
		if !ok {
			continue
		}
		if tryReachability {
			allowed, err := v.reach.Reaches(object, rule)
			if err == nil {
				chunk[i].sure = allowed
				continue
			}
			if !errors.Is(err, traversal.ErrNotReachability) {
				return err
			}
		}
		q := eval.Question{Query: i, Object: object, Rule: rule}
		v.eval.Ask(&q)
		questions = append(questions, q)
	}
	if len(questions) == 0 {
		return nil
	}
	if err := v.eval.Run(ctx, questions); err != nil {
		return err
	}
	for _, q := range questions {
		if !v.view.IsRegistered(q.Object) {
			continue
		}
		allowed, err := v.eval.Answer(q)
		if err != nil {
			return err
		}
		chunk[q.Query].sure = allowed
	}
	return nil
}

// listing is the memory of a list, which later lists use again: a list of 100,000 resources needs about
// 10 MB.
type listing struct {
	reverse    traversal.Reverse
	candidates []candidate
}

// lightListings are those of light attempts; those of heavy ones are in [Engine.heavyLists].
var lightListings = sync.Pool{New: func() any { return new(listing) }}

// takeListing returns memory for a list, which the caller releases.
func (e *Engine) takeListing(heavy bool) *listing {
	if !heavy {
		return lightListings.Get().(*listing)
	}
	if l, ok := e.heavyLists.take(); ok {
		return l
	}
	return new(listing)
}

// maxCandidates is the number of candidates, or of IDs, whose memory is kept for the next use.
const maxCandidates = 1 << 18

// release ends the use of the listing and of its candidates.
func (e *Engine) release(l *listing, heavy bool) {
	l.reverse.Release()
	if cap(l.candidates) > maxCandidates {
		l.candidates = nil
	}
	clear(l.candidates) // their IDs
	l.candidates = l.candidates[:0]
	if heavy {
		e.heavyLists.put(l)
	} else {
		lightListings.Put(l)
	}
}

// takeIDs returns memory for the IDs of a list, if there is some. The caller may release it.
func (e *Engine) takeIDs(heavy bool) (ids []string) {
	if heavy {
		ids, _ = e.heavyIDs.take()
	}
	return ids
}

// releaseIDs ends the use of the IDs of a heavy attempt.
func (e *Engine) releaseIDs(ids []string) {
	if cap(ids) <= maxCandidates {
		clear(ids[:cap(ids)])
		e.heavyIDs.put(ids)
	}
}

// dropListings frees the memory of heavy lists.
func (e *Engine) dropListings() {
	e.heavyLists.drop()
	e.heavyIDs.drop()
}

// reach finds the candidates of a list: the resources of the type that the subject may be allowed.
func (l *listing) reach(ctx context.Context, v *readView, s view.Subject, typ string, rule int32) error {
	target := program.TypeRelation{Type: v.view.Graph.Types.Known(typ), Relation: v.view.Program.Rules[rule].Relation}
	if err := l.reverse.Run(ctx, &v.view, s, target); err != nil {
		return err
	}
	list := slices.Grow(l.candidates[:0], len(l.reverse.Sets))
	for _, set := range l.reverse.Sets {
		if key := v.view.Key(set.Object); set.Relation == target.Relation && key.Type == target.Type {
			list = append(list, candidate{set.Object, key.ID, set.Sure})
		}
	}
	l.candidates = list
	return nil
}
