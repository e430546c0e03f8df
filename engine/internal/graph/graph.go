// Package graph stores tuples as a graph that is traversed without hashing strings.
//
// Objects, types and relations are numbered. An object has one edge for each of its
// relations that has tuples, and an edge leads to the subjects of these tuples. The graph
// has no schema: a rewrite is applied by the packages that traverse it.
//
// A resident [Graph] holds all tuples of a tenant at one revision. A request for a tenant
// that is not resident fills a small graph of its own as it reads. An [Overlay] adds the
// tuples of one request to a graph that other requests read.
//
// A traversal mostly waits for memory, so the layout saves cache lines: an object fills
// one, its first edges included, and an edge with one plain subject needs no other.
package graph

import (
	"slices"
	"unsafe"

	"stonetown/tuplestore"
)

// Graph is a set of tuples. It is not safe for concurrent use with a writer; its owner
// locks it.
type Graph struct {
	Types     Dictionary[TypeID]
	Relations Dictionary[RelationID]

	index   objectIndex
	objects []Object
	// backward leads from an object to the tuples that name it as a subject: one entry
	// per object after [Graph.IndexBackward], nil before.
	backward [][]BackwardEdge
	many     []manyEdges // the subjects of edges that have more than one plain subject
	freeMany []uint32    // unused places of many
	free     []ObjectID  // numbers of objects that no tuple names any more
	keeps    bool        // objects that no tuple names keep their numbers
	bytes    int64       // estimated size of the contents
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

// Key returns the object's type and ID.
func (o *Object) Key() Key { return Key{o.typ, o.id} }

// IsRegistered reports whether the object has a presence tuple.
func (o *Object) IsRegistered() bool { return o.registered }

// Estimated sizes in bytes, including the unused capacity of slices and tables. IDs are
// counted in addition.
const (
	objectBytes    = 90
	tupleBytes     = 8
	manyBytes      = 130
	qualifierBytes = 120
	backwardBytes  = 24
)

// New returns an empty graph.
func New() *Graph {
	return &Graph{index: newObjectIndex()}
}

// NewLike returns an empty graph whose types and relations have the numbers that they have in
// another one, which does not change any more.
func NewLike(other *Graph) *Graph {
	g := New()
	g.Types.base, g.Relations.base = &other.Types, &other.Relations
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
}

// Intern returns the number of a name, which it adds if it is new.
func (d *Dictionary[ID]) Intern(name string) ID {
	if n, ok := d.Number(name); ok {
		return n
	}
	if d.numbers == nil {
		d.numbers = map[string]ID{}
	}
	n := d.first() + ID(len(d.names))
	d.numbers[name] = n
	d.names = append(d.names, name)
	return n
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

// Known returns the number of a name that the dictionary has, as every name of the schema
// that a program was made for.
func (d *Dictionary[ID]) Known(name string) ID {
	n, _ := d.Number(name)
	return n
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

// Find returns the number of an object, or [NoObject].
func (g *Graph) Find(o tuplestore.Object) ObjectID {
	typ, ok := g.Types.Number(o.Type)
	if !ok {
		return NoObject
	}
	return g.index.find(g.objects, typ, o.ID)
}

// FindAll finds many objects at once.
func (g *Graph) FindAll(all []Lookup) { g.index.findAll(g.objects, all) }

// Intern returns the number of an object, which it adds if it is new.
func (g *Graph) Intern(o tuplestore.Object) ObjectID {
	key := Key{g.Types.Intern(o.Type), o.ID}
	id := g.index.find(g.objects, key.Type, key.ID)
	if id != NoObject {
		return id
	}
	if n := len(g.free); n > 0 {
		id = g.free[n-1]
		g.free = g.free[:n-1]
		g.objects[id] = Object{id: key.ID, typ: key.Type}
	} else {
		id = ObjectID(len(g.objects))
		g.objects = append(g.objects, Object{id: key.ID, typ: key.Type})
		if g.backward != nil {
			g.backward = append(g.backward, nil)
		}
	}
	g.index.add(g.objects, id)
	g.bytes += objectBytes + int64(len(key.ID))
	return id
}

// release ends one use of an object. After the last, the object is removed.
func (g *Graph) release(id ObjectID) {
	o := &g.objects[id]
	if o.uses--; o.uses > 0 || g.keeps {
		return
	}
	g.index.remove(g.objects, id)
	g.bytes -= objectBytes + int64(len(o.id))
	*o = Object{}
	if g.backward != nil {
		g.backward[id] = nil
	}
	g.free = append(g.free, id)
}

// At returns the object that has a number.
func (g *Graph) At(id ObjectID) *Object { return &g.objects[id] }

// Object returns the names of the object that has a number.
func (g *Graph) Object(id ObjectID) tuplestore.Object {
	o := &g.objects[id]
	return tuplestore.Object{Type: g.Types.Name(o.typ), ID: o.id}
}
