package engine

import (
	"context"

	"stonetown/tuplestore"
)

// reverse is the traversal from a subject to the sets that might contain it, along tuples
// that name the subject or one of these sets. It goes level by level: cold, each level is
// one read.
type reverse struct {
	*readView
	e       *evaluation
	inverse *inverse
	towards []bool // the only relations worth entering

	sets  []foundSet
	found goalTable         // finds sets
	named map[objectID]bool // objects whose tuples have been read
	next  []origin
}

// foundSet is a set that the subject might be in or, if sure, is in.
type foundSet struct {
	node
	sure bool
}

// origin is where the traversal goes on from: a set that the subject might be in
// or, without a relation, an object that stands for the subject.
type origin struct {
	node
	sure bool
}

func (s *reverse) run(ctx context.Context, subject tuplestore.Subject) error {
	s.found.clear()
	if subject.IsUserset() {
		if s.e.set.object != noObject {
			if at := s.program.at(s.e.key(s.e.set.object).typ, s.e.set.relation); at >= 0 {
				for _, to := range s.inverse.bySet[at] {
					s.enter(s.e.set.object, to.relation, false) // whether it is registered is open
				}
			}
		}
	} else {
		for _, plain := range [2]objectID{s.e.subject, s.e.everyone} {
			if plain != noObject {
				s.next = append(s.next, origin{node{plain, noRelation}, true})
			}
		}
		if s.e.subject != noObject {
			for _, to := range s.inverse.bySelf[s.e.key(s.e.subject).typ] {
				s.enter(s.e.subject, to.relation, false) // whether it is registered is open
			}
		}
	}
	for len(s.next) > 0 {
		level := s.next
		s.next = nil
		if err := s.fetch(ctx, level); err != nil {
			return err
		}
		for _, from := range level {
			s.follow(from)
			if err := s.e.spent(); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetch reads the tuples that name the objects of a level.
func (s *reverse) fetch(ctx context.Context, level []origin) error {
	if s.reader == nil {
		return nil
	}
	for _, from := range level {
		if !s.named[from.object] {
			s.named[from.object] = true
			s.reader.wantNaming(s.graph.object(from.object))
		}
	}
	read, err := s.reader.read(ctx, s.graph)
	s.e.budget -= stepsToRead * read
	return err
}

// follow enters every set that the origin is named in, or links to.
func (s *reverse) follow(from origin) {
	s.e.budget--
	if s.extra == nil || s.extra.own || from.object < s.extra.first {
		s.followTuples(from, s.graph.back[from.object])
	}
	if s.extra != nil {
		s.followTuples(from, s.extra.back[from.object])
	}
}

func (s *reverse) followTuples(from origin, tuples []backEdge) {
	for _, t := range tuples {
		if s.e.budget--; s.e.spent() != nil {
			return
		}
		at := s.program.at(s.e.key(t.from).typ, t.relation)
		if at < 0 {
			continue
		}
		sure := from.sure && !s.hasTerms(t)
		if t.as == from.relation {
			for _, to := range s.inverse.byTuple[at] {
				s.enter(t.from, to.relation, sure && to.sure)
			}
		}
		if from.relation == noRelation {
			continue
		}
		for _, to := range s.inverse.byLink[at] {
			if to.computed == from.relation {
				s.enter(t.from, to.relation, sure && to.sure)
			}
		}
	}
}

// hasTerms reports whether a tuple might stand on terms.
func (s *reverse) hasTerms(t backEdge) bool {
	below, above := s.e.edges(t.from, t.relation)
	return below.termed() != nil || above.termed() != nil
}

// enter notes that the subject might be in a set, or surely is.
func (s *reverse) enter(object objectID, relation relationID, sure bool) {
	if at := s.program.at(s.e.key(object).typ, relation); at < 0 || !s.towards[at] {
		return
	}
	to := node{object, relation}
	key := goalKey(object, what(relation))
	if slot, known := s.found.slot(key); !known {
		s.found.put(slot, key, int32(len(s.sets)))
		s.sets = append(s.sets, foundSet{to, sure})
		s.e.listed()
	} else {
		set := &s.sets[slot.goal]
		if set.sure || !sure {
			return
		}
		set.sure = true
	}
	s.next = append(s.next, origin{to, sure})
}
