package traversal

import (
	"context"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
)

// Reverse is the traversal from a subject to the sets that might contain it, or from tuples to
// the sets that depend on them, along tuples that name the subject or one of these sets. It
// proceeds by level; with a reader, each level is one read.
type Reverse struct {
	// Sets are the sets that might contain the subject, or that depend on the tuples.
	Sets []FoundSet

	view     *view.View
	inverse  *program.Inverse
	relevant []bool // the relations that lead to the target
	found    graph.Table
	next     []origin
	spare    []origin // memory for the level after the next one
}

// maxSets is the number of sets whose memory a Reverse keeps for the next use.
const maxSets = 1 << 18

// Release ends the use of the view and of Sets, and keeps memory for the next use.
func (r *Reverse) Release() {
	if cap(r.Sets) > maxSets || cap(r.next) > maxSets || cap(r.spare) > maxSets {
		*r = Reverse{}
		return
	}
	r.view, r.inverse, r.relevant = nil, nil, nil
}

// FoundSet is a set that might contain the subject or, if sure, contains it.
type FoundSet struct {
	graph.Node
	Sure bool
}

// origin is a set that might contain the subject or, without a relation, an object that
// represents the subject. The traversal continues from it.
type origin struct {
	graph.Node
	sure bool
}

// Run traverses from a subject to sets of the target, which are among the found ones.
func (r *Reverse) Run(ctx context.Context, v *view.View, s view.Subject, target program.TypeRelation) error {
	r.view, r.inverse = v, v.Program.Inverse()
	r.begin(target)
	if s.IsSet {
		if s.Set.Object != graph.NoObject {
			if at := v.Program.At(v.Type(s.Set.Object), s.Set.Relation); at >= 0 {
				for _, to := range r.inverse.BySet[at] {
					r.enter(s.Set.Object, to.Relation, false) // it may not be registered
				}
			}
		}
	} else {
		for _, plain := range [2]graph.ObjectID{s.Plain, s.Everyone} {
			if plain != graph.NoObject {
				r.next = append(r.next, origin{graph.Node{Object: plain, Relation: graph.NoRelation}, true})
			}
		}
		if s.Plain != graph.NoObject {
			for _, to := range r.inverse.BySelf[v.Type(s.Plain)] {
				r.enter(s.Plain, to.Relation, false) // it may not be registered
			}
		}
	}
	return r.traverse(ctx)
}

// begin forgets what an earlier run has found.
func (r *Reverse) begin(target program.TypeRelation) {
	r.relevant = r.inverse.Relevant(target)
	r.found.Clear()
	r.Sets, r.next = r.Sets[:0], r.next[:0]
}

// RunDependents traverses from relations of objects, whose tuples the sets depend on, to sets of
// the target, which are among the found ones. It follows subtracted sides too.
func (r *Reverse) RunDependents(ctx context.Context, v *view.View, from []graph.Node, target program.TypeRelation) error {
	r.view, r.inverse = v, v.Program.Dependents()
	r.begin(target)
	for _, n := range from {
		at := v.Program.At(v.Type(n.Object), n.Relation)
		if at < 0 {
			continue
		}
		for _, to := range r.inverse.ByTuple[at] {
			r.enter(n.Object, to.Relation, false)
		}
		for _, to := range r.inverse.ByLink[at] {
			r.enter(n.Object, to.Relation, false)
		}
	}
	return r.traverse(ctx)
}

// traverse follows tuples from the sets that have been entered.
func (r *Reverse) traverse(ctx context.Context) error {
	for len(r.next) > 0 {
		level := r.next
		r.next, r.spare = r.spare[:0], level
		if err := r.read(ctx, level); err != nil {
			return err
		}
		for _, from := range level {
			r.follow(from)
			if err := r.view.Budget.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the tuples that name the objects of a level.
func (r *Reverse) read(ctx context.Context, level []origin) error {
	v := r.view
	if v.Reader == nil {
		return nil
	}
	for _, from := range level {
		v.Reader.WantNaming(from.Object)
	}
	return v.Reader.Read(ctx, &v.Budget)
}

// follow enters every set that a tuple with the origin as its subject leads to.
func (r *Reverse) follow(from origin) {
	r.view.Budget.Step()
	below, above := r.view.Backward(from.Object)
	r.followTuples(from, below)
	r.followTuples(from, above)
}

func (r *Reverse) followTuples(from origin, tuples []graph.BackwardEdge) {
	v := r.view
	for _, t := range tuples {
		if v.Budget.Step(); v.Budget.Err() != nil {
			return
		}
		at := v.Program.At(v.Type(t.From), t.Relation)
		if at < 0 {
			continue
		}
		sure := from.sure && !r.mayBeQualified(t)
		if t.As == from.Relation {
			for _, to := range r.inverse.ByTuple[at] {
				r.enter(t.From, to.Relation, sure && to.Sure)
			}
		}
		if from.Relation == graph.NoRelation {
			continue
		}
		for _, to := range r.inverse.ByLink[at] {
			if to.Computed == from.Relation {
				r.enter(t.From, to.Relation, sure && to.Sure)
			}
		}
	}
}

// mayBeQualified reports whether a tuple may have an expiry or a condition.
func (r *Reverse) mayBeQualified(t graph.BackwardEdge) bool {
	below, above := r.view.Edges(t.From, t.Relation)
	return below.HasQualified() || above.HasQualified()
}

// enter adds a set that might contain the subject, or surely does.
func (r *Reverse) enter(object graph.ObjectID, relation graph.RelationID, sure bool) {
	v := r.view
	if at := v.Program.At(v.Type(object), relation); at < 0 || !r.relevant[at] {
		return
	}
	to := graph.Node{Object: object, Relation: relation}
	if i, found := r.found.Insert(graph.TableKey(object, uint32(relation)), int32(len(r.Sets))); !found {
		r.Sets = append(r.Sets, FoundSet{to, sure})
		v.Budget.SpendOnListing()
	} else {
		set := &r.Sets[i]
		if set.Sure || !sure {
			return
		}
		set.Sure = true
	}
	r.next = append(r.next, origin{to, sure})
}
