package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"stonetown/tuplestore"
)

// coldReader fills the graph of one evaluation from a snapshot, one read per
// level: exact tuples and usersets of what a goal unites, and all of what its
// arrows follow. However large a set is, its plain members are never read.
type coldReader struct {
	snapshot tuplestore.Snapshot
	subject  tuplestore.Subject
	asked    map[node]bool     // true: all tuples of the node, not just those that matter
	lookup   tuplestore.Lookup // the next read
	reads    *atomic.Int64     // counts them
}

// begin prepares the graph for questions about a subject.
func (r *coldReader) begin(g *graph, subject tuplestore.Subject) {
	r.subject = subject
	g.intern(subject.Object())
	if subject.IsUserset() {
		g.relations.intern(subject.Relation)
	} else {
		g.intern(tuplestore.Object{Type: subject.Type, ID: tuplestore.Wildcard})
	}
}

// expect adds to the first read whether an object is registered.
func (r *coldReader) expect(g *graph, o tuplestore.Object) objectID {
	r.lookup.Tuples = append(r.lookup.Tuples, tuplestore.Presence(o))
	return g.intern(o)
}

func (r *coldReader) fetch(ctx context.Context, e *evaluation) error {
	for _, g := range e.frontier {
		at := &e.goals[g]
		if at.proven {
			continue
		}
		if at.what.isLogic() {
			if lg := &e.program.logic[at.what.index()]; lg.isArrow() {
				r.want(e.graph, at.object, lg.arrow.tupleset, true)
			}
			continue
		}
		rule := &e.program.rules[at.what.index()]
		for _, a := range rule.arrows {
			r.want(e.graph, at.object, a.tupleset, true)
		}
		for _, relation := range rule.direct {
			r.want(e.graph, at.object, relation, false)
		}
	}
	found, err := r.read(ctx, e.graph)
	e.budget -= stepsToRead * found
	return err
}

// stepsToRead is what a tuple costs that is read from the store.
const stepsToRead = 4

// read fetches what is wanted into the graph and says how many tuples that was.
func (r *coldReader) read(ctx context.Context, g *graph) (int, error) {
	if l := &r.lookup; len(l.Tuples)+len(l.Usersets)+len(l.All)+len(l.Naming) == 0 {
		return 0, nil
	}
	r.reads.Add(1)
	found, err := r.snapshot.Find(ctx, r.lookup)
	if errors.Is(err, tuplestore.ErrRevisionCollected) {
		return 0, ErrTokenExpired // only a token leads back that far
	}
	if err != nil {
		return 0, err
	}
	for _, f := range found {
		g.add(f)
	}
	r.lookup = tuplestore.Lookup{
		Tuples: r.lookup.Tuples[:0], Usersets: r.lookup.Usersets[:0], All: r.lookup.All[:0], Naming: r.lookup.Naming[:0],
	}
	return len(found), nil
}

// wantNaming asks for all tuples that name an object as their subject.
func (r *coldReader) wantNaming(o tuplestore.Object) {
	r.lookup.Naming = append(r.lookup.Naming, o)
}

func (r *coldReader) want(g *graph, id objectID, relation relationID, all bool) {
	key := node{id, relation}
	if had, asked := r.asked[key]; asked && (had || !all) {
		return
	}
	r.asked[key] = all
	o, name := g.object(id), g.relations.names[relation]
	if all {
		r.lookup.All = append(r.lookup.All, tuplestore.Node{Object: o, Relation: name})
		return
	}
	r.lookup.Usersets = append(r.lookup.Usersets, tuplestore.Node{Object: o, Relation: name})
	if r.subject.IsUserset() {
		return // found among the usersets
	}
	everyone := r.subject
	everyone.ID = tuplestore.Wildcard
	r.lookup.Tuples = append(r.lookup.Tuples, tuplestore.Tuple{Object: o, Relation: name, Subject: everyone})
	if r.subject != everyone {
		r.lookup.Tuples = append(r.lookup.Tuples, tuplestore.Tuple{Object: o, Relation: name, Subject: r.subject})
	}
}
