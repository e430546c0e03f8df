package engine

import (
	"unsafe"

	"stonetown/tuplestore"
)

// graph holds tuples as a graph that can be walked without hashing strings:
// objects are numbered, and each carries the edges of its relations. A resident
// graph holds all tuples of a tenant at one revision; a request that is
// evaluated cold fills a small one of its own as it goes.
//
// A graph is not safe for concurrent use with a writer; its owner locks.
type graph struct {
	types     dictionary
	relations dictionary
	index     objectIndex
	objects   []object
	// back leads from an object to the tuples that name it as a subject: one
	// entry per object once someone asked for it, else nil.
	back     [][]backEdge
	many     []manyEdges // where edges lead that are more than one
	freeMany []uint32    // places of many that are free
	free     []objectID  // numbers of objects that no tuple names any more
	bytes    int64       // what the contents are estimated to occupy
}

type (
	objectID   uint32
	typeID     uint32
	relationID uint32
)

// noType is the number of no type.
const noType = ^uint32(0)

// noObject is the number of an object that the graph does not have.
const noObject = ^objectID(0)

type objectKey struct {
	typ typeID
	id  string
}

// object is a node of the graph, made to fill one line of the processor's cache:
// what a check waits for is memory.
type object struct {
	id      string
	rest    *[]edge // edges beyond the first few
	few     [fewEdges]edge
	typ     typeID
	uses    uint32 // how many tuples name it
	n       uint16 // edges, one for each relation
	present bool   // registered: its presence tuple exists
}

// fewEdges is how many edges stand in the object itself.
const fewEdges = 3

var _ = [1]struct{}{}[unsafe.Sizeof(object{})-64]

func (o *object) key() objectKey { return objectKey{o.typ, o.id} }

// Estimated sizes in bytes, the room that slices and tables keep free included.
// What is named is counted once more, as text.
const (
	objectBytes = 90
	tupleBytes  = 8
	manyBytes   = 130
	termsBytes  = 120
	backBytes   = 24
)

func newGraph() *graph {
	return &graph{index: newObjectIndex()}
}

// dictionary numbers names. Numbers are never reused.
type dictionary struct {
	numbers map[string]uint32
	names   []string
}

func (d *dictionary) intern(name string) uint32 {
	if n, ok := d.numbers[name]; ok {
		return n
	}
	if d.numbers == nil {
		d.numbers = map[string]uint32{}
	}
	n := uint32(len(d.names))
	d.numbers[name] = n
	d.names = append(d.names, name)
	return n
}

// find returns the number of an object, or noObject.
func (g *graph) find(o tuplestore.Object) objectID {
	typ, ok := g.types.numbers[o.Type]
	if !ok {
		return noObject
	}
	return g.index.find(g.objects, typeID(typ), o.ID)
}

// intern numbers an object.
func (g *graph) intern(o tuplestore.Object) objectID {
	key := objectKey{typeID(g.types.intern(o.Type)), o.ID}
	id := g.index.find(g.objects, key.typ, key.id)
	if id != noObject {
		return id
	}
	if n := len(g.free); n > 0 {
		id = g.free[n-1]
		g.free = g.free[:n-1]
		g.objects[id] = object{id: key.id, typ: key.typ}
	} else {
		id = objectID(len(g.objects))
		g.objects = append(g.objects, object{id: key.id, typ: key.typ})
		if g.back != nil {
			g.back = append(g.back, nil)
		}
	}
	g.index.add(g.objects, id)
	g.bytes += objectBytes + int64(len(key.id))
	return id
}

// release gives up one use of an object and forgets it after the last.
func (g *graph) release(id objectID) {
	o := &g.objects[id]
	if o.uses--; o.uses > 0 {
		return
	}
	g.index.remove(g.objects, id)
	g.bytes -= objectBytes + int64(len(o.id))
	*o = object{}
	if g.back != nil {
		g.back[id] = nil
	}
	g.free = append(g.free, id)
}

// object is the object that a number stands for.
func (g *graph) object(id objectID) tuplestore.Object {
	o := &g.objects[id]
	return tuplestore.Object{Type: g.types.names[o.typ], ID: o.id}
}
