package engine

import "errors"

// Most questions need no proof and meet no logic: intersections, exclusions,
// intersection arrows.
// They ask whether a path leads from a resource to the subject, and that is
// searched for here, with nothing kept but the places that were come to. Places
// are taken from both ends of the queue in turn: so a search takes at most twice as
// long as breadth first, which finds what is near, and as depth first, which finds
// what many ways lead to. A search that meets more than unions is given up, and the
// question put to [evaluation.run].
//
// The questions of a batch share what they find out. A place from which the
// subject was reached is proven. All places of a search that found nothing lead
// nowhere. The others of a search that ended early are open, and looked at again.

// place is a rule's set for an object that a search has come to.
type place struct {
	object objectID
	rule   int32
	from   int32 // the place that led here; -1 for the question's own
	search int32 // the last one that came here
	proven bool
}

// errNotReachability: the question is about more than reachability.
var errNotReachability = errors.New("logic was met")

// few is how many places are looked through from end to end. Most questions come
// to no more, and do without a table.
const few = 8

// searchable reports whether questions may be answered by [evaluation.reaches].
func (e *evaluation) searchable() bool {
	return e.fetch == nil && e.extra == nil && !e.explain && !e.isSet
}

// reaches reports whether the subject is in the set that a rule gives for an
// object. It fails with errNotReachability, or as [evaluation.spent] does.
func (e *evaluation) reaches(object objectID, rule int32) (bool, error) {
	if e.program.rules[rule].mixed.Load() {
		return false, errNotReachability
	}
	if e.subject == noObject && e.everyone == noObject {
		return false, nil // no tuple names the subject
	}
	search := int32(len(e.failed))
	e.failed = append(e.failed, false)
	e.queue = e.queue[:0]
	if e.enter(object, rule, -1) {
		return true, nil
	}
	for next, turn := 0, 0; next < len(e.queue); turn++ {
		at := e.queue[next]
		if turn%2 == 0 {
			next++
		} else {
			last := len(e.queue) - 1
			at, e.queue = e.queue[last], e.queue[:last]
		}
		proven, err := e.leads(at)
		if err == errNotReachability {
			if !e.undecided {
				e.program.rules[rule].mixed.Store(true) // so that it is not tried again
			}
			e.undecided = false
			return false, err
		}
		if err := e.spent(); err != nil {
			return false, err
		}
		if proven {
			for ; at >= 0; at = e.places[at].from {
				e.places[at].proven = true
			}
			return true, nil
		}
	}
	e.failed[search] = true
	return false, nil
}

// enter puts a place on the queue, unless it is known where it leads or it is
// there already. It reports whether it leads to the subject.
func (e *evaluation) enter(object objectID, rule, from int32) bool {
	search := int32(len(e.failed)) - 1
	i := e.placeOf(object, rule)
	p := &e.places[i]
	switch {
	case p.search < 0: // a new one
	case p.proven:
		return true
	case p.search == search || e.failed[p.search]:
		return false
	}
	p.search, p.from = search, from
	e.queue = append(e.queue, i)
	return false
}

// placeOf finds or makes the place of a rule and an object.
func (e *evaluation) placeOf(object objectID, rule int32) int32 {
	n := int32(len(e.places))
	if n < few {
		for i := range e.places {
			if p := &e.places[i]; p.object == object && p.rule == rule {
				return int32(i)
			}
		}
	} else {
		if n == few {
			e.placed.clear()
			for i := range e.places {
				e.tabulate(&e.places[i], int32(i))
			}
		}
		key := goalKey(object, what(rule))
		slot, found := e.placed.slot(key)
		if found {
			return slot.goal
		}
		e.placed.put(slot, key, n)
	}
	e.places = append(e.places, place{object: object, rule: rule, search: -1})
	return n
}

func (e *evaluation) tabulate(p *place, i int32) {
	key := goalKey(p.object, what(p.rule))
	slot, _ := e.placed.slot(key)
	e.placed.put(slot, key, i)
}

// leads looks at the tuples of a place's object: first whether one names the
// subject, and then where the others lead. It reports whether the subject is
// reached.
func (e *evaluation) leads(at int32) (bool, error) {
	p := &e.places[at]
	e.budget--
	r := &e.program.rules[p.rule]
	if len(r.logic) > 0 {
		return false, errNotReachability
	}
	if r.self && p.object == e.subject {
		return true, nil
	}
	o := &e.graph.objects[p.object]
	further := false
	for i := range int(o.n) {
		found := o.at(i)
		switch relation := found.relation; {
		case relation&manyFlag != 0:
			further = true
			if view := e.graph.view(found); r.isDirect(view.relation) && e.named(&view) != noObject {
				return true, nil
			}
		case !r.isDirect(relation):
			further = true
		case objectID(found.to) == e.subject || objectID(found.to) == e.everyone:
			return true, nil
		case r.isTupleset(relation):
			further = true
		}
	}
	if !further {
		return false, nil
	}
	for i := range int(o.n) {
		found := o.at(i)
		isMany, relation := found.relation&manyFlag != 0, found.relation&^manyFlag
		if isMany && r.isDirect(relation) {
			view := e.graph.view(found)
			if reached, err := e.leadsByUsersets(at, &view); reached || err != nil {
				return reached, err
			}
		}
		if !r.isTupleset(relation) {
			continue
		}
		for _, a := range r.arrows {
			switch {
			case a.tupleset != relation:
			case isMany:
				view := e.graph.view(found)
				if reached, err := e.leadsByArrow(at, &view, a.computed); reached || err != nil {
					return reached, err
				}
			case e.leadsToComputed(at, objectID(found.to), a.computed):
				return true, nil
			}
		}
	}
	return false, nil
}

// leadsToComputed goes on to a relation of an object that a tupleset links to.
func (e *evaluation) leadsToComputed(at int32, to objectID, computed relationID) bool {
	e.budget--
	child := e.program.rule(e.graph.objects[to].typ, computed)
	return child != noRule && e.enter(to, child, at)
}

// leadsByUsersets looks at the tuples of one relation that name usersets, and at
// those on terms.
func (e *evaluation) leadsByUsersets(at int32, found *edges) (bool, error) {
	for _, us := range found.usersets() {
		if e.leadsTo(at, us) {
			return true, nil
		}
		if err := e.spent(); err != nil {
			return false, err
		}
	}
	if found.termed() == nil {
		return false, nil
	}
	of := e.places[at].object
	for _, plain := range [2]objectID{e.subject, e.everyone} {
		if on, ok := found.termed()[subject{plain, noRelation}]; ok {
			if holds := e.decides(of, on, certain); holds || e.undecided {
				return holds, e.decidable()
			}
		}
	}
	for to, on := range found.termed() {
		e.budget--
		if err := e.spent(); err != nil {
			return false, err
		}
		if !to.isUserset() {
			continue
		}
		holds := e.decides(of, on, certain)
		if err := e.decidable(); err != nil {
			return false, err
		}
		if holds && e.leadsTo(at, userset(to)) {
			return true, nil
		}
	}
	return false, nil
}

// decidable fails if terms were met that could not be decided.
func (e *evaluation) decidable() error {
	if e.undecided {
		return errNotReachability
	}
	return nil
}

// leadsTo goes on to a userset. One that has nothing but members of its own is
// looked into at once.
func (e *evaluation) leadsTo(at int32, us userset) bool {
	e.budget--
	child := e.program.rule(e.graph.objects[us.object].typ, us.relation)
	if child == noRule {
		return false
	}
	if r := &e.program.rules[child]; r.leaf {
		members := e.graph.edges(us.object, r.direct[0])
		if e.named(&members) != noObject {
			return true
		}
		if len(members.usersets()) == 0 && members.termed() == nil {
			return false
		}
	}
	return e.enter(us.object, child, at)
}

// leadsByArrow goes on to the objects that a tupleset links to.
func (e *evaluation) leadsByArrow(at int32, tupleset *edges, computed relationID) (bool, error) {
	for _, to := range tupleset.more.plain.all() {
		if to != noObject && e.leadsToComputed(at, to, computed) {
			return true, nil
		}
		if err := e.spent(); err != nil {
			return false, err
		}
	}
	for _, us := range tupleset.usersets() {
		if e.leadsToComputed(at, us.object, computed) {
			return true, nil
		}
		if err := e.spent(); err != nil {
			return false, err
		}
	}
	of := e.places[at].object
	for to, on := range tupleset.termed() {
		e.budget--
		if err := e.spent(); err != nil {
			return false, err
		}
		holds := e.decides(of, on, certain)
		if err := e.decidable(); err != nil {
			return false, err
		}
		if holds && e.leadsToComputed(at, to.object, computed) {
			return true, nil
		}
	}
	return false, nil
}
