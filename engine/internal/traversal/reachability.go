// Package traversal follows tuples from objects to objects without goals and proofs.
//
// [Reachability] decides questions that consist of unions only. [Forward] collects the
// subjects that a relation of a resource may contain, and [Reverse] the resources that may
// contain a subject in a relation; their results that are not sure have to be checked.
package traversal

import (
	"errors"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
)

// Reachability decides whether a path of tuples leads from a resource to the subject. That
// answers most questions: those that need no proof and meet no logic. It stores nothing but
// the visited places. A traversal that meets logic, or a condition that cannot be decided,
// fails with [ErrNotReachability], and the question has to be evaluated.
//
// Places are taken alternately from both ends of the queue. A traversal therefore takes at most
// twice as long as breadth first, which finds what is near, and as depth first, which finds
// what many paths lead to.
//
// The questions of a batch share their results. A place from which the subject was reached is
// proven. All places of a traversal that failed to reach it lead nowhere. The other places of
// a traversal that ended early are open, and are visited again.
//
// It can be used again after Begin.
type Reachability struct {
	view    *view.View
	graph   *graph.Graph
	program *program.Program
	budget  *work.Budget
	subject view.Subject

	places []place
	placed graph.Table // finds places, if there are more than a few
	queue  []int32     // of places
	failed []bool      // by traversal: the subject is not reachable from its places
}

// place is a rule's set for an object that a traversal has visited.
type place struct {
	object    graph.ObjectID
	rule      int32
	from      int32 // the place that led here; -1 for the question's own
	traversal int32 // the last one that visited the place
	proven    bool
}

// ErrNotReachability is the error of a question that depends on more than reachability.
var ErrNotReachability = errors.New("question depends on more than reachability")

// few is the number of places that are searched linearly. Most questions visit no more, and
// need no table.
const few = 8

// maxKept is the number of places for which memory is kept.
const maxKept = 1 << 16

// Decides reports whether reachability may decide questions about a subject in a view: the
// graph is complete and has no overlay, and the subject is plain.
func Decides(v *view.View, s view.Subject) bool {
	return v.Reader == nil && v.Overlay == nil && !s.IsSet
}

// Begin starts the traversals of a batch of questions about a subject.
func (r *Reachability) Begin(v *view.View, s view.Subject) {
	r.view, r.graph, r.program, r.budget = v, v.Graph, v.Program, &v.Budget
	r.subject = s
	r.places, r.queue, r.failed = r.places[:0], r.queue[:0], r.failed[:0]
}

// Release ends the use of the view, and keeps memory for the next use.
func (r *Reachability) Release() {
	if cap(r.places) > maxKept {
		*r = Reachability{}
		return
	}
	r.view, r.graph, r.program, r.budget = nil, nil, nil, nil
}

// Reaches reports whether the subject is in the set that a rule gives for an object. It
// fails with [ErrNotReachability], or as [work.Budget.Err] does.
func (r *Reachability) Reaches(object graph.ObjectID, rule int32) (bool, error) {
	if r.program.Rules[rule].Mixed.Load() {
		return false, ErrNotReachability
	}
	if r.subject.Plain == graph.NoObject && r.subject.Everyone == graph.NoObject {
		return false, nil // no tuple names the subject
	}
	traversal := int32(len(r.failed))
	r.failed = append(r.failed, false)
	r.queue = r.queue[:0]
	if r.enter(object, rule, -1) {
		return true, nil
	}
	for next, taken := 0, 0; next < len(r.queue); taken++ {
		at := r.queue[next]
		if taken%2 == 0 {
			next++
		} else {
			last := len(r.queue) - 1
			at, r.queue = r.queue[last], r.queue[:last]
		}
		reached, err := r.visit(at)
		if err == ErrNotReachability {
			if !r.view.Undecided {
				r.program.Rules[rule].Mixed.Store(true) // so that it is not tried again
			}
			r.view.Undecided = false
			return false, err
		}
		if err := r.budget.Err(); err != nil {
			return false, err
		}
		if reached {
			for ; at >= 0; at = r.places[at].from {
				r.places[at].proven = true
			}
			return true, nil
		}
	}
	r.failed[traversal] = true
	return false, nil
}

// enter adds a place to the queue, unless its outcome is known or it is there already. It
// reports whether the subject is known to be reachable from the place.
func (r *Reachability) enter(object graph.ObjectID, rule, from int32) bool {
	traversal := int32(len(r.failed)) - 1
	i := r.placeOf(object, rule)
	p := &r.places[i]
	switch {
	case p.traversal < 0: // a new place
	case p.proven:
		return true
	case p.traversal == traversal || r.failed[p.traversal]:
		return false
	}
	p.traversal, p.from = traversal, from
	r.queue = append(r.queue, i)
	return false
}

// placeOf returns the place of a rule and an object, which it adds if it is new.
func (r *Reachability) placeOf(object graph.ObjectID, rule int32) int32 {
	n := int32(len(r.places))
	if n < few {
		for i := range r.places {
			if p := &r.places[i]; p.object == object && p.rule == rule {
				return int32(i)
			}
		}
	} else {
		if n == few {
			r.placed.Clear()
			for i := range r.places {
				p := &r.places[i]
				r.placed.Insert(graph.TableKey(p.object, uint32(p.rule)), int32(i))
			}
		}
		if have, found := r.placed.Insert(graph.TableKey(object, uint32(rule)), n); found {
			return have
		}
	}
	r.places = append(r.places, place{object: object, rule: rule, traversal: -1})
	return n
}

// visit reads the tuples of a place's object: first whether one names the subject, and then
// where the others lead. It reports whether the subject is reached.
func (r *Reachability) visit(at int32) (bool, error) {
	p := &r.places[at]
	r.budget.Step()
	rule := &r.program.Rules[p.rule]
	if len(rule.Logic) > 0 {
		return false, ErrNotReachability
	}
	if rule.Self && p.object == r.subject.Plain {
		return true, nil
	}
	o := r.graph.At(p.object)
	further := false
	for i := range o.Edges() {
		edge := o.Edge(i)
		switch relation, many := edge.Relation(); {
		case many:
			further = true
			if found := r.graph.View(edge); rule.IsDirect(relation) && r.subject.Named(&found) != graph.NoObject {
				return true, nil
			}
		case !rule.IsDirect(relation):
			further = true
		case edge.To() == r.subject.Plain || edge.To() == r.subject.Everyone:
			return true, nil
		case rule.IsTupleset(relation):
			further = true
		}
	}
	if !further {
		return false, nil
	}
	for i := range o.Edges() {
		edge := o.Edge(i)
		relation, many := edge.Relation()
		if many && rule.IsDirect(relation) {
			found := r.graph.View(edge)
			if reached, err := r.followUsersets(at, &found); reached || err != nil {
				return reached, err
			}
		}
		if !rule.IsTupleset(relation) {
			continue
		}
		for _, a := range rule.Arrows {
			switch {
			case a.Tupleset != relation:
			case many:
				found := r.graph.View(edge)
				if reached, err := r.followArrow(at, &found, a.Computed); reached || err != nil {
					return reached, err
				}
			case r.enterComputed(at, edge.To(), a.Computed):
				return true, nil
			}
		}
	}
	return false, nil
}

// enterComputed enters a relation of an object that a tupleset links to.
func (r *Reachability) enterComputed(at int32, to graph.ObjectID, computed graph.RelationID) bool {
	r.budget.Step()
	child := r.program.Rule(r.graph.At(to).Type(), computed)
	return child != program.NoRule && r.enter(to, child, at)
}

// followUsersets follows the tuples of one relation that name usersets, and the qualified
// tuples.
func (r *Reachability) followUsersets(at int32, found *graph.Edges) (bool, error) {
	for _, us := range found.Usersets() {
		if r.enterUserset(at, us) {
			return true, nil
		}
		if err := r.budget.Err(); err != nil {
			return false, err
		}
	}
	if !found.HasQualified() {
		return false, nil
	}
	of := r.places[at].object
	for _, plain := range [2]graph.ObjectID{r.subject.Plain, r.subject.Everyone} {
		if q := found.Qualifier(graph.Plain(plain)); q != nil {
			switch r.view.Decide(of, q) {
			case view.Met:
				return true, nil
			case view.Undecided:
				return false, ErrNotReachability
			}
		}
	}
	for to, q := range found.Qualified() {
		r.budget.Step()
		if err := r.budget.Err(); err != nil {
			return false, err
		}
		if !to.IsUserset() {
			continue
		}
		switch r.view.Decide(of, q) {
		case view.Undecided:
			return false, ErrNotReachability
		case view.Met:
			if r.enterUserset(at, graph.Node(to)) {
				return true, nil
			}
		}
	}
	return false, nil
}

// enterUserset enters a userset. One whose rule is a leaf is read at once.
func (r *Reachability) enterUserset(at int32, us graph.Node) bool {
	r.budget.Step()
	child := r.program.Rule(r.graph.At(us.Object).Type(), us.Relation)
	if child == program.NoRule {
		return false
	}
	if rule := &r.program.Rules[child]; rule.Leaf {
		members := r.graph.Edges(us.Object, rule.Direct[0])
		if r.subject.Named(&members) != graph.NoObject {
			return true
		}
		if len(members.Usersets()) == 0 && !members.HasQualified() {
			return false
		}
	}
	return r.enter(us.Object, child, at)
}

// followArrow follows the links of a tupleset.
func (r *Reachability) followArrow(at int32, tupleset *graph.Edges, computed graph.RelationID) (bool, error) {
	for ids := range tupleset.Plain {
		for _, to := range ids {
			if to != graph.NoObject && r.enterComputed(at, to, computed) {
				return true, nil
			}
			if err := r.budget.Err(); err != nil {
				return false, err
			}
		}
	}
	for _, us := range tupleset.Usersets() {
		if r.enterComputed(at, us.Object, computed) {
			return true, nil
		}
		if err := r.budget.Err(); err != nil {
			return false, err
		}
	}
	of := r.places[at].object
	for to, q := range tupleset.Qualified() {
		r.budget.Step()
		if err := r.budget.Err(); err != nil {
			return false, err
		}
		switch r.view.Decide(of, q) {
		case view.Undecided:
			return false, ErrNotReachability
		case view.Met:
			if r.enterComputed(at, to.Object, computed) {
				return true, nil
			}
		}
	}
	return false, nil
}
