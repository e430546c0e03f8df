package view

import (
	"context"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/nodecache"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

// Reader fills the graph of one request from the store, one read per level of a traversal.
// A request about subjects reads exact tuples and usersets of the relations that a rule
// unites, as far as the schema allows any, and all tuples of those that arrows follow. However
// large a set is, its plain members are never read.
//
// A reader with a cache reads small objects as a whole instead, so that the next request about
// them, whatever its subject is, reads nothing.
type Reader struct {
	find   func(context.Context, tuplestore.Lookup) ([]tuplestore.Fact, error)
	graph  *graph.Graph
	rules  *program.Program
	wanted map[graph.Node]bool // true: all tuples of the node
	exact  map[exactTuple]bool // tuples that were wanted by themselves, presences among them
	named  map[graph.ObjectID]bool
	items  []item              // wanted by the next read
	naming []tuplestore.Object // the same

	parts   *Parts
	behind  bool             // the tenant has a newer revision, so that no object is read as a whole
	objects []object         // by number
	open    []graph.ObjectID // objects of the next read whose state is being found out
}

// Parts is what a reader with a cache needs.
type Parts struct {
	Cache *nodecache.View
	// Find is [tuplestore.WholeFinder.FindWhole].
	Find func(context.Context, tuplestore.Lookup, []tuplestore.Object) (tuplestore.Whole, error)
}

// exactTuple is a tuple with a plain subject.
type exactTuple struct {
	node    graph.Node
	subject graph.ObjectID
}

// item is a part of a lookup.
type item struct {
	exactTuple
	kind itemKind
}

type itemKind uint8

const (
	oneTuple itemKind = iota
	usersetsOf
	allOf
)

// object is how the tuples of an object are read, if there is a cache.
type object struct {
	state objectState
	all   nodecache.Tuples // if it is whole
}

type objectState uint8

const (
	unknown objectState = iota
	open                // among Reader.open
	whole               // all are known
	inParts             // because there are many, or the reader is behind
)

// NewReader returns a reader that fills the graph of a program with the results of find.
func NewReader(g *graph.Graph, p *program.Program, find func(context.Context, tuplestore.Lookup) ([]tuplestore.Fact, error)) *Reader {
	return &Reader{find: find, graph: g, rules: p, wanted: map[graph.Node]bool{}, exact: map[exactTuple]bool{}, named: map[graph.ObjectID]bool{}}
}

// UseCache makes the reader use a cache. Nothing has been wanted before.
func (r *Reader) UseCache(p Parts) { r.parts = &p }

// About gives numbers in the graph to a subject that questions are about.
func (r *Reader) About(s tuplestore.Subject) {
	r.graph.Intern(s.Object())
	if s.IsUserset() {
		r.graph.Relations.Intern(s.Relation)
	} else {
		r.graph.Intern(tuplestore.Object{Type: s.Type, ID: tuplestore.Wildcard})
	}
}

// WantObject adds the presence of an object to the next read.
func (r *Reader) WantObject(o tuplestore.Object) graph.ObjectID {
	id := r.graph.Intern(o)
	r.want(item{exactTuple{graph.Node{Object: id, Relation: graph.NoRelation}, graph.NoObject}, oneTuple})
	return id
}

// WantNaming adds all tuples that name an object as their subject to the next read.
func (r *Reader) WantNaming(id graph.ObjectID) {
	if !r.named[id] {
		r.named[id] = true
		r.naming = append(r.naming, r.graph.Object(id))
	}
}

// WantAll adds all tuples of a relation of an object to the next read.
func (r *Reader) WantAll(id graph.ObjectID, relation graph.RelationID) {
	r.want(item{exactTuple{graph.Node{Object: id, Relation: relation}, graph.NoObject}, allOf})
}

// Want adds the tuples of a relation of an object that name a subject or a userset to the
// next read, unless the schema allows no such tuples.
func (r *Reader) Want(id graph.ObjectID, relation graph.RelationID, s Subject) {
	n := graph.Node{Object: id, Relation: relation}
	named := r.rules.Named(r.graph.At(id).Type(), relation)
	if named.Usersets {
		r.want(item{exactTuple{n, graph.NoObject}, usersetsOf})
	}
	// A userset is found among the usersets.
	if s.Everyone != graph.NoObject && named.Wildcard(r.graph.At(s.Everyone).Type()) {
		r.want(item{exactTuple{n, s.Everyone}, oneTuple})
	}
	if s.Plain != graph.NoObject && named.Plain(r.graph.At(s.Plain).Type()) {
		r.want(item{exactTuple{n, s.Plain}, oneTuple})
	}
}

func (r *Reader) want(i item) {
	if id := i.node.Object; r.parts != nil && r.state(id) == unknown {
		r.setState(id, open)
		r.open = append(r.open, id)
	}
	r.items = append(r.items, i)
}

func (r *Reader) state(id graph.ObjectID) objectState {
	if int(id) < len(r.objects) {
		return r.objects[id].state
	}
	return unknown
}

func (r *Reader) setState(id graph.ObjectID, s objectState) {
	if n := int(id) + 1; n > len(r.objects) {
		r.objects = append(r.objects, make([]object, n-len(r.objects))...)
	}
	r.objects[id].state = s
}

// setWhole notes all tuples of an object.
func (r *Reader) setWhole(id graph.ObjectID, all nodecache.Tuples) {
	r.objects[id] = object{whole, all}
}

// bytesScanned is the number of bytes of tuples that are looked through in one step.
const bytesScanned = 64

// Read reads the wanted tuples into the graph.
func (r *Reader) Read(ctx context.Context, b *work.Budget) error {
	next := r.lookup(b)
	if len(r.open) > 0 {
		done, err := r.readWhole(ctx, b, next)
		if err != nil {
			return err
		}
		if done {
			next = tuplestore.Lookup{}
		}
		r.collect(&next, b) // the parts of objects that are not read as a whole
	}
	r.items, r.naming = r.items[:0], nil
	if len(next.Tuples)+len(next.Usersets)+len(next.All)+len(next.Naming) == 0 {
		return nil
	}
	found, err := r.find(ctx, next)
	if err != nil {
		return err
	}
	r.add(next, found, b)
	return nil
}

// lookup returns what is wanted and not in the cache, besides the objects in r.open.
func (r *Reader) lookup(b *work.Budget) tuplestore.Lookup {
	n := 0
	for _, id := range r.open {
		all, isLarger, ok := r.parts.Cache.Object(r.graph.Object(id))
		switch {
		case !ok:
			r.open[n] = id
			n++
		case isLarger:
			r.setState(id, inParts)
		default:
			r.setWhole(id, all)
		}
	}
	if r.open = r.open[:n]; r.behind {
		r.readInParts()
	}
	l := tuplestore.Lookup{Naming: r.naming}
	r.collect(&l, b)
	return l
}

// addCached returns a function that adds cached tuples to the graph.
func (r *Reader) addCached(b *work.Budget) func(tuplestore.Fact) {
	return func(f tuplestore.Fact) {
		b.Step()
		r.graph.Add(f)
	}
}

// collect moves the items that have to be read by themselves to a lookup, and adds those that are
// known to the graph. Items of open objects stay.
func (r *Reader) collect(l *tuplestore.Lookup, b *work.Budget) {
	n, add := 0, r.addCached(b)
	for _, i := range r.items {
		if r.parts != nil && r.state(i.node.Object) == open {
			r.items[n] = i
			n++
			continue
		}
		if r.parts != nil {
			b.Spend(1 + len(r.objects[i.node.Object].all)/bytesScanned)
		}
		r.request(l, i, add)
	}
	r.items = r.items[:n]
}

// request adds an item to a lookup, unless it was requested before or is known.
func (r *Reader) request(l *tuplestore.Lookup, i item, add func(tuplestore.Fact)) {
	all, wanted := r.wanted[i.node]
	if all {
		return
	}
	var of *object
	if r.parts != nil {
		of = &r.objects[i.node.Object]
	}
	switch i.kind {
	case oneTuple:
		if of != nil && of.state == whole {
			of.all.Tuple(r.tuple(i.exactTuple), add)
			return
		}
		if r.named[i.subject] || r.exact[i.exactTuple] {
			return
		}
		r.exact[i.exactTuple] = true
		if t := r.tuple(i.exactTuple); of == nil || !r.parts.Cache.Tuple(t, add) {
			l.Tuples = append(l.Tuples, t)
		}
	case usersetsOf:
		if wanted {
			return
		}
		r.wanted[i.node] = false
		switch n := r.node(i.node); {
		case of != nil && of.state == whole:
			of.all.Node(n, true, add)
		case of == nil || !r.parts.Cache.Node(n, true, add):
			l.Usersets = append(l.Usersets, n)
		}
	case allOf:
		r.wanted[i.node] = true
		switch n := r.node(i.node); {
		case of != nil && of.state == whole:
			of.all.Node(n, false, add)
		case of == nil || !r.parts.Cache.Node(n, false, add):
			l.All = append(l.All, n)
		}
	}
}

func (r *Reader) node(n graph.Node) tuplestore.Node {
	return tuplestore.Node{Object: r.graph.Object(n.Object), Relation: r.graph.Relations.Name(n.Relation)}
}

func (r *Reader) tuple(t exactTuple) tuplestore.Tuple {
	if t.node.Relation == graph.NoRelation {
		return tuplestore.Presence(r.graph.Object(t.node.Object))
	}
	n, o := r.node(t.node), r.graph.Object(t.subject)
	return tuplestore.Tuple{Object: n.Object, Relation: n.Relation, Subject: tuplestore.Subject{Type: o.Type, ID: o.ID}}
}

// readWhole reads the open objects as a whole, together with a lookup, unless the tenant has a newer
// revision.
func (r *Reader) readWhole(ctx context.Context, b *work.Budget, l tuplestore.Lookup) (done bool, err error) {
	objects := make([]tuplestore.Object, len(r.open))
	for i, id := range r.open {
		objects[i] = r.graph.Object(id)
	}
	found, err := r.parts.Find(ctx, l, objects)
	if err != nil {
		return false, err
	}
	if !found.Newest {
		r.behind = true
		r.readInParts()
		return false, nil
	}
	r.add(l, found.Found, b)
	b.SpendOnReading(len(objects))
	for i, o := range found.Objects {
		all := r.parts.Cache.PutObject(objects[i], o)
		if o.Larger {
			r.setState(r.open[i], inParts)
		} else {
			r.setWhole(r.open[i], all)
		}
	}
	r.open = r.open[:0]
	return true, nil
}

// readInParts makes the next read one of what is wanted of the open objects.
func (r *Reader) readInParts() {
	for _, id := range r.open {
		r.setState(id, inParts)
	}
	r.open = r.open[:0]
}

// add adds the result of a lookup to the graph and the cache.
func (r *Reader) add(l tuplestore.Lookup, found []tuplestore.Fact, b *work.Budget) {
	for _, f := range found {
		r.graph.Add(f)
	}
	b.SpendOnReading(len(found))
	if r.parts == nil || len(l.Tuples)+len(l.Usersets)+len(l.All) == 0 {
		return
	}
	tuples, nodes := map[tuplestore.Tuple][]tuplestore.Fact{}, map[tuplestore.Node][]tuplestore.Fact{}
	for _, f := range found {
		if tuples[f.Tuple] == nil { // several parts of a lookup may find it
			tuples[f.Tuple] = []tuplestore.Fact{f}
			nodes[f.Node()] = append(nodes[f.Node()], f)
		}
	}
	for _, t := range l.Tuples {
		r.parts.Cache.PutTuple(t, tuples[t])
	}
	for _, n := range l.All {
		r.parts.Cache.PutNode(n, false, nodes[n])
	}
	for _, n := range l.Usersets {
		var usersets []tuplestore.Fact
		for _, f := range nodes[n] {
			if f.Subject.IsUserset() {
				usersets = append(usersets, f)
			}
		}
		r.parts.Cache.PutNode(n, true, usersets)
	}
}
