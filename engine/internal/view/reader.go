package view

import (
	"context"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

// Reader fills the graph of one request from the store, one read per level of a traversal.
// A request about subjects reads exact tuples and usersets of the relations that a rule
// unites, as far as the schema allows any, and all tuples of those that arrows follow. However large a set is, its plain
// members are never read.
type Reader struct {
	find   func(context.Context, tuplestore.Lookup) ([]tuplestore.Fact, error)
	graph  *graph.Graph
	rules  *program.Program
	wanted map[graph.Node]bool // true: all tuples of the node
	exact  map[exactTuple]bool // tuples that were wanted by themselves, presences among them
	named  map[graph.ObjectID]bool
	lookup tuplestore.Lookup // the next read
}

// exactTuple is a tuple with a plain subject.
type exactTuple struct {
	node    graph.Node
	subject graph.ObjectID
}

// NewReader returns a reader that fills the graph of a program with the results of find.
func NewReader(g *graph.Graph, p *program.Program, find func(context.Context, tuplestore.Lookup) ([]tuplestore.Fact, error)) *Reader {
	return &Reader{find: find, graph: g, rules: p, wanted: map[graph.Node]bool{}, exact: map[exactTuple]bool{}, named: map[graph.ObjectID]bool{}}
}

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
	if t := (exactTuple{graph.Node{Object: id, Relation: graph.NoRelation}, graph.NoObject}); !r.exact[t] {
		r.exact[t] = true
		r.lookup.Tuples = append(r.lookup.Tuples, tuplestore.Presence(o))
	}
	return id
}

// WantNaming adds all tuples that name an object as their subject to the next read.
func (r *Reader) WantNaming(id graph.ObjectID) {
	if !r.named[id] {
		r.named[id] = true
		r.lookup.Naming = append(r.lookup.Naming, r.graph.Object(id))
	}
}

// WantAll adds all tuples of a relation of an object to the next read.
func (r *Reader) WantAll(id graph.ObjectID, relation graph.RelationID) {
	key := graph.Node{Object: id, Relation: relation}
	if r.wanted[key] {
		return
	}
	r.wanted[key] = true
	r.lookup.All = append(r.lookup.All, r.node(key))
}

// Want adds the tuples of a relation of an object that name a subject or a userset to the
// next read, unless the schema allows no such tuples.
func (r *Reader) Want(id graph.ObjectID, relation graph.RelationID, s Subject) {
	key := graph.Node{Object: id, Relation: relation}
	all, wanted := r.wanted[key]
	if all {
		return
	}
	named := r.rules.Named(r.graph.At(id).Type(), relation)
	if !wanted && named.Usersets {
		r.wanted[key] = false
		r.lookup.Usersets = append(r.lookup.Usersets, r.node(key))
	}
	for i, plain := range [2]graph.ObjectID{s.Everyone, s.Plain} { // a userset is found among the usersets
		t := exactTuple{key, plain}
		if plain == graph.NoObject || r.named[plain] || r.exact[t] {
			continue
		}
		of, isEveryone := r.graph.At(plain).Type(), i == 0
		if isEveryone && !named.Wildcard(of) || !isEveryone && !named.Plain(of) {
			continue
		}
		r.exact[t] = true
		n, o := r.node(key), r.graph.Object(plain)
		r.lookup.Tuples = append(r.lookup.Tuples, tuplestore.Tuple{
			Object: n.Object, Relation: n.Relation, Subject: tuplestore.Subject{Type: o.Type, ID: o.ID},
		})
	}
}

func (r *Reader) node(n graph.Node) tuplestore.Node {
	return tuplestore.Node{Object: r.graph.Object(n.Object), Relation: r.graph.Relations.Name(n.Relation)}
}

// Read reads the wanted tuples into the graph.
func (r *Reader) Read(ctx context.Context, b *work.Budget) error {
	l := &r.lookup
	if len(l.Tuples)+len(l.Usersets)+len(l.All)+len(l.Naming) == 0 {
		return nil
	}
	found, err := r.find(ctx, *l)
	if err != nil {
		return err
	}
	for _, f := range found {
		r.graph.Add(f)
	}
	b.SpendOnReading(len(found))
	*l = tuplestore.Lookup{Tuples: l.Tuples[:0], Usersets: l.Usersets[:0], All: l.All[:0], Naming: l.Naming[:0]}
	return nil
}
