package view

import (
	"context"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

// Reader fills the graph of one request from the store, one read per level of a traversal.
// A request that is about one subject reads exact tuples and usersets of the relations that
// a rule unites, and all tuples of those that arrows follow. However large a set is, its
// plain members are never read.
type Reader struct {
	find    func(context.Context, tuplestore.Lookup) ([]tuplestore.Fact, error)
	graph   *graph.Graph
	subject tuplestore.Subject
	wanted  map[graph.Node]bool // true: all tuples of the node
	lookup  tuplestore.Lookup   // the next read
}

// NewReader returns a reader that fills a graph with the results of find.
func NewReader(g *graph.Graph, find func(context.Context, tuplestore.Lookup) ([]tuplestore.Fact, error)) *Reader {
	return &Reader{find: find, graph: g, wanted: map[graph.Node]bool{}}
}

// About sets the subject that questions are about, which gets numbers in the graph.
func (r *Reader) About(s tuplestore.Subject) {
	r.subject = s
	r.graph.Intern(s.Object())
	if s.IsUserset() {
		r.graph.Relations.Intern(s.Relation)
	} else {
		r.graph.Intern(tuplestore.Object{Type: s.Type, ID: tuplestore.Wildcard})
	}
}

// WantObject adds the presence of an object to the next read.
func (r *Reader) WantObject(o tuplestore.Object) graph.ObjectID {
	r.lookup.Tuples = append(r.lookup.Tuples, tuplestore.Presence(o))
	return r.graph.Intern(o)
}

// WantNaming adds all tuples that name an object as their subject to the next read.
func (r *Reader) WantNaming(o tuplestore.Object) {
	r.lookup.Naming = append(r.lookup.Naming, o)
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

// Want adds the tuples of a relation of an object that name the subject or a userset to the
// next read.
func (r *Reader) Want(id graph.ObjectID, relation graph.RelationID) {
	key := graph.Node{Object: id, Relation: relation}
	if _, wanted := r.wanted[key]; wanted {
		return
	}
	r.wanted[key] = false
	n := r.node(key)
	r.lookup.Usersets = append(r.lookup.Usersets, n)
	if r.subject.IsUserset() {
		return // found among the usersets
	}
	everyone := r.subject
	everyone.ID = tuplestore.Wildcard
	r.lookup.Tuples = append(r.lookup.Tuples, tuplestore.Tuple{Object: n.Object, Relation: n.Relation, Subject: everyone})
	if r.subject != everyone {
		r.lookup.Tuples = append(r.lookup.Tuples, tuplestore.Tuple{Object: n.Object, Relation: n.Relation, Subject: r.subject})
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
