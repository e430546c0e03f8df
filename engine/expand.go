package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"stonetown/internal/tracing"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// ExpandRequest asks what the set of subjects behind an action is made from.
type ExpandRequest struct {
	Resource tuplestore.Object
	Action   string // mapped to a relation as for a check
	// Depth is how many times the expansion goes on to another resource or
	// group, at least 0.
	Depth       int
	Contextual  []WriteOp // as for a check
	Consistency Consistency
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
	// Resource and Relation are whose set it is, or is part of.
	Resource tuplestore.Object
	Relation string
	// Tupleset is, for tuple_to_userset, the relation that links. The set is the
	// union of the children or, with All, what all of them have in common; that is
	// nobody if there are none.
	Tupleset string
	All      bool
	// Links are, for tuple_to_userset, the tuples that link.
	Links []tuplestore.Fact
	// Subjects are, for this, the tuples; a userset that is expanded stands
	// among the children too. For self, the resource itself.
	Subjects []tuplestore.Fact
	// Children are the operands; for an exclusion, the base and what is
	// subtracted.
	Children []*ExpansionNode
	// Cut says why the node has not been expanded, empty if it has.
	Cut Cut
}

// Cut is a reason not to expand a node.
type Cut string

const (
	CutDepth Cut = "depth" // the request's depth was reached
	CutCycle Cut = "cycle" // the node is part of itself, and stands above
)

// Expand shows how the set of subjects that may do something comes about, as a
// tree of rewrites and tuples. Tuples that have expired are left out; those with
// a condition are shown with it. Errors are those of [Engine.Check] and
// [*UnknownTypeError], [*UndefinedRelationError], [*ResourceNotFoundError].
func (e *Engine) Expand(ctx context.Context, tenantID string, req ExpandRequest) (answer *Expansion, err error) {
	ctx, span := tracing.Start(ctx, "engine.expand")
	err = e.attempt(ctx, tenantID, func(l limits) error {
		answer, err = e.expandWithin(ctx, tenantID, &req, l)
		return err
	})
	span.End(err)
	return answer, err
}

func (e *Engine) expandWithin(ctx context.Context, tenantID string, req *ExpandRequest, l limits) (*Expansion, error) {
	v, err := e.readView(ctx, tenantID, req.Consistency, l)
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
	if err := v.bring(req.Contextual); err != nil {
		return nil, err
	}
	e := v.evaluation(ctx, tuplestore.Subject{}, nil)
	defer e.release()
	resource, ok := v.object(e, req.Resource)
	if !ok {
		return nil, &ResourceNotFoundError{Resource: req.Resource}
	}
	root := &ExpansionNode{}
	x := expansion{readView: v, e: e, next: []*unexpanded{{
		node: root, object: resource, relation: v.program.rules[target.rule].relation, depth: req.Depth,
	}}}
	for len(x.next) > 0 {
		level := x.next
		x.next = nil
		if err := x.fetch(ctx, level); err != nil {
			return nil, err
		}
		if !e.isPresent(resource) {
			return nil, &ResourceNotFoundError{Resource: req.Resource}
		}
		for _, u := range level {
			x.relation(u)
			if err := e.spent(); err != nil {
				return nil, err
			}
		}
	}
	return root, nil
}

// stepsToShow is what a node of the answer costs: it has to be kept and sent.
const stepsToShow = 15

// expansion is an expansion under way.
type expansion struct {
	*readView
	e    *evaluation
	next []*unexpanded
}

// unexpanded is a relation of an object that is still to be expanded.
type unexpanded struct {
	node     *ExpansionNode
	object   objectID
	relation relationID
	depth    int
	above    *unexpanded
}

// fetch reads all tuples that the relations of a level look at.
func (x *expansion) fetch(ctx context.Context, level []*unexpanded) error {
	if x.reader == nil {
		return nil
	}
	for _, u := range level {
		x.want(u.object, u.relation, map[relationID]bool{})
	}
	read, err := x.reader.read(ctx, x.graph)
	x.e.budget -= stepsToRead * read
	return err
}

// want asks for the tuples that a relation of an object looks at, and those that
// it looks at through other relations of the same object.
func (x *expansion) want(id objectID, relation relationID, seen map[relationID]bool) {
	if seen[relation] {
		return
	}
	seen[relation] = true
	definition, ok := x.definition(id, relation)
	if !ok {
		return
	}
	if len(definition.Rewrites) == 0 {
		x.reader.want(x.graph, id, relation, true)
	}
	var visit func([]schema.Rewrite)
	visit = func(rewrites []schema.Rewrite) {
		for _, rw := range rewrites {
			switch rw.Kind {
			case schema.This:
				x.reader.want(x.graph, id, relation, true)
			case schema.TupleToUserset:
				x.reader.want(x.graph, id, x.number(rw.Tupleset), true)
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

func (x *expansion) definition(id objectID, relation relationID) (schema.Relation, bool) {
	return x.at.compiled.Relation(x.graph.types.names[x.e.key(id).typ], x.graph.relations.names[relation])
}

// number is that of a relation that the schema names.
func (x *expansion) number(relation string) relationID {
	return relationID(x.graph.relations.numbers[relation])
}

// relation expands one relation of one object.
func (x *expansion) relation(u *unexpanded) {
	x.e.budget--
	n := u.node
	n.Resource, n.Relation = x.e.object(u.object), x.graph.relations.names[u.relation]
	n.Kind = schema.Union
	for above := u.above; above != nil; above = above.above {
		if above.object == u.object && above.relation == u.relation {
			n.Cut = CutCycle
			return
		}
	}
	if u.depth < 0 {
		n.Cut = CutDepth
		return
	}
	definition, ok := x.definition(u.object, u.relation)
	switch {
	case !ok:
		return // a set of nobody
	case len(definition.Rewrites) == 0:
		x.rewrite(u, n, &schema.Rewrite{Kind: schema.This})
	case len(definition.Rewrites) == 1:
		x.rewrite(u, n, &definition.Rewrites[0])
	default:
		x.children(u, n, definition.Rewrites)
	}
}

// rewrite expands one rewrite of a relation into a node.
func (x *expansion) rewrite(u *unexpanded, n *ExpansionNode, rw *schema.Rewrite) {
	x.e.budget--
	n.Kind = rw.Kind
	switch rw.Kind {
	case schema.This:
		for to, on := range x.tuples(u.object, u.relation) {
			n.Subjects = append(n.Subjects, x.fact(n.Resource, n.Relation, to, on))
			if to.isUserset() {
				x.child(u, n, to.object, to.relation, u.depth-1)
			}
		}
		slices.SortFunc(n.Subjects, func(a, b tuplestore.Fact) int { return a.Tuple.Compare(b.Tuple) })
	case schema.Self:
		if n.Resource.ID == tuplestore.Wildcard {
			return // no resource, but linked all the same
		}
		self := tuplestore.Subject{Type: n.Resource.Type, ID: n.Resource.ID}
		n.Subjects = []tuplestore.Fact{{Tuple: tuplestore.Tuple{Object: n.Resource, Relation: n.Relation, Subject: self}}}
	case schema.Computed:
		x.child(u, n, u.object, x.number(rw.Relation), u.depth)
	case schema.TupleToUserset:
		n.Tupleset, n.All = rw.Tupleset, rw.Mode == schema.All
		computed := x.number(rw.Computed)
		for to, on := range x.tuples(u.object, x.number(rw.Tupleset)) {
			n.Links = append(n.Links, x.fact(n.Resource, rw.Tupleset, to, on))
			// An object whose type has no such relation adds nobody, and leaves nobody
			// where all are asked.
			if n.All || x.program.rule(x.e.key(to.object).typ, computed) != noRule {
				x.child(u, n, to.object, computed, u.depth-1)
			}
		}
		slices.SortFunc(n.Links, func(a, b tuplestore.Fact) int { return a.Tuple.Compare(b.Tuple) })
	case schema.Union, schema.Intersection:
		x.children(u, n, rw.Children)
	case schema.Exclusion:
		x.children(u, n, []schema.Rewrite{*rw.Base, *rw.Subtract})
	}
}

func (x *expansion) children(u *unexpanded, n *ExpansionNode, rewrites []schema.Rewrite) {
	for i := range rewrites {
		child := &ExpansionNode{Resource: n.Resource, Relation: n.Relation}
		n.Children = append(n.Children, child)
		x.rewrite(u, child, &rewrites[i])
	}
}

// child leaves a relation for the next level.
func (x *expansion) child(u *unexpanded, n *ExpansionNode, object objectID, relation relationID, depth int) {
	x.e.budget -= stepsToShow
	child := &ExpansionNode{}
	n.Children = append(n.Children, child)
	x.next = append(x.next, &unexpanded{node: child, object: object, relation: relation, depth: depth, above: u})
}

// tuples yields the subjects of a relation of an object with their terms, those
// left out that have expired.
func (x *expansion) tuples(id objectID, relation relationID) iter.Seq2[subject, *tuplestore.Terms] {
	return func(yield func(subject, *tuplestore.Terms) bool) {
		below, above := x.e.edges(id, relation)
		for _, found := range [2]edges{below, above} {
			for to, on := range found.subjects() {
				if x.e.budget--; x.e.spent() != nil {
					return
				}
				if on != nil && on.ExpiresAt != 0 && on.ExpiresAt <= x.e.terms.moment() {
					continue
				}
				if !yield(to, on) {
					return
				}
			}
		}
	}
}

func (x *expansion) fact(o tuplestore.Object, relation string, to subject, on *tuplestore.Terms) tuplestore.Fact {
	f := tuplestore.Fact{Tuple: tuplestore.Tuple{Object: o, Relation: relation, Subject: x.subject(to)}}
	if on != nil {
		f.Terms = *on
	}
	return f
}

func (x *expansion) subject(s subject) tuplestore.Subject {
	o := x.e.object(s.object)
	named := tuplestore.Subject{Type: o.Type, ID: o.ID}
	if s.isUserset() {
		named.Relation = x.graph.relations.names[s.relation]
	}
	return named
}
