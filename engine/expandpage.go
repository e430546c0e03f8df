package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/work"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// ExpansionPlace is where the expansion of a node continues: a relation of a resource or, if
// some of its tuples have been returned, one of its rewrites.
type ExpansionPlace struct {
	Node  tuplestore.Node
	Depth int // the number of steps that are left
	// Above are fingerprints of the nodes above, by which cycles are found.
	Above []uint64
	// IsRewrite: the place is a rewrite. Path leads to it from the rewrites of the relation, and
	// After is the last subject that was returned; empty: none was.
	IsRewrite bool
	Path      []int
	After     tuplestore.Subject
}

// begin makes the root of an answer the next level: that of the request or, of a continued
// expansion, the place to go on from.
func (x *expansion) begin(req *ExpandRequest, root *unexpanded) (*ExpansionNode, error) {
	if from := req.From; from != nil {
		if !x.at.compiled.HasType(from.Node.Object.Type) {
			return nil, ErrTokenInvalid
		}
		root = &unexpanded{
			node: root.node, object: x.view.Graph.Intern(from.Node.Object), relation: x.view.Graph.Relations.Intern(from.Node.Relation),
			depth: from.Depth, from: from,
		}
		x.above = map[uint64]bool{}
		for _, f := range from.Above {
			x.above[f] = true
		}
	}
	x.next = []*unexpanded{root}
	return root.node, nil
}

// place returns the place of a relation that has not been expanded.
func (x *expansion) place(u *unexpanded) *ExpansionPlace {
	p := &ExpansionPlace{Node: x.node(u), Depth: u.depth}
	for f := range x.above {
		p.Above = append(p.Above, f)
	}
	slices.Sort(p.Above)
	for above := u.above; above != nil; above = above.above {
		p.Above = append(p.Above, fingerprint(x.node(above)))
	}
	return p
}

// fingerprint identifies a node in a place.
func fingerprint(n tuplestore.Node) uint64 {
	sum := sha256.Sum256([]byte(n.String()))
	return binary.BigEndian.Uint64(sum[:])
}

// resume expands the rewrite of a relation that the expansion continues with.
func (x *expansion) resume(u *unexpanded, definition schema.Relation) {
	rewrites := rewritesOf(definition)
	path := u.from.Path
	if len(rewrites) == 1 {
		path = append([]int{0}, path...)
	}
	var rw *schema.Rewrite
	for _, i := range path {
		if i < 0 || i >= len(rewrites) {
			x.err = ErrTokenInvalid
			return
		}
		rw = &rewrites[i]
		if rewrites = rw.Children; rw.Kind == schema.Exclusion {
			rewrites = []schema.Rewrite{*rw.Base, *rw.Subtract}
		}
	}
	if rw == nil {
		x.err = ErrTokenInvalid
		return
	}
	x.rewrite(u, u.node, rw, u.from.Path)
}

// page yields the tuples that a node has in this answer: at its start contextual ones, and
// then stored ones in their order. It notes where the node continues.
func (x *expansion) page(u *unexpanded, n *ExpansionNode, relation graph.RelationID, path []int) iter.Seq2[graph.Subject, *tuplestore.Qualifier] {
	return func(yield func(graph.Subject, *tuplestore.Qualifier) bool) {
		var after *tuplestore.Record
		f := tuplestore.Filter{ObjectType: n.Resource.Type, ObjectID: n.Resource.ID, Relation: x.view.Graph.Relations.Name(relation)}
		if u.from != nil && slices.Equal(u.from.Path, path) && u.from.After != (tuplestore.Subject{}) {
			after = &tuplestore.Record{Fact: tuplestore.Fact{Tuple: tuplestore.Tuple{
				Object: n.Resource, Relation: f.Relation, Subject: u.from.After,
			}}}
		}
		ends := func(last *tuplestore.Record) {
			n.Next = x.place(u)
			n.Next.IsRewrite, n.Next.Path = true, path
			if last != nil {
				n.Next.After = last.Subject
			}
		}
		if x.left == 0 {
			ends(nil)
			return
		}
		for i := range x.contextual {
			c := &x.contextual[i]
			isOf := after == nil && c.Object == n.Resource && c.Relation == f.Relation
			if isOf && !x.view.HasExpired(&c.Qualifier) && !yield(x.subjectOf(c.Subject), &c.Qualifier) {
				return
			}
		}
		for x.err == nil && x.view.Budget.Err() == nil {
			x.view.Budget.Spend(work.StepsToAsk)
			limit := x.left + 1
			found, err := x.snapshot.List(x.ctx, f, after, limit)
			if err != nil {
				x.err = expired(err)
				return
			}
			x.view.Budget.SpendOnReading(len(found))
			for i := range found {
				r := &found[i]
				switch {
				case x.view.HasExpired(&r.Qualifier):
				case x.left == 0:
					ends(after)
					return
				default:
					x.left--
					if !yield(x.subjectOf(r.Subject), &r.Qualifier) {
						return
					}
				}
				after = r
			}
			if len(found) < limit {
				return
			}
		}
	}
}

// subjectOf returns a subject in the numbers of the view, whose graph belongs to the request.
func (x *expansion) subjectOf(s tuplestore.Subject) graph.Subject {
	to := graph.Plain(x.view.Graph.Intern(s.Object()))
	if s.IsUserset() {
		to.Relation = x.view.Graph.Relations.Intern(s.Relation)
	}
	return to
}
