package traversal

import (
	"context"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/tuplestore"
)

// Forward is the traversal from a resource to the subjects of one kind that its set can
// contain. It also visits subtracted sides. It proceeds by level; with a reader, each level is
// one read, after which the graph has all tuples that the set depends on.
type Forward struct {
	// Found are the objects of the subjects of the kind that were named; true: they are
	// surely in the set.
	Found    map[graph.ObjectID]bool
	Everyone bool // the wildcard was named

	view     *view.View
	seen     map[uint64]bool // places visited; true: as surely part of the set
	next     []forwardPlace
	kind     program.TypeRelation
	wildcard graph.ObjectID
}

// forwardPlace is the set that a rule, or logic, gives for an object.
type forwardPlace struct {
	object  graph.ObjectID
	index   int32 // of the rule or the logic
	isLogic bool
	sure    bool // the set is surely part of the resource's
}

// Root is the set that a rule gives for an object.
type Root struct {
	Object graph.ObjectID
	Rule   int32
}

// Run traverses from the set that a rule gives for the root to subjects of the kind of a
// subject. It reports whether the root is registered.
func (f *Forward) Run(ctx context.Context, v *view.View, root graph.ObjectID, rule int32, kind tuplestore.Subject) (registered bool, err error) {
	f.begin(v, kind)
	f.enterRule(root, rule, true)
	for len(f.next) > 0 {
		level := f.take()
		if err := f.read(ctx, level); err != nil {
			return false, err
		}
		if !v.IsRegistered(root) {
			return false, nil
		}
		if err := f.visitAll(level); err != nil {
			return false, err
		}
	}
	return true, nil
}

// RunAll traverses from several sets, of objects that need not be registered.
func (f *Forward) RunAll(ctx context.Context, v *view.View, roots []Root, kind tuplestore.Subject) error {
	f.begin(v, kind)
	for _, r := range roots {
		f.enterRule(r.Object, r.Rule, true)
	}
	for len(f.next) > 0 {
		level := f.take()
		if err := f.read(ctx, level); err != nil {
			return err
		}
		if err := f.visitAll(level); err != nil {
			return err
		}
	}
	return nil
}

func (f *Forward) begin(v *view.View, kind tuplestore.Subject) {
	f.view, f.Found, f.Everyone, f.seen = v, map[graph.ObjectID]bool{}, false, map[uint64]bool{}
	f.kind = program.TypeRelation{Type: v.Graph.Types.Known(kind.Type), Relation: graph.NoRelation}
	if kind.IsUserset() {
		f.kind.Relation = v.Graph.Relations.Known(kind.Relation)
	}
	f.wildcard = v.Find(tuplestore.Object{Type: kind.Type, ID: tuplestore.Wildcard})
}

func (f *Forward) take() (level []forwardPlace) {
	level, f.next = f.next, nil
	return level
}

func (f *Forward) visitAll(level []forwardPlace) error {
	for _, at := range level {
		f.visit(at)
		if err := f.view.Budget.Err(); err != nil {
			return err
		}
	}
	return nil
}

// read reads all tuples that the rules of a level depend on.
func (f *Forward) read(ctx context.Context, level []forwardPlace) error {
	r := f.view.Reader
	if r == nil {
		return nil
	}
	for _, at := range level {
		if at.isLogic {
			continue
		}
		rule := &f.view.Program.Rules[at.index]
		for _, relation := range rule.Direct {
			r.WantAll(at.object, relation)
		}
		for _, a := range rule.Arrows {
			r.WantAll(at.object, a.Tupleset)
		}
	}
	err := r.Read(ctx, &f.view.Budget)
	if f.wildcard == graph.NoObject { // the read may have added it to the graph
		f.wildcard = f.view.Find(tuplestore.Object{Type: f.view.Graph.Types.Name(f.kind.Type), ID: tuplestore.Wildcard})
	}
	return err
}

func (f *Forward) enterRule(object graph.ObjectID, rule int32, sure bool) {
	f.enter(uint32(rule)<<1, forwardPlace{object: object, index: rule, sure: sure})
}

func (f *Forward) enterLogic(object graph.ObjectID, logic int32) {
	f.enter(uint32(logic)<<1|1, forwardPlace{object: object, index: logic, isLogic: true})
}

func (f *Forward) enter(part uint32, p forwardPlace) {
	key := graph.TableKey(p.object, part)
	if sure, seen := f.seen[key]; seen && (sure || !p.sure) {
		return
	}
	f.seen[key] = p.sure
	f.next = append(f.next, p)
}

func (f *Forward) visit(at forwardPlace) {
	v := f.view
	v.Budget.Step()
	if at.isLogic {
		for _, operand := range v.Program.Logic[at.index].Operands {
			f.enterRule(at.object, operand, false)
		}
		return
	}
	rule := &v.Program.Rules[at.index]
	isOfKind := v.Type(at.object) == f.kind.Type
	if f.kind.Relation != graph.NoRelation && isOfKind {
		for _, relation := range rule.Includes {
			if relation == f.kind.Relation { // every userset contains itself
				f.note(at.object, at.sure)
			}
		}
	}
	if rule.Self && f.kind.Relation == graph.NoRelation && isOfKind && at.object != f.wildcard {
		f.note(at.object, at.sure)
	}
	for _, relation := range rule.Direct {
		f.follow(at, relation, func(to graph.Subject, sure bool) {
			typ := v.Type(to.Object)
			if typ == f.kind.Type && to.Relation == f.kind.Relation {
				f.note(to.Object, sure)
			}
			if !to.IsUserset() {
				return
			}
			if child := v.Program.Rule(typ, to.Relation); child != program.NoRule {
				f.enterRule(to.Object, child, sure)
			}
		})
	}
	for _, a := range rule.Arrows {
		f.follow(at, a.Tupleset, func(to graph.Subject, sure bool) {
			if child := v.Program.Rule(v.Type(to.Object), a.Computed); child != program.NoRule {
				f.enterRule(to.Object, child, sure)
			}
		})
	}
	for _, l := range rule.Logic {
		f.enterLogic(at.object, l)
	}
}

// follow calls visit with the subjects of a relation of an object.
func (f *Forward) follow(at forwardPlace, relation graph.RelationID, visit func(to graph.Subject, sure bool)) {
	below, above := f.view.Edges(at.object, relation)
	for _, found := range [2]graph.Edges{below, above} {
		for to, q := range found.Subjects() {
			if f.view.Budget.Step(); f.view.Budget.Err() != nil {
				return
			}
			visit(to, at.sure && q == nil)
		}
	}
}

// note adds a subject of the kind to the result.
func (f *Forward) note(object graph.ObjectID, sure bool) {
	if object == f.wildcard {
		f.Everyone = true
		return
	}
	had, known := f.Found[object]
	if !known {
		f.view.Budget.SpendOnListing()
	}
	f.Found[object] = had || sure
}
