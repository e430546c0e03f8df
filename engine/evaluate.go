package engine

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"

	"stonetown/tuplestore"
)

// evaluation answers a batch of questions about one subject on one graph.
//
// It works as Datalog engines do: breadth first it collects the goals that the
// questions lead to, each once however many paths lead there, and from every
// tuple that names the subject it carries proof back along the links to the
// goals that asked. Cycles need no care: a goal met again is just one more
// link. What is unproven when nothing is left to explore is false; only then,
// stratum by stratum, are exclusions answered, since they need to know what is
// false. Exclusions that are recursive, and have no stratum, are answered along
// the tuples (recursion.go). The whole stops as soon as every question is
// answered.
//
// Tuples may stand on terms. One whose condition cannot be decided, for want of
// values, is first taken for absent. Only if such a tuple was met, everything is
// asked once more in two modes: whether it is certain, with what is undecided
// left out, and whether it is possible, with it let in. What is subtracted
// changes the mode. An answer counts if it is certain, or not even possible.
//
// On a resident graph a level is expanded from memory. On a cold one, the
// fetcher first reads, for all goals of the level at once, what they will look
// at, so the number of reads is the depth of the graph and not its size.
type evaluation struct {
	ctx     context.Context
	graph   *graph
	extra   *overlay // the request's own tuples, or nil
	program *program
	terms   terms
	fetch   fetcher // nil: the graph is complete
	budget  int     // steps left: goals expanded, edges followed, conditions evaluated
	limits  limits
	poll    int   // the budget at which to look whether the work has to end
	onTerms int   // steps that conditions took
	ended   error // why the work had to end, or nil

	subject  objectID // a plain subject's number, or noObject; noObject for type:*
	everyone objectID // the number of type:* of the subject's type, or noObject
	set      userset  // a userset subject
	isSet    bool
	explain  bool // keep every step of a proof: no shortcuts
	modes    bool // what is possible is asked apart from what is certain

	goals      []goal
	links      []link
	table      goalTable
	frontier   []int32
	next       []int32
	exclusions []int32
	proven     []int32 // proven, parents not told yet
	undecided  bool    // terms that could not be decided were met

	sought []sought // the resources of the queries, in their order
	linked linked   // for all.go

	recursion recursion // for recursion.go

	// For reachable.go.
	places []place
	placed goalTable // finds places, once there are more than a few
	queue  []int32   // of places
	failed []bool    // by search: whether it has found that nothing leads to the subject

	open    int // roots not decided
	settled int // exclusions up to this stratum are answered
}

// fetcher reads what the frontier's goals will look at into the graph.
type fetcher interface {
	fetch(ctx context.Context, e *evaluation) error
}

var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

// newEvaluation takes an evaluation from the pool; the caller gives it back
// with release.
func newEvaluation(ctx context.Context, g *graph, extra *overlay, p *program, subject tuplestore.Subject, l limits) *evaluation {
	e := evaluations.Get().(*evaluation)
	e.ctx, e.graph, e.extra, e.program = ctx, g, extra, p
	e.budget, e.poll, e.limits = l.now(), l.now(), l
	e.begin()
	e.about(subject)
	return e
}

// about sets the subject that the questions are about.
func (e *evaluation) about(s tuplestore.Subject) {
	e.subject, e.everyone, e.isSet = noObject, noObject, false
	if !s.IsUserset() {
		e.everyone = e.find(tuplestore.Object{Type: s.Type, ID: tuplestore.Wildcard})
		if s.ID != tuplestore.Wildcard {
			e.subject = e.find(s.Object())
		}
		return
	}
	e.isSet = true
	e.set.object = noObject
	if relation, ok := e.graph.relations.numbers[s.Relation]; ok {
		e.set = userset{e.find(s.Object()), relationID(relation)}
	}
}

// begin forgets all questions.
func (e *evaluation) begin() {
	e.goals, e.links, e.frontier, e.next = e.goals[:0], e.links[:0], e.frontier[:0], e.next[:0]
	e.exclusions, e.proven = e.exclusions[:0], e.proven[:0]
	e.table.clear()
	e.open, e.settled, e.undecided, e.modes = 0, -1, false, false
	e.places, e.queue, e.failed, e.sought = e.places[:0], e.queue[:0], e.failed[:0], e.sought[:0]
}

// maxPooled bounds the scratch memory that an evaluation keeps for the next.
const maxPooled = 1 << 16

func (e *evaluation) release() {
	if cap(e.goals) > maxPooled || cap(e.places) > maxPooled {
		return
	}
	clear(e.sought) // their names are the request's
	e.recursion.cycles = nil
	e.begin()
	*e = evaluation{
		goals: e.goals, links: e.links, table: e.table, frontier: e.frontier, next: e.next,
		exclusions: e.exclusions, proven: e.proven,
		places: e.places, placed: e.placed, queue: e.queue, failed: e.failed, sought: e.sought, linked: e.linked,
		recursion: e.recursion,
	}
	evaluations.Put(e)
}

// find returns the number of an object, or noObject.
func (e *evaluation) find(o tuplestore.Object) objectID {
	if e.extra != nil {
		return e.extra.find(o)
	}
	return e.graph.find(o)
}

// key is what a number stands for.
func (e *evaluation) key(id objectID) objectKey {
	if e.extra != nil && !e.extra.own && id >= e.extra.first {
		return e.extra.keys[id-e.extra.first]
	}
	return e.graph.objects[id].key()
}

// object is the object that a number stands for.
func (e *evaluation) object(id objectID) tuplestore.Object {
	key := e.key(id)
	return tuplestore.Object{Type: e.graph.types.names[key.typ], ID: key.id}
}

// isPresent reports whether an object is registered.
func (e *evaluation) isPresent(id objectID) bool {
	if e.extra != nil && (e.extra.present[id] || !e.extra.own && id >= e.extra.first) {
		return e.extra.present[id]
	}
	return e.graph.objects[id].present
}

// edges returns the subjects of a relation of an object, in up to two parts.
func (e *evaluation) edges(id objectID, relation relationID) (below, above edges) {
	if e.extra == nil {
		return e.graph.edges(id, relation), none
	}
	below, above = none, none
	if e.extra.own || id < e.extra.first {
		below = e.graph.edges(id, relation)
	}
	if m := e.extra.edges[node{id, relation}]; m != nil {
		above = edges{relation, noObject, m}
	}
	return below, above
}

// decides reports whether a tuple of an object holds, on its terms.
func (e *evaluation) decides(of objectID, on *tuplestore.Terms, m mode) bool {
	v := e.verdict(of, on)
	return v == met || v == undecided && m == possible
}

// verdict says whether a tuple of an object holds, on its terms, nil for always.
func (e *evaluation) verdict(of objectID, on *tuplestore.Terms) verdict {
	if on == nil {
		return met
	}
	v := e.terms.verdict(e.graph.types.names[e.key(of).typ], on)
	e.budget -= e.terms.steps
	e.onTerms += e.terms.steps
	e.terms.steps = 0
	e.undecided = e.undecided || v == undecided
	return v
}

// ask adds a question and returns its goal.
func (e *evaluation) ask(object objectID, rule int32, m mode) int32 {
	g := e.goal(object, ruleGoal(rule, m))
	if !e.goals[g].root {
		e.goals[g].root = true
		e.open++
	}
	return g
}

// spent reports whether the work has to end: the budget is used up, or nobody
// waits for the answer any more. Every loop asks, since a loop can be over millions
// of tuples.
func (e *evaluation) spent() error {
	if e.budget > e.poll {
		return nil
	}
	return e.look()
}

// look is the part of spent that is rarely needed.
func (e *evaluation) look() error {
	switch {
	case e.ended != nil:
	case e.budget < 0:
		e.ended = e.limits.exceeded(e.onTerms)
	default:
		e.ended = e.ctx.Err()
	}
	if e.ended != nil {
		e.poll = math.MaxInt
		return e.ended
	}
	e.poll = max(e.budget-pollEvery, -1)
	if e.limits.heavy {
		runtime.Gosched() // there may be checks to answer
	}
	return nil
}

// run answers the questions asked.
func (e *evaluation) run() error {
	if e.fetch == nil && !e.isSet && e.subject == noObject && e.everyone == noObject {
		return nil // no tuple names the subject
	}
	for len(e.next) > 0 && e.open > 0 {
		e.frontier, e.next = e.next, e.frontier[:0]
		if e.fetch != nil {
			if err := e.fetch.fetch(e.ctx, e); err != nil {
				return err
			}
		}
		for _, g := range e.frontier {
			if e.goals[g].proven {
				continue
			}
			e.expand(g)
			if err := e.spent(); err != nil {
				return err
			}
			if e.open == 0 {
				return nil
			}
		}
	}
	return e.settle()
}

// goal finds or creates a goal and puts a new one on the next frontier.
func (e *evaluation) goal(object objectID, w what) int32 {
	key := goalKey(object, w)
	slot, found := e.table.slot(key)
	if found {
		return slot.goal
	}
	g := int32(len(e.goals))
	e.table.put(slot, key, g)
	e.goals = append(e.goals, goal{object: object, what: w, parents: -1})
	e.next = append(e.next, g)
	return g
}

// depend makes parent ask for a goal.
func (e *evaluation) depend(object objectID, w what, l link) {
	child := e.goal(object, w)
	if e.goals[child].proven {
		e.tell(child, l)
		return
	}
	l.next = e.goals[child].parents
	e.goals[child].parents = int32(len(e.links))
	e.links = append(e.links, l)
}

// prove marks a goal as holding and carries that to all it decides.
func (e *evaluation) prove(g int32, p proof) {
	e.mark(g, p)
	e.drain()
}

// drain carries what was proven to the goals that asked for it.
func (e *evaluation) drain() {
	for len(e.proven) > 0 {
		child := e.proven[len(e.proven)-1]
		e.proven = e.proven[:len(e.proven)-1]
		for l := e.goals[child].parents; l >= 0; l = e.links[l].next {
			e.tell(child, e.links[l])
		}
	}
}

func (e *evaluation) mark(g int32, p proof) {
	at := &e.goals[g]
	if at.proven {
		return
	}
	at.proven = true
	at.proof = p
	if at.root {
		e.open--
	}
	e.proven = append(e.proven, g)
}

// tell lets a parent know that a goal it asked for is proven.
func (e *evaluation) tell(child int32, l link) {
	parent := &e.goals[l.parent]
	if !parent.what.isLogic() {
		e.mark(l.parent, proof{step: l.step, relation: l.relation, child: child})
		return
	}
	if !e.program.logic[parent.what.index()].isExclusion() {
		if parent.missing--; parent.missing == 0 {
			e.mark(l.parent, proof{step: byOperands, child: -1})
		}
		return
	}
	if l.operand == 0 {
		parent.based = true
		parent.proof.child = child
		e.answerExclusion(l.parent)
	} else {
		parent.missing = -1 // the subtracted side holds
	}
}

// answerExclusion proves an exclusion whose stratum is settled or whose subtracted
// side is refuted, if its base holds and its subtracted side does not.
func (e *evaluation) answerExclusion(g int32) {
	at := &e.goals[g]
	if at.based && at.missing == 0 && (at.state == cleared || e.program.logic[at.what.index()].stratum <= e.settled) {
		e.mark(g, proof{step: byBase, child: at.proof.child})
	}
}

// settle answers the exclusions, lowest stratum first. All exploring is done,
// so what lower strata have not proven is false for good.
func (e *evaluation) settle() error {
	if e.open == 0 {
		return nil
	}
	if e.program.local && slices.ContainsFunc(e.exclusions, e.isLocal) {
		return e.settleRecursive()
	}
	stratum := func(g int32) int { return e.program.logic[e.goals[g].what.index()].stratum }
	slices.SortFunc(e.exclusions, func(a, b int32) int { return stratum(a) - stratum(b) })
	for i := 0; i < len(e.exclusions) && e.open > 0; {
		e.settled = stratum(e.exclusions[i])
		for ; i < len(e.exclusions) && stratum(e.exclusions[i]) == e.settled; i++ {
			e.answerExclusion(e.exclusions[i])
		}
		e.drain()
	}
	return nil
}

// expand looks at everything a goal's set can contain.
func (e *evaluation) expand(g int32) {
	e.budget--
	at := e.goals[g]
	if at.what.isLogic() {
		e.expandLogic(g, at)
		return
	}
	r := &e.program.rules[at.what.index()]
	if e.isSet && at.object == e.set.object && slices.Contains(r.includes, e.set.relation) {
		e.prove(g, proof{step: byIdentity, relation: e.set.relation, child: -1})
		return
	}
	if r.self && at.object == e.subject {
		e.prove(g, proof{step: bySelf, child: -1, subject: at.object})
		return
	}
	for _, relation := range r.direct {
		if e.expandTuples(g, at.object, relation) {
			return
		}
	}
	for _, a := range r.arrows {
		if e.expandArrow(g, at.object, a) {
			return
		}
	}
	for _, id := range r.logic {
		e.depend(at.object, logicGoal(id, at.what.mode()), link{parent: g, step: byLogic})
		if e.drain(); e.goals[g].proven {
			return
		}
	}
}

func (e *evaluation) expandLogic(g int32, at goal) {
	lg := &e.program.logic[at.what.index()]
	switch {
	case lg.isArrow():
		e.expandAll(g, at, lg.arrow)
		return
	case lg.isExclusion():
		e.exclusions = append(e.exclusions, g)
	default:
		e.goals[g].missing = int32(len(lg.operands))
	}
	for i, operand := range lg.operands {
		m := at.what.mode()
		if lg.isExclusion() && i == 1 {
			m = e.subtractedMode(m)
		}
		e.depend(at.object, ruleGoal(operand, m), link{parent: g, operand: int16(i)})
	}
	e.drain()
}

// subtractedMode is in which mode an exclusion asks for what it subtracts.
func (e *evaluation) subtractedMode(m mode) mode {
	if !e.modes {
		return m
	}
	return certain + possible - m // certain is what is not possibly subtracted
}

// expandTuples follows the tuples of one relation of the goal's object. It
// reports whether that is enough: the goal is proven, or the work has to end.
func (e *evaluation) expandTuples(g int32, id objectID, relation relationID) bool {
	below, above := e.edges(id, relation)
	return e.expandEdges(g, &below) || e.expandEdges(g, &above)
}

func (e *evaluation) expandEdges(g int32, found *edges) bool {
	relation, m := found.relation, e.goals[g].what.mode()
	if subject := e.named(found); subject != noObject {
		e.prove(g, proof{step: byTuple, relation: relation, child: -1, subject: subject})
		return true
	}
	for _, us := range found.usersets() {
		if e.budget--; e.spent() != nil {
			return true
		}
		child := e.program.rule(e.key(us.object).typ, us.relation)
		if child == noRule {
			continue
		}
		if e.isLeaf(child) {
			set := e.graph.edges(us.object, e.program.rules[child].direct[0])
			if e.named(&set) != noObject {
				e.prove(g, proof{step: byUserset, relation: relation, child: -1})
				return true
			}
			if len(set.usersets()) == 0 && set.termed() == nil {
				continue
			}
		}
		e.depend(us.object, ruleGoal(child, m), link{parent: g, step: byUserset, relation: relation})
		if e.drain(); e.goals[g].proven {
			return true
		}
	}
	return found.termed() != nil && e.expandTermed(g, found)
}

// expandTermed follows the tuples that stand on terms.
func (e *evaluation) expandTermed(g int32, found *edges) bool {
	of, m := e.goals[g].object, e.goals[g].what.mode()
	for _, plain := range [2]objectID{e.subject, e.everyone} {
		if plain == noObject {
			continue
		}
		e.budget--
		if on, ok := found.termed()[subject{plain, noRelation}]; ok && e.decides(of, on, m) {
			e.prove(g, proof{step: byTuple, relation: found.relation, child: -1, subject: plain})
			return true
		}
	}
	for to, on := range found.termed() {
		if e.budget--; e.spent() != nil {
			return true
		}
		if !to.isUserset() {
			continue
		}
		child := e.program.rule(e.key(to.object).typ, to.relation)
		if child == noRule || !e.decides(of, on, m) {
			continue
		}
		e.depend(to.object, ruleGoal(child, m), link{parent: g, step: byUserset, relation: found.relation})
		if e.drain(); e.goals[g].proven {
			return true
		}
	}
	return false
}

// isLeaf reports whether a rule's set can be looked into without a goal of its
// own: the graph is all there is, no proof is to be told and the subject is
// plain.
func (e *evaluation) isLeaf(rule int32) bool {
	return e.fetch == nil && e.extra == nil && !e.explain && !e.isSet && e.program.rules[rule].leaf
}

// named returns the plain subject of the edges that is, or stands for, the
// subject asked about.
func (e *evaluation) named(at *edges) objectID {
	if e.subject != noObject && at.has(e.subject) {
		return e.subject
	}
	if e.everyone != noObject && at.has(e.everyone) {
		return e.everyone
	}
	return noObject
}

// expandArrow asks the computed relation of every object that the tupleset
// links to. It reports whether that is enough, as expandTuples does.
func (e *evaluation) expandArrow(g int32, id objectID, a arrow) bool {
	below, above := e.edges(id, a.tupleset)
	return e.followLinks(g, &below, a.computed) || e.followLinks(g, &above, a.computed)
}

func (e *evaluation) followLinks(g int32, tupleset *edges, computed relationID) bool {
	of, m := e.goals[g].object, e.goals[g].what.mode()
	for to, on := range tupleset.subjects() {
		if e.budget--; e.spent() != nil {
			return true
		}
		if on != nil && !e.decides(of, on, m) {
			continue
		}
		if child := e.program.rule(e.key(to.object).typ, computed); child != noRule {
			e.depend(to.object, ruleGoal(child, m), link{parent: g, step: byArrow, relation: tupleset.relation})
			if e.drain(); e.goals[g].proven {
				return true
			}
		}
	}
	return false
}
