package decisions

import (
	"context"
	"maps"
	"slices"
	"strings"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/traversal"
	"stonetown/tuplestore"
)

// affected is what a changed tuple can affect: decisions about the resources and the subjects.
type affected struct {
	// node is the relation whose tuple changed. A registration has no relation, and its object is
	// the only resource.
	node    graph.Node
	subject tuplestore.Subject // of the tuple
	roots   []traversal.Root   // the sets whose members are affected
	plain   graph.ObjectID     // the subject that the tuple names, or NoObject
	all     bool               // all subjects are affected

	resources []graph.ObjectID
}

// candidates returns the pairs that each of the first of the commits may affect, in order, none
// if the first one may affect too many. It leaves the tuples that the commits create in the
// overlay of the view.
func (f *Follower) candidates(ctx context.Context, commits []tuplestore.Commit) ([][]pair, error) {
	f.known = Scope{}
	changes := make([][]affected, len(commits))
	var created []tuplestore.Fact
	for i := range commits {
		for _, c := range commits[i].Changes {
			f.view.Budget.Step()
			if a, ok := f.affectedBy(c.Tuple); ok {
				changes[i] = append(changes[i], a)
			}
			if !c.Deleted && !c.Tuple.IsPresence() {
				created = append(created, tuplestore.Fact{Tuple: c.Tuple, Qualifier: c.Qualifier})
			}
		}
	}
	f.view.Overlay = graph.NewOverlay(f.view.Graph, true, created)
	f.known.Subjects = f.namedBy(changes[0])
	if err := f.readAll(ctx, changes); err != nil {
		return nil, err
	}
	var all [][]pair
	total := 0
	for i := range commits {
		of, few, err := f.pairs(ctx, changes[i], i == 0)
		if err != nil {
			return nil, err
		}
		if total += len(of); !few || total > MaxCandidates && i > 0 {
			break // the others follow next time
		}
		all = append(all, of)
	}
	f.complete(all)
	return all, nil
}

// complete adds to the pairs of each commit that may affect all subjects of a resource those of
// the other commits. They have the decision of the wildcard, which the later commits must know.
func (f *Follower) complete(all [][]pair) {
	everyone := f.everyone()
	subjects := map[graph.ObjectID]map[graph.ObjectID]bool{} // by resource, where a commit may affect all
	for _, of := range all {
		for _, p := range of {
			if p.subject == everyone {
				subjects[p.resource] = map[graph.ObjectID]bool{}
			}
		}
	}
	for _, of := range all {
		for _, p := range of {
			if known := subjects[p.resource]; known != nil {
				known[p.subject] = true
			}
		}
	}
	for i, of := range all {
		var added []pair
		for _, p := range of {
			if p.subject != everyone {
				continue
			}
			for s := range subjects[p.resource] {
				if _, has := slices.BinarySearchFunc(of, pair{p.resource, s}, comparePairs); !has {
					added = append(added, pair{p.resource, s})
				}
			}
		}
		if len(added) > 0 {
			all[i] = append(of, added...)
			slices.SortFunc(all[i], comparePairs)
		}
	}
}

// affectedBy returns what decides which pairs a changed tuple can affect. It reports whether
// there may be any.
func (f *Follower) affectedBy(t tuplestore.Tuple) (affected, bool) {
	v := &f.view
	a := affected{subject: t.Subject, plain: graph.NoObject}
	if t.IsPresence() {
		a.node = graph.Node{Object: graph.NoObject, Relation: graph.NoRelation}
		if t.Object.Type == f.question.Type {
			a.node.Object, a.all = v.Graph.Intern(t.Object), true
		}
		return a, a.all
	}
	a.node = graph.Node{Object: v.Graph.Intern(t.Object), Relation: v.Graph.Relations.Intern(t.Relation)}
	at := v.Program.At(v.Type(a.node.Object), a.node.Relation)
	if at < 0 {
		return a, false
	}
	inverse := v.Program.Dependents()
	relevant := inverse.Relevant(f.target)
	matters := func(relation graph.RelationID) bool {
		return relevant[v.Program.At(v.Type(a.node.Object), relation)]
	}
	if slices.ContainsFunc(inverse.ByTuple[at], func(to program.Into) bool { return matters(to.Relation) }) {
		f.affectedDirectly(&a)
	}
	linked := v.Graph.Intern(t.Subject.Object())
	for _, to := range inverse.ByLink[at] {
		if !matters(to.Relation) {
			continue
		}
		if rule := v.Program.Rule(v.Type(linked), to.Computed); rule != program.NoRule {
			a.roots = append(a.roots, traversal.Root{Object: linked, Rule: rule})
		}
	}
	for _, to := range inverse.ByEveryLink[at] { // even if the link leads nowhere
		if matters(to.Relation) {
			a.roots = append(a.roots, traversal.Root{Object: a.node.Object, Rule: to.Union})
		}
	}
	return a, a.all || a.plain != graph.NoObject || len(a.roots) > 0
}

// affectedDirectly adds the subjects that are affected because a tuple names them.
func (f *Follower) affectedDirectly(a *affected) {
	v, s, kind := &f.view, a.subject, f.question.Kind
	object := v.Graph.Intern(s.Object())
	switch {
	case s.IsUserset():
		if rule := v.Program.Rule(v.Type(object), v.Graph.Relations.Known(s.Relation)); rule != program.NoRule {
			a.roots = append(a.roots, traversal.Root{Object: object, Rule: rule})
		}
	case s.Type != kind.Type || kind.IsUserset():
	case s.ID == tuplestore.Wildcard:
		a.all = true
	default:
		a.plain = object
	}
}

// namedBy returns the subjects that are affected by changes, if they follow from these alone and
// are few.
func (f *Follower) namedBy(changes []affected) []tuplestore.Subject {
	named := map[graph.ObjectID]bool{}
	for i := range changes {
		if changes[i].all || len(changes[i].roots) > 0 {
			return nil
		}
		named[changes[i].plain] = true
	}
	if len(named) > MaxScope {
		return nil
	}
	return f.subjects(named)
}

// readAll finds the resources that changes affect, and reads the tuples on which the affected
// subjects depend, for all commits together.
func (f *Follower) readAll(ctx context.Context, changes [][]affected) error {
	v := &f.view
	var nodes []graph.Node
	for _, of := range changes {
		for i := range of {
			if of[i].node.Relation != graph.NoRelation {
				nodes = append(nodes, of[i].node)
			}
		}
	}
	var together traversal.Reverse
	if err := together.RunDependents(ctx, v, nodes, f.target); err != nil {
		return err
	}
	var roots []traversal.Root
	for n, of := range changes {
		resources := map[graph.ObjectID]bool{}
		for i := range of {
			a := &of[i]
			if err := f.findResources(ctx, a); err != nil {
				return err
			}
			if len(a.resources) > 0 {
				roots = append(roots, a.roots...)
			}
			for _, r := range a.resources {
				resources[r] = true
				if a.all {
					roots = append(roots, traversal.Root{Object: r, Rule: f.rule})
				}
			}
		}
		if n == 0 && len(resources) <= MaxScope {
			f.known.Resources = f.objects(resources)
		}
	}
	if len(roots) == 0 {
		return nil
	}
	var forward traversal.Forward
	return forward.RunAll(ctx, v, roots, f.question.Kind)
}

func (f *Follower) findResources(ctx context.Context, a *affected) error {
	if a.node.Relation == graph.NoRelation {
		a.resources = []graph.ObjectID{a.node.Object}
		return nil
	}
	var reverse traversal.Reverse
	if err := reverse.RunDependents(ctx, &f.view, []graph.Node{a.node}, f.target); err != nil {
		return err
	}
	for _, set := range reverse.Sets {
		if set.Relation == f.target.Relation && f.view.Type(set.Object) == f.target.Type {
			a.resources = append(a.resources, set.Object)
		}
	}
	return nil
}

// pairs returns the pairs that the changes of one commit affect. few is false if there are too
// many. The first commit's subjects become known.
func (f *Follower) pairs(ctx context.Context, changes []affected, isFirst bool) (list []pair, few bool, err error) {
	found := map[pair]bool{}
	subjects := map[graph.ObjectID]bool{}
	named := true // subjects has all of them
	for i := range changes {
		a := &changes[i]
		if len(a.resources) == 0 {
			continue
		}
		common := map[graph.ObjectID]bool{}
		if a.plain != graph.NoObject {
			common[a.plain] = true
		}
		all := a.all
		if len(a.roots) > 0 {
			var forward traversal.Forward
			if err := forward.RunAll(ctx, &f.view, a.roots, f.question.Kind); err != nil {
				return nil, false, err
			}
			for s := range forward.Found {
				common[s] = true
			}
			all = all || forward.Everyone
		}
		maps.Copy(subjects, common)
		named = named && !all
		for _, r := range a.resources {
			of := common
			if all {
				if of, err = f.subjectsOf(ctx, r); err != nil {
					return nil, false, err
				}
			}
			for s := range of {
				found[pair{r, s}] = true
			}
			if len(found) > MaxCandidates {
				break
			}
		}
	}
	if isFirst && named && len(subjects) <= MaxScope {
		f.known.Subjects = f.subjects(subjects)
	}
	if len(found) > MaxCandidates {
		return nil, false, nil
	}
	return slices.SortedFunc(maps.Keys(found), comparePairs), true, nil
}

// subjectsOf returns all subjects whose decisions about a resource may differ from that of a
// subject that no tuple names, and the wildcard.
func (f *Follower) subjectsOf(ctx context.Context, resource graph.ObjectID) (map[graph.ObjectID]bool, error) {
	var forward traversal.Forward
	if err := forward.RunAll(ctx, &f.view, []traversal.Root{{Object: resource, Rule: f.rule}}, f.question.Kind); err != nil {
		return nil, err
	}
	if !f.question.Kind.IsUserset() {
		forward.Found[f.everyone()] = false
	}
	all := make(map[graph.ObjectID]bool, len(forward.Found))
	for s := range forward.Found {
		all[s] = true
	}
	return all, nil
}

// everyone returns the wildcard, or NoObject if the kind has none.
func (f *Follower) everyone() graph.ObjectID {
	if f.question.Kind.IsUserset() {
		return graph.NoObject
	}
	return f.view.Graph.Find(tuplestore.Object{Type: f.question.Kind.Type, ID: tuplestore.Wildcard})
}

func (f *Follower) objects(ids map[graph.ObjectID]bool) []tuplestore.Object {
	list := make([]tuplestore.Object, 0, len(ids))
	for id := range ids {
		list = append(list, f.view.Object(id))
	}
	slices.SortFunc(list, func(a, b tuplestore.Object) int { return strings.Compare(a.ID, b.ID) }) // all of one type
	return list
}

func (f *Follower) subjects(ids map[graph.ObjectID]bool) []tuplestore.Subject {
	list := make([]tuplestore.Subject, 0, len(ids))
	for _, o := range f.objects(ids) {
		list = append(list, f.subject(o))
	}
	return list
}

// subject returns an object as a subject of the question's kind.
func (f *Follower) subject(o tuplestore.Object) tuplestore.Subject {
	return tuplestore.Subject{Type: o.Type, ID: o.ID, Relation: f.question.Kind.Relation}
}
