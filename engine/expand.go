package engine

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/work"
	"stonetown/internal/tracing"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// ExpandRequest asks for the derivation of the set of subjects that may perform an action.
type ExpandRequest struct {
	Resource tuplestore.Object
	Action   string // mapped to a relation as for a check
	// Depth is the number of steps to another resource or group, at least 0.
	Depth       int
	Contextual  []WriteOp // as for a check
	Consistency Consistency
	// Limit is the maximum number of stored tuples in the answer; 0: unlimited. Nodes that do
	// not fit have a Next.
	Limit int
	// From expands only the rest of a node of an earlier answer, at the same revision.
	From *ExpansionPlace
}

// Expansion is the answer to an [ExpandRequest].
type Expansion struct {
	Root  *ExpansionNode
	Token string // names the revision that the expansion reflects
}

// ExpansionNode is a part of a set of subjects, by the rewrite that gives it
// (Zanzibar, §2.4.5).
type ExpansionNode struct {
	// Kind is the rewrite. A relation of a resource is a union of its rewrites,
	// or their only one.
	Kind schema.Kind
	// Resource and Relation are the node that the set belongs to.
	Resource tuplestore.Object
	Relation string
	// Tupleset is, for tuple_to_userset, the relation that links. The set is the union of
	// the children or, with All, their intersection, which is empty without children.
	Tupleset string
	All      bool
	// Links are, for tuple_to_userset, the tuples that link.
	Links []tuplestore.Fact
	// Subjects are, for this, the tuples; a userset that is expanded is also a child. For
	// self, it is the resource itself.
	Subjects []tuplestore.Fact
	// Children are the operands; for an exclusion, the base and the subtracted side.
	Children []*ExpansionNode
	// Cut is why the node has not been expanded; empty if it has.
	Cut Cut
	// Next is where the node continues; nil: it is complete.
	Next *ExpansionPlace
}

// Cut is a reason not to expand a node.
type Cut string

const (
	CutDepth Cut = "depth" // the request's depth was reached
	CutCycle Cut = "cycle" // the node is one of its own ancestors
	CutLimit Cut = "limit" // the request's limit was reached
)

// Expand returns the derivation of the set of subjects that may perform an action, as a
// tree of rewrites and tuples. Tuples that have expired are omitted; tuples with a
// condition are shown with it. Errors are those of [Engine.Check] and [*UnknownTypeError],
// [*UndefinedRelationError], [*ResourceNotFoundError].
func (e *Engine) Expand(ctx context.Context, tenantID string, req ExpandRequest) (answer *Expansion, err error) {
	ctx, span := tracing.Start(ctx, "engine.expand")
	err = e.attempt(ctx, tenantID, func(l work.Limits) error {
		answer, err = e.expandWithin(ctx, tenantID, &req, l)
		return err
	})
	span.End(err)
	return answer, err
}

func (e *Engine) expandWithin(ctx context.Context, tenantID string, req *ExpandRequest, l work.Limits) (*Expansion, error) {
	view := e.readView
	if req.Limit > 0 {
		view = e.coldView // a page is read from the store, in its order
	}
	v, err := view(ctx, tenantID, req.Consistency, l)
	if err != nil {
		return nil, fmt.Errorf("expand: %w", err)
	}
	defer v.leave()
	root, err := v.expand(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("expand: %w", err)
	}
	return &Expansion{Root: root, Token: v.at.token}, nil
}

func (v *readView) expand(ctx context.Context, req *ExpandRequest) (*ExpansionNode, error) {
	target := resolve(v.at.compiled, req.Resource.Type, req.Action)
	if target.err != nil {
		return nil, target.err
	}
	if err := v.addContextual(req.Contextual); err != nil {
		return nil, err
	}
	v.view.Start(ctx, v.limits, v.clock, nil)
	resource, ok := v.view.Resource(req.Resource)
	if !ok {
		return nil, &ResourceNotFoundError{Resource: req.Resource}
	}
	x := expansion{readView: v, ctx: ctx, isPaged: req.Limit > 0, left: req.Limit}
	root, err := x.begin(req, &unexpanded{
		node: &ExpansionNode{}, object: resource, relation: v.view.Program.Rules[target.rule].Relation, depth: req.Depth,
	})
	if err != nil {
		return nil, err
	}
	for len(x.next) > 0 {
		level := x.next
		x.next = nil
		if err := x.read(ctx, level); err != nil {
			return nil, err
		}
		if !v.view.IsRegistered(resource) {
			return nil, &ResourceNotFoundError{Resource: req.Resource}
		}
		for _, u := range level {
			x.relation(u)
			if err := cmp.Or(x.err, v.view.Budget.Err()); err != nil {
				return nil, err
			}
		}
	}
	return root, nil
}

// expansion is the state of one request.
type expansion struct {
	*readView
	ctx  context.Context
	next []*unexpanded // the next level

	// Of an expansion in pages (expandpage.go):
	isPaged bool
	left    int             // stored tuples that the answer has room for
	above   map[uint64]bool // the ancestors of the place that is continued
	err     error
}

// unexpanded is a relation of an object that has not been expanded.
type unexpanded struct {
	node     *ExpansionNode
	object   graph.ObjectID
	relation graph.RelationID
	depth    int
	above    *unexpanded
	from     *ExpansionPlace // the rewrite to expand and its first tuple; nil: all
}

// read reads all tuples that the relations of a level depend on.
func (x *expansion) read(ctx context.Context, level []*unexpanded) error {
	if x.view.Reader == nil {
		return nil
	}
	for _, u := range level {
		if !x.isPaged {
			x.want(u.object, u.relation, map[graph.RelationID]bool{})
		}
	}
	return x.view.Reader.Read(ctx, &x.view.Budget)
}

// want adds to the next read the tuples that a relation of an object depends on, also
// through other relations of the same object.
func (x *expansion) want(id graph.ObjectID, relation graph.RelationID, seen map[graph.RelationID]bool) {
	if seen[relation] {
		return
	}
	seen[relation] = true
	definition, ok := x.definition(id, relation)
	if !ok {
		return
	}
	if len(definition.Rewrites) == 0 {
		x.view.Reader.WantAll(id, relation)
	}
	var visit func([]schema.Rewrite)
	visit = func(rewrites []schema.Rewrite) {
		for _, rw := range rewrites {
			switch rw.Kind {
			case schema.This:
				x.view.Reader.WantAll(id, relation)
			case schema.TupleToUserset:
				x.view.Reader.WantAll(id, x.number(rw.Tupleset))
			case schema.Computed:
				x.want(id, x.number(rw.Relation), seen)
			case schema.Exclusion:
				visit([]schema.Rewrite{*rw.Base, *rw.Subtract})
			default:
				visit(rw.Children)
			}
		}
	}
	visit(definition.Rewrites)
}

func (x *expansion) definition(id graph.ObjectID, relation graph.RelationID) (schema.Relation, bool) {
	return x.at.compiled.Relation(x.view.Graph.Types.Name(x.view.Type(id)), x.view.Graph.Relations.Name(relation))
}

// number returns the number of a relation of the schema.
func (x *expansion) number(relation string) graph.RelationID {
	return x.view.Graph.Relations.Known(relation)
}

// relation expands one relation of one object.
func (x *expansion) relation(u *unexpanded) {
	x.view.Budget.Step()
	n := u.node
	n.Resource, n.Relation = x.view.Object(u.object), x.view.Graph.Relations.Name(u.relation)
	n.Kind = schema.Union
	if x.isBelowItself(u) {
		n.Cut = CutCycle
		return
	}
	if u.depth < 0 {
		n.Cut = CutDepth
		return
	}
	if x.isPaged && x.left == 0 {
		n.Cut, n.Next = CutLimit, x.place(u)
		return
	}
	definition, ok := x.definition(u.object, u.relation)
	if !ok {
		return // the empty set
	}
	if u.from != nil && u.from.IsRewrite {
		x.resume(u, definition)
		return
	}
	switch rewrites := rewritesOf(definition); len(rewrites) {
	case 1:
		x.rewrite(u, n, &rewrites[0], nil)
	default:
		x.children(u, n, rewrites, nil)
	}
}

// rewritesOf returns the rewrites of a relation. One that defines none has the subjects of its
// tuples.
func rewritesOf(definition schema.Relation) []schema.Rewrite {
	if len(definition.Rewrites) == 0 {
		return []schema.Rewrite{{Kind: schema.This}}
	}
	return definition.Rewrites
}

// isBelowItself reports whether a relation of an object is one of its own ancestors.
func (x *expansion) isBelowItself(u *unexpanded) bool {
	for above := u.above; above != nil; above = above.above {
		if above.object == u.object && above.relation == u.relation {
			return true
		}
	}
	return len(x.above) > 0 && x.above[fingerprint(x.node(u))]
}

func (x *expansion) node(u *unexpanded) tuplestore.Node {
	return tuplestore.Node{Object: x.view.Object(u.object), Relation: x.view.Graph.Relations.Name(u.relation)}
}

// rewrite expands one rewrite of a relation into a node. path are the indexes that lead to it
// from the rewrites of the relation.
func (x *expansion) rewrite(u *unexpanded, n *ExpansionNode, rw *schema.Rewrite, path []int) {
	x.view.Budget.Step()
	n.Kind = rw.Kind
	switch rw.Kind {
	case schema.This:
		for to, q := range x.tuplesOf(u, n, u.relation, path) {
			n.Subjects = append(n.Subjects, x.fact(n.Resource, n.Relation, to, q))
			if to.IsUserset() {
				x.child(u, n, to.Object, to.Relation, u.depth-1)
			}
		}
		x.sort(n.Subjects)
	case schema.Self:
		if n.Resource.ID == tuplestore.Wildcard {
			return // a wildcard can be linked to, but is no resource
		}
		self := tuplestore.Subject{Type: n.Resource.Type, ID: n.Resource.ID}
		n.Subjects = []tuplestore.Fact{{Tuple: tuplestore.Tuple{Object: n.Resource, Relation: n.Relation, Subject: self}}}
	case schema.Computed:
		x.child(u, n, u.object, x.number(rw.Relation), u.depth)
	case schema.TupleToUserset:
		n.Tupleset, n.All = rw.Tupleset, rw.Mode == schema.All
		computed := x.number(rw.Computed)
		for to, q := range x.tuplesOf(u, n, x.number(rw.Tupleset), path) {
			n.Links = append(n.Links, x.fact(n.Resource, rw.Tupleset, to, q))
			// An object whose type has no such relation has an empty set. A union can omit
			// it, an intersection cannot.
			if n.All || x.view.Program.Rule(x.view.Type(to.Object), computed) != program.NoRule {
				x.child(u, n, to.Object, computed, u.depth-1)
			}
		}
		x.sort(n.Links)
	case schema.Union, schema.Intersection:
		x.children(u, n, rw.Children, path)
	case schema.Exclusion:
		x.children(u, n, []schema.Rewrite{*rw.Base, *rw.Subtract}, path)
	}
}

func (x *expansion) children(u *unexpanded, n *ExpansionNode, rewrites []schema.Rewrite, path []int) {
	for i := range rewrites {
		child := &ExpansionNode{Resource: n.Resource, Relation: n.Relation}
		n.Children = append(n.Children, child)
		x.rewrite(u, child, &rewrites[i], append(slices.Clip(path), i))
	}
}

// child adds a relation to the next level.
func (x *expansion) child(u *unexpanded, n *ExpansionNode, object graph.ObjectID, relation graph.RelationID, depth int) {
	x.view.Budget.Spend(work.StepsToShow)
	child := &ExpansionNode{}
	n.Children = append(n.Children, child)
	x.next = append(x.next, &unexpanded{node: child, object: object, relation: relation, depth: depth, above: u})
}

// tuplesOf yields the subjects of the tuples of a relation for a node, as many as the answer
// has room for, with the tuples' qualifiers. It omits tuples that have expired.
func (x *expansion) tuplesOf(u *unexpanded, n *ExpansionNode, relation graph.RelationID, path []int) iter.Seq2[graph.Subject, *tuplestore.Qualifier] {
	if x.isPaged {
		return x.page(u, n, relation, path)
	}
	return x.tuples(u.object, relation)
}

// tuples yields the subjects of the tuples of a relation of an object, with the tuples'
// qualifiers. It omits tuples that have expired.
func (x *expansion) tuples(id graph.ObjectID, relation graph.RelationID) iter.Seq2[graph.Subject, *tuplestore.Qualifier] {
	return func(yield func(graph.Subject, *tuplestore.Qualifier) bool) {
		below, above := x.view.Edges(id, relation)
		for _, found := range [2]graph.Edges{below, above} {
			for to, q := range found.Subjects() {
				if x.view.Budget.Step(); x.view.Budget.Err() != nil {
					return
				}
				if x.view.HasExpired(q) {
					continue
				}
				if !yield(to, q) {
					return
				}
			}
		}
	}
}

// sort sorts the tuples of a node. Those of a page are in the order of the store.
func (x *expansion) sort(facts []tuplestore.Fact) {
	if !x.isPaged {
		slices.SortFunc(facts, func(a, b tuplestore.Fact) int { return a.Tuple.Compare(b.Tuple) })
	}
}

func (x *expansion) fact(o tuplestore.Object, relation string, to graph.Subject, q *tuplestore.Qualifier) tuplestore.Fact {
	f := tuplestore.Fact{Tuple: tuplestore.Tuple{Object: o, Relation: relation, Subject: x.subject(to)}}
	if q != nil {
		f.Qualifier = q.Clone()
	}
	return f
}

func (x *expansion) subject(s graph.Subject) tuplestore.Subject {
	o := x.view.Object(s.Object)
	named := tuplestore.Subject{Type: o.Type, ID: o.ID}
	if s.IsUserset() {
		named.Relation = x.view.Graph.Relations.Name(s.Relation)
	}
	return named
}
