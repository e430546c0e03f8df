package graph

import (
	"runtime"
	"slices"

	"stonetown/engine/internal/arena"
	"stonetown/engine/internal/chunks"
	"stonetown/tuplestore"
)

// A graph in a file has its names, and then its objects by number, each with its edges. What
// follows from these is made again when the graph is read: the index of objects, whose hashes are
// different in each process, and the estimate of the memory. The backward index is not in the
// file.

// Flags of an object in a file. One that has none of them is free.
const (
	fileInUse = 1 << iota
	fileRegistered
	fileFlags = iota // how many there are
)

// yieldEvery is the number of objects after which others may use the processor.
const yieldEvery = 4096

// WriteTo writes the graph, which must not change meanwhile, so it is best pinned. 10 million
// tuples take about half a second. The caller gets an error from the writer.
func (g *Graph) WriteTo(w *chunks.Writer) {
	writeNames(w, g.Types.Names())
	writeNames(w, g.Relations.Names())
	w.Number(uint64(g.objects.len()))
	for i := range g.objects.len() {
		if i%yieldEvery == 0 {
			if w.Err() != nil {
				return
			}
			runtime.Gosched()
		}
		o := g.objects.at(i)
		if o.uses == 0 {
			w.Number(0)
			continue
		}
		kind := uint64(o.typ)<<fileFlags | fileInUse
		if o.registered {
			kind |= fileRegistered
		}
		w.Number(kind)
		w.Text(o.id)
		w.Number(uint64(o.uses))
		w.Number(uint64(o.n))
		for e := range o.Edges() {
			g.writeEdge(w, o.Edge(e))
		}
	}
}

func writeNames(w *chunks.Writer, names []string) {
	w.Number(uint64(len(names)))
	for _, name := range names {
		w.Text(name)
	}
}

func (g *Graph) writeEdge(w *chunks.Writer, e *Edge) {
	relation, many := e.Relation()
	if !many {
		w.Number(uint64(relation) << 1)
		w.Number(uint64(e.to))
		return
	}
	w.Number(uint64(relation)<<1 | 1)
	m := g.many.at(int(e.to))
	w.Number(uint64(m.plain.len()))
	for ids := range m.plain.lists {
		for _, id := range ids {
			if id != NoObject {
				w.Number(uint64(id))
			}
		}
	}
	w.Number(uint64(len(m.usersets.list)))
	for _, n := range m.usersets.list {
		writeSubject(w, Subject(n))
	}
	w.Number(uint64(m.qualified.len()))
	for to, q := range m.qualified.all() {
		writeSubject(w, Subject(to))
		w.Number(uint64(q.ExpiresAt))
		w.Text(q.Condition)
		w.Text(q.Context)
	}
}

func writeSubject(w *chunks.Writer, s Subject) {
	w.Number(uint64(s.Object))
	w.Number(uint64(s.Relation))
}

// Read reads a graph that WriteTo wrote, to the heap or an arena. The caller gets an error from the
// reader.
func Read(r *chunks.Reader, memory *arena.Arena) *Graph {
	g := NewIn(memory)
	f := fileReader{Reader: r, graph: g, types: readNames(r, &g.Types), relations: readNames(r, &g.Relations)}
	f.objects = uint64(r.Count())
	g.index = newObjectIndexFor(int(f.objects), g.w)
	for i := range int(f.objects) {
		if i%yieldEvery == 0 {
			runtime.Gosched()
		}
		if f.readObject(); r.Err() != nil {
			break
		}
	}
	return g
}

// readNames reads the names of a dictionary and returns how many there are.
func readNames[ID ~uint32](r *chunks.Reader, d *Dictionary[ID]) uint64 {
	n := r.Count()
	d.numbers = make(map[string]ID, n)
	for i := range n {
		name := r.Text()
		d.names = append(d.names, name)
		if name != "" { // given to another number by a rename
			d.numbers[name] = ID(i)
		}
	}
	return uint64(n)
}

// fileReader reads the objects of a graph. No number in it is beyond the names and objects that
// the graph has.
type fileReader struct {
	*chunks.Reader
	graph                     *Graph
	types, relations, objects uint64
	ids                       []ObjectID // of the set being read
}

// below reads a number below a limit.
func (f *fileReader) below(limit uint64) uint64 {
	n := f.Number()
	if n >= limit {
		f.Fail()
		return 0
	}
	return n
}

func (f *fileReader) readObject() {
	g := f.graph
	kind := f.Number()
	if kind == 0 {
		g.free = append(g.free, ObjectID(g.objects.add(Object{}, g.w)))
		return
	}
	if kind>>fileFlags >= f.types {
		f.Fail()
		return
	}
	number := g.objects.add(Object{
		typ: TypeID(kind >> fileFlags), registered: kind&fileRegistered != 0, id: arena.Text(g.w.memory, f.Text()), uses: uint32(f.Number()),
	}, g.w)
	o := g.objects.at(number)
	for range f.Count() {
		f.readEdge(o)
	}
	if o.uses == 0 {
		f.Fail()
		return
	}
	g.index.add(&g.objects, ObjectID(number), g.w)
	g.bytes += objectBytes + int64(len(o.id))
}

func (f *fileReader) readEdge(o *Object) {
	g := f.graph
	kind := f.below(f.relations << 1)
	if f.Err() != nil || o.n == ^uint16(0) {
		f.Fail()
		return
	}
	e := o.addEdge(RelationID(kind>>1), g.w)
	if kind&1 == 0 {
		e.to = uint32(f.below(f.objects))
		g.bytes += tupleBytes
		return
	}
	m := g.makeMany(e)
	m.plain = f.readSet()
	for range f.Count() {
		m.usersets.add(Node(f.readSubject()), g.w)
	}
	for range f.Count() {
		to := f.readSubject()
		grown, _ := m.put(to, tuplestore.Qualifier{ExpiresAt: int64(f.Number()), Condition: f.Text(), Context: f.Text()}, g.w)
		g.bytes += grown
	}
	g.bytes += tupleBytes * int64(m.plain.len()+len(m.usersets.list)+m.qualified.len())
}

func (f *fileReader) readSet() idSet {
	f.ids = f.ids[:0]
	for range f.Count() {
		f.ids = append(f.ids, ObjectID(f.below(f.objects)))
	}
	if len(f.ids) <= maxSorted {
		slices.Sort(f.ids) // it was a table, perhaps, that has shrunk
		return idSet{sorted: arena.Clone(f.graph.w.memory, f.ids)}
	}
	size := smallestTable
	for 4*len(f.ids) > 3*size {
		size *= 2
	}
	table := newIDTable(size, f.graph.w)
	for _, id := range f.ids {
		table.add(id, f.graph.w)
	}
	return idSet{large: table}
}

func (f *fileReader) readSubject() Subject {
	s := Subject{Object: ObjectID(f.below(f.objects)), Relation: RelationID(f.Number())}
	if s.IsUserset() && uint64(s.Relation) >= f.relations {
		f.Fail()
		s.Relation = NoRelation
	}
	return s
}
