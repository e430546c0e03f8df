package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Verdict is the answer to a [Question], the same for all ways to ask it.
type Verdict string

const (
	Allowed   Verdict = "allowed"
	Denied    Verdict = "denied"
	NotFound  Verdict = "resource not found"
	Undefined Verdict = "no such type or action"
	Invalid   Verdict = "no such subject"
	Undecided Verdict = "undecided"
	Cyclic    Verdict = "depends on its own negation"
)

// Way is one way to ask a question. ok is false if the way cannot ask it.
type Way func(ctx context.Context, q Question) (answer Verdict, ok bool, err error)

// VerdictOf returns the verdict of an engine's decision or error.
func VerdictOf(allowed bool, err error) (Verdict, error) {
	var (
		missing   *engine.ResourceNotFoundError
		typ       *engine.UnknownTypeError
		relation  *engine.UndefinedRelationError
		subject   *engine.InvalidSubjectError
		condition *engine.ConditionError
		cycle     *engine.NegativeCycleError
	)
	switch {
	case errors.As(err, &missing):
		return NotFound, nil
	case errors.As(err, &typ), errors.As(err, &relation):
		return Undefined, nil
	case errors.As(err, &subject):
		return Invalid, nil
	case errors.As(err, &condition):
		return Undecided, nil
	case errors.As(err, &cycle):
		return Cyclic, nil
	case err != nil:
		return "", err
	case allowed:
		return Allowed, nil
	}
	return Denied, nil
}

// Ways returns all ways in which an engine answers.
func Ways(e *engine.Engine, tenant string) map[string]Way {
	return waysOf(e, tenant, engine.Consistency{})
}

func waysOf(e *engine.Engine, tenant string, c engine.Consistency) map[string]Way {
	w := ways{e, tenant, c}
	return map[string]Way{
		"check": w.check, "batch": w.batch, "list-resources": w.listResources,
		"list-subjects": w.listSubjects, "expand": w.expand, "expand-in-pages": w.expandInPages,
		"batch-of-several": w.several, "ids/list-resources": w.amongResources, "ids/list-subjects": w.amongSubjects, "list-actions": w.listActions,
		"list-proofs": w.listProofs,
	}
}

type ways struct {
	engine      *engine.Engine
	tenant      string
	consistency engine.Consistency
}

func (w ways) request(q Question, queries ...engine.Query) engine.CheckRequest {
	return engine.CheckRequest{Subject: q.Subject, Queries: queries, Context: q.Context, Contextual: q.Contextual, Consistency: w.consistency}
}

func (w ways) check(ctx context.Context, q Question) (Verdict, bool, error) {
	answer, err := w.engine.Check(ctx, w.tenant, w.request(q, engine.Query{Resource: q.Resource, Action: q.Action}))
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, true, err
	}
	v, err := VerdictOf(answer.Decisions[0].Allowed, answer.Decisions[0].Err)
	return v, true, err
}

// batch asks the question in a batch with others, with reasons.
func (w ways) batch(ctx context.Context, q Question) (Verdict, bool, error) {
	query := engine.Query{Resource: q.Resource, Action: q.Action}
	other := engine.Query{Resource: tuplestore.Object{Type: q.Resource.Type, ID: "other"}, Action: q.Action}
	req := w.request(q, other, query, engine.Query{Action: "none"}, query)
	req.Reasons = true
	answer, err := w.engine.Check(ctx, w.tenant, req)
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, true, err
	}
	one, two := answer.Decisions[1], answer.Decisions[3]
	if one.Allowed != two.Allowed || (len(one.Reasons) == 0) == one.Allowed {
		return "", true, fmt.Errorf("answers of one batch differ, or lack reasons: %v and %v", one, two)
	}
	v, err := VerdictOf(one.Allowed, one.Err)
	return v, true, err
}

// several asks the question in a batch about several subjects.
func (w ways) several(ctx context.Context, q Question) (Verdict, bool, error) {
	query := engine.Query{Resource: q.Resource, Action: q.Action, Subject: &q.Subject}
	other := query
	other.Subject = &tuplestore.Subject{Type: schema.UserType, ID: "other"}
	req := w.request(q, other, query, other, query)
	req.Subject = tuplestore.Subject{}
	answer, err := w.engine.Check(ctx, w.tenant, req)
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, true, err
	}
	one, two := answer.Decisions[1], answer.Decisions[3]
	if one.Allowed != two.Allowed {
		return "", true, fmt.Errorf("answers of one batch differ: %v and %v", one, two)
	}
	v, err := VerdictOf(one.Allowed, one.Err)
	return v, true, err
}

// amongResources reports whether the resource is in a list of some, by ID.
func (w ways) amongResources(ctx context.Context, q Question) (Verdict, bool, error) {
	list, err := w.engine.ListAllowed(ctx, w.tenant, engine.ListAllowedRequest{
		Subject: q.Subject, Queries: []engine.ResourceQuery{{Type: q.Resource.Type, Action: q.Action}},
		Filter: engine.ResourceFilter{IDs: []string{"none", q.Resource.ID}}, Context: q.Context, Contextual: q.Contextual, Consistency: w.consistency,
	})
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, true, err
	}
	return listed(list.Len() == 1), true, nil
}

// amongSubjects reports whether the subject is in a list of some, by ID.
func (w ways) amongSubjects(ctx context.Context, q Question) (Verdict, bool, error) {
	if q.Subject.Type == schema.GroupType && q.Subject.ID == tuplestore.Wildcard {
		return "", false, nil // a list of groups is one of their members
	}
	list, err := w.engine.ListSubjects(ctx, w.tenant, engine.ListSubjectsRequest{
		Resource: q.Resource, Action: q.Action, SubjectType: q.Subject.Type, SubjectRelation: q.Subject.Relation,
		IDs: []string{q.Subject.ID}, Context: q.Context, Contextual: q.Contextual, Consistency: w.consistency,
	})
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, true, err
	}
	return listed(len(list.Entries) == 1), true, nil
}

// listActions reports whether the action is in the list.
func (w ways) listActions(ctx context.Context, q Question) (Verdict, bool, error) {
	list, err := w.engine.ListActions(ctx, w.tenant, engine.ListActionsRequest{
		Subject: q.Subject, Resource: q.Resource, Context: q.Context, Contextual: q.Contextual, Consistency: w.consistency,
	})
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, v != Undecided && v != Cyclic, err // the cause may be another action
	}
	return listed(slices.Contains(list.Actions, q.Action)), true, nil
}

// listProofs reports whether the check has a proof.
func (w ways) listProofs(ctx context.Context, q Question) (Verdict, bool, error) {
	list, err := w.engine.ListProofs(ctx, w.tenant, engine.ListProofsRequest{
		Subject: q.Subject, Resource: q.Resource, Action: q.Action, Context: q.Context, Contextual: q.Contextual, Limit: 1, Consistency: w.consistency,
	})
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, true, err
	}
	return listed(len(list.Proofs) == 1), true, nil
}

// listed returns the verdict of a list.
func listed(allowed bool) Verdict {
	if allowed {
		return Allowed
	}
	return Denied
}

// listResources reports whether the resource is in the list. A list does not distinguish
// resources that do not exist.
func (w ways) listResources(ctx context.Context, q Question) (Verdict, bool, error) {
	list, err := w.engine.ListResources(ctx, w.tenant, engine.ListResourcesRequest{
		Subject: q.Subject, Type: q.Resource.Type, Action: q.Action, Context: q.Context, Contextual: q.Contextual, Consistency: w.consistency,
	})
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, v != Undecided && v != Cyclic, err // the cause may be another resource
	}
	if slices.Contains(list.IDs, q.Resource.ID) {
		return Allowed, true, nil
	}
	return Denied, true, nil
}

func (w ways) listSubjects(ctx context.Context, q Question) (Verdict, bool, error) {
	s := q.Subject
	if s.Type == schema.GroupType && s.Relation == "" {
		if s.ID == tuplestore.Wildcard {
			return "", false, nil // a list of groups is one of their members
		}
		s.Relation = schema.GroupMember
	}
	list, err := w.engine.ListSubjects(ctx, w.tenant, engine.ListSubjectsRequest{
		Resource: q.Resource, Action: q.Action, SubjectType: s.Type, SubjectRelation: s.Relation,
		Context: q.Context, Contextual: q.Contextual, Consistency: w.consistency,
	})
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, v != Undecided && v != Cyclic, err // the cause may be another subject
	}
	everyone := false
	for _, entry := range list.Entries {
		switch {
		case entry.Subject.ID == tuplestore.Wildcard:
			everyone = true
		case entry.Subject == s && entry.Excluded:
			return Denied, true, nil
		case entry.Subject == s:
			return Allowed, true, nil
		}
	}
	if everyone {
		return Allowed, true, nil
	}
	return Denied, true, nil
}

// expand evaluates the tree for the subject. Conditions are not evaluated in a tree, so a
// tree with conditions cannot answer.
func (w ways) expand(ctx context.Context, q Question) (Verdict, bool, error) {
	tree, err := w.engine.Expand(ctx, w.tenant, w.expansionOf(q))
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, true, err
	}
	return evaluateTree(q, tree.Root)
}

func (w ways) expansionOf(q Question) engine.ExpandRequest {
	return engine.ExpandRequest{Resource: q.Resource, Action: q.Action, Depth: 100, Contextual: q.Contextual, Consistency: w.consistency}
}

// maxPaged is the number of nodes of the largest tree that is read in pages. Some random worlds have
// trees of millions of nodes, each of which would take a request.
const maxPaged = 1000

// expandInPages evaluates the tree that pages of one or two relations make up.
func (w ways) expandInPages(ctx context.Context, q Question) (Verdict, bool, error) {
	req := w.expansionOf(q)
	whole, err := w.engine.Expand(ctx, w.tenant, req)
	if err != nil {
		v, err := VerdictOf(false, err)
		return v, true, err
	}
	if sizeOfTree(whole.Root)[0] > maxPaged {
		return "", false, nil
	}
	req.Consistency = req.Consistency.Following(whole.Token)
	req.Limit = 1 + len(q.Resource.ID)%2
	tree, err := w.engine.Expand(ctx, w.tenant, req)
	if err != nil {
		return "", true, err
	}
	if err := w.completeTree(ctx, req, tree.Root); err != nil {
		return "", true, err
	}
	if got, want := sizeOfTree(tree.Root), sizeOfTree(whole.Root); got != want {
		return "", true, fmt.Errorf("pages have %v nodes, subjects and links, the tree has %v", got, want)
	}
	return evaluateTree(q, tree.Root)
}

// completeTree replaces what is missing in a tree by its next pages.
func (w ways) completeTree(ctx context.Context, req engine.ExpandRequest, n *engine.ExpansionNode) error {
	for n.Next != nil {
		req.From = n.Next
		page, err := w.engine.Expand(ctx, w.tenant, req)
		if err != nil {
			return err
		}
		more := page.Root
		if got := len(more.Subjects) + len(more.Links); got > req.Limit+len(req.Contextual) {
			return fmt.Errorf("%d relations in a page of %d", got, req.Limit)
		}
		if n.Cut == engine.CutLimit {
			*n = *more
			continue
		}
		n.Subjects, n.Links = append(n.Subjects, more.Subjects...), append(n.Links, more.Links...)
		n.Children, n.Next = append(n.Children, more.Children...), more.Next
	}
	for _, c := range n.Children {
		if err := w.completeTree(ctx, req, c); err != nil {
			return err
		}
	}
	return nil
}

// sizeOfTree counts nodes, those that are cut, subjects and links.
func sizeOfTree(n *engine.ExpansionNode) (size [4]int) {
	size = [4]int{1, 0, len(n.Subjects), len(n.Links)}
	if n.Cut != "" {
		size[1] = 1
	}
	for _, c := range n.Children {
		for i, more := range sizeOfTree(c) {
			size[i] += more
		}
	}
	return size
}

// evaluateTree decides whether the subject of a question is in the set of a tree.
func evaluateTree(q Question, root *engine.ExpansionNode) (Verdict, bool, error) {
	s := q.Subject
	if s.Type == schema.GroupType && s.Relation == "" && s.ID != tuplestore.Wildcard {
		s.Relation = schema.GroupMember
	}
	t := treeEvaluation{subject: s}
	switch t.relation(root) {
	case yes:
		return Allowed, !t.conditional, nil
	case no:
		return Denied, !t.conditional, nil
	default:
		return Cyclic, !t.conditional, nil
	}
}

// treeEvaluation decides whether a subject is in the set that a tree describes.
type treeEvaluation struct {
	subject     tuplestore.Subject
	conditional bool
	// above are the relations from the root down to here.
	above []ancestor
	// negations counts the exclusions whose subtracted side this is in.
	negations int
}

type ancestor struct {
	node      tuplestore.Node
	negations int
}

// truth is an answer, ordered: no, unknown, yes.
type truth int

const (
	no      truth = -1
	unknown truth = 0
	yes     truth = 1
)

// relation is for a node that is the whole of a relation, a userset that contains itself.
// An ancestor adds nothing to itself; but if it is subtracted between, the answer is
// unknown.
func (t *treeEvaluation) relation(n *engine.ExpansionNode) truth {
	node := tuplestore.Node{Object: n.Resource, Relation: n.Relation}
	if n.Cut != "" {
		for _, a := range t.above {
			if a.node == node && a.negations < t.negations {
				return unknown
			}
		}
		return no
	}
	if self := (tuplestore.Subject{Type: n.Resource.Type, ID: n.Resource.ID, Relation: n.Relation}); self == t.subject {
		return yes
	}
	t.above = append(t.above, ancestor{node, t.negations})
	defer func() { t.above = t.above[:len(t.above)-1] }()
	return t.rewrite(n)
}

func (t *treeEvaluation) rewrite(n *engine.ExpansionNode) truth {
	switch n.Kind {
	case schema.This:
		for _, f := range n.Subjects {
			t.conditional = t.conditional || f.Condition != ""
			everyone := f.Subject.ID == tuplestore.Wildcard && f.Subject.Type == t.subject.Type && !t.subject.IsUserset()
			if f.Subject == t.subject || everyone {
				return yes
			}
		}
		return anyOf(n.Children, t.relation)
	case schema.Self:
		if len(n.Subjects) == 1 && n.Subjects[0].Subject == t.subject {
			return yes
		}
		return no
	case schema.Computed, schema.TupleToUserset:
		t.conditional = t.conditional || slices.ContainsFunc(n.Links, func(f tuplestore.Fact) bool { return f.Condition != "" })
		if n.All {
			if len(n.Children) == 0 {
				return no
			}
			return allOf(n.Children, t.relation)
		}
		return anyOf(n.Children, t.relation)
	case schema.Union:
		return anyOf(n.Children, t.rewrite)
	case schema.Intersection:
		return allOf(n.Children, t.rewrite)
	default:
		base := t.rewrite(n.Children[0])
		t.negations++
		subtracted := t.rewrite(n.Children[1])
		t.negations--
		return min(base, -subtracted)
	}
}

func anyOf(children []*engine.ExpansionNode, of func(*engine.ExpansionNode) truth) truth {
	best := no
	for _, c := range children {
		best = max(best, of(c))
	}
	return best
}

func allOf(children []*engine.ExpansionNode, of func(*engine.ExpansionNode) truth) truth {
	worst := yes
	for _, c := range children {
		worst = min(worst, of(c))
	}
	return worst
}
