// Package graph stores tuples as a graph that is traversed without hashing strings.
//
// Objects, types and relations are numbered. An object has one edge for each of its
// relations that has tuples, and an edge leads to the subjects of these tuples. The graph
// has no schema: a rewrite is applied by the packages that traverse it.
//
// A resident [Graph] holds all tuples of a tenant at one revision. A request that takes long
// pins it ([Graph.Pin]): the graph moves on, and copies what changes, by pages, for as long as
// it is pinned. A request for a tenant that is not resident fills a small graph of its own as
// it reads. An [Overlay] adds the tuples of one request to a graph that other requests read.
//
// A traversal mostly waits for memory, so the layout saves cache lines: an object fills
// one, its first edges included, and an edge with one plain subject needs no other.
package graph

import (
	"maps"
	"slices"
	"unsafe"

	"stonetown/engine/internal/arena"
	"stonetown/tuplestore"
)

// Graph is a set of tuples. It is not safe for concurrent use with a writer; its owner
// locks it, or pins it.
type Graph struct {
	Types     Dictionary[TypeID]
	Relations Dictionary[RelationID]

	index    objectIndex
	objects  pages[Object]
	backward backwardIndex
	many     pages[manyEdges] // the subjects of edges that have more than one plain subject
	freeMany []uint32         // unused places of many
	free     []ObjectID       // numbers of objects that no tuple names any more
	keeps    bool             // objects that no tuple names keep their numbers
	bytes    int64            // estimated size of the contents
	named    uint64           // the generation since which Types and Relations are not shared
	pins     *pins
	pinned   uint64  // the generation of a copy
	w        writing // of the change in progress
}

// ObjectID, TypeID and RelationID are the numbers of objects, types and relations.
type (
	ObjectID   uint32
	TypeID     uint32
	RelationID uint32
)

const (
	// NoType is the number of no type.
	NoType = ^TypeID(0)
	// NoObject is the number of an object that the graph does not have.
	NoObject = ^ObjectID(0)
	// NoRelation is the relation of a plain subject.
	NoRelation = ^RelationID(0)
)

// Key identifies an object.
type Key struct {
	Type TypeID
	ID   string
}

// Node is one relation of one object. As the subject of a tuple it is a userset.
type Node struct {
	Object   ObjectID
	Relation RelationID
}

// Object is an object with its edges. It fills one cache line.
type Object struct {
	id         string
	rest       *[]Edge // edges after the first few
	few        [fewEdges]Edge
	typ        TypeID
	uses       uint32 // the number of tuples that name the object
	n          uint16 // the number of edges
	registered bool   // the presence tuple exists
}

// fewEdges is how many edges are stored in the object itself.
const fewEdges = 3

var _ = [1]struct{}{}[unsafe.Sizeof(Object{})-64]

// Type returns the number of the object's type.
func (o *Object) Type() TypeID { return o.typ }

// IsRegistered reports whether the object has a presence tuple.
func (o *Object) IsRegistered() bool { return o.registered }

// Estimated sizes in bytes, including the unused capacity of slices and tables. IDs are
// counted in addition.
const (
	objectBytes    = 90
	tupleBytes     = 8
	manyBytes      = 140
	qualifierBytes = 120
	backwardBytes  = 24
)

// New returns an empty graph on the heap.
func New() *Graph { return NewIn(nil) }

// NewIn returns an empty graph in an arena, which belongs to it.
func NewIn(memory *arena.Arena) *Graph {
	w := writing{memory: memory}
	return &Graph{index: newObjectIndex(w), objects: pages[Object]{copied: copyRest}, pins: new(pins), w: w}
}

// Arena returns the arena of the graph, nil if it is on the heap.
func (g *Graph) Arena() *arena.Arena { return g.w.memory }

// NewWith returns an empty graph in which types and relations have the numbers that they have in
// dictionaries, which do not change any more.
func NewWith(types *Dictionary[TypeID], relations *Dictionary[RelationID]) *Graph {
	g := New()
	g.Types.base, g.Relations.base = types, relations
	return g
}

// KeepObjects makes objects keep their numbers when no tuple names them any more, for an owner
// that has these numbers in tables of its own.
func (g *Graph) KeepObjects() { g.keeps = true }

// Bytes returns the estimated size of the graph's contents in memory.
func (g *Graph) Bytes() int64 { return g.bytes }

// Dictionary numbers names. Numbers are never reused.
type Dictionary[ID ~uint32] struct {
	base    *Dictionary[ID] // has the first numbers; or nil
	numbers map[string]ID
	names   []string
	shared  bool // numbers is, with a copy
}

// Copy returns a copy that later names are not added to.
func (d *Dictionary[ID]) Copy() Dictionary[ID] {
	d.shared = true
	return *d
}

// Intern returns the number of a name, which it adds if it is new.
func (d *Dictionary[ID]) Intern(name string) ID {
	if n, ok := d.Number(name); ok {
		return n
	}
	if d.shared {
		d.numbers, d.shared = maps.Clone(d.numbers), false
	}
	if d.numbers == nil {
		d.numbers = map[string]ID{}
	}
	n := d.first() + ID(len(d.names))
	d.numbers[name] = n
	d.names = append(d.names, name)
	return n
}

// rename gives names other ones, all at once. What has the number of a name then has the other
// name; what had that one before has none.
func (d *Dictionary[ID]) rename(names map[string]string) {
	d.numbers, d.names, d.shared = maps.Clone(d.numbers), slices.Clone(d.names), false
	moved := map[string]ID{}
	for from, to := range names {
		if n, ok := d.numbers[from]; ok {
			moved[to] = n
			delete(d.numbers, from)
		}
	}
	for to, n := range moved {
		if other, ok := d.numbers[to]; ok {
			d.names[other] = ""
		}
		d.numbers[to], d.names[n] = n, to
	}
}

// first returns the first number that is not of the base.
func (d *Dictionary[ID]) first() ID {
	if d.base == nil {
		return 0
	}
	return ID(len(d.base.names))
}

// Number returns the number of a name.
func (d *Dictionary[ID]) Number(name string) (n ID, ok bool) {
	if d.base != nil {
		if n, ok = d.base.numbers[name]; ok {
			return n, true
		}
	}
	n, ok = d.numbers[name]
	return n, ok
}

// Known returns the number of a name. If the dictionary lacks it, as a name of the schema that no
// rule depends on, Known returns the highest number, which no name has.
func (d *Dictionary[ID]) Known(name string) ID {
	if n, ok := d.Number(name); ok {
		return n
	}
	return ^ID(0)
}

// Name returns the name that has a number.
func (d *Dictionary[ID]) Name(n ID) string {
	if first := d.first(); n >= first {
		return d.names[n-first]
	}
	return d.base.names[n]
}

// Names returns all names, by number.
func (d *Dictionary[ID]) Names() []string {
	if d.base == nil {
		return d.names
	}
	return slices.Concat(d.base.names, d.names)
}

// Rename gives types and relations other names, all at once. Programs that were made before keep
// theirs.
func (g *Graph) Rename(types, relations map[string]string) {
	g.begin()
	g.Types.rename(types)
	g.Relations.rename(relations)
}

// Find returns the number of an object, or [NoObject].
func (g *Graph) Find(o tuplestore.Object) ObjectID {
	typ, ok := g.Types.Number(o.Type)
	if !ok {
		return NoObject
	}
	return g.index.find(&g.objects, typ, o.ID)
}

// FindAll finds many objects at once.
func (g *Graph) FindAll(all []Lookup) { g.index.findAll(&g.objects, all) }

// Intern returns the number of an object, which it adds if it is new.
func (g *Graph) Intern(o tuplestore.Object) ObjectID {
	g.begin()
	return g.intern(o)
}

func (g *Graph) intern(o tuplestore.Object) ObjectID {
	key := Key{g.Types.Intern(o.Type), o.ID}
	id := g.index.find(&g.objects, key.Type, key.ID)
	if id != NoObject {
		return id
	}
	if n := len(g.free); n > 0 {
		id = g.free[n-1]
		g.free = g.free[:n-1]
		*g.change(id) = Object{id: arena.Text(g.w.memory, key.ID), typ: key.Type}
	} else {
		id = ObjectID(g.objects.add(Object{id: arena.Text(g.w.memory, key.ID), typ: key.Type}, g.w))
		g.backward.grow(g.objects.len(), g.w)
	}
	g.index.add(&g.objects, id, g.w)
	g.bytes += objectBytes + int64(len(key.ID))
	return id
}

// release ends one use of an object. After the last, the object is removed.
func (g *Graph) release(id ObjectID) {
	o := g.change(id)
	if o.uses--; o.uses > 0 || g.keeps {
		return
	}
	g.index.remove(&g.objects, id, g.w)
	g.bytes -= objectBytes + int64(len(o.id))
	arena.FreeText(g.w.memory, o.id)
	*o = Object{}
	g.backward.forget(id, g.w)
	g.free = append(g.free, id)
}

// At returns the object that has a number.
func (g *Graph) At(id ObjectID) *Object { return g.objects.at(int(id)) }

// change returns an object, to be changed.
func (g *Graph) change(id ObjectID) *Object { return g.objects.change(int(id), g.w) }

// copyRest copies the edges that objects do not store themselves.
func copyRest(objects []Object, w writing) {
	for i := range objects {
		if old := objects[i].rest; old != nil {
			rest := arena.Alloc[[]Edge](w.memory)
			*rest = replaced(*old, w)
			objects[i].rest = rest
			arena.Free(w.memory, old)
		}
	}
}

// Key returns the type and ID of the object that has a number.
func (g *Graph) Key(id ObjectID) Key {
	o := g.At(id)
	return Key{o.typ, arena.Outside(g.w.memory, o.id)}
}

// Object returns the names of the object that has a number.
func (g *Graph) Object(id ObjectID) tuplestore.Object {
	key := g.Key(id)
	return tuplestore.Object{Type: g.Types.Name(key.Type), ID: key.ID}
}
