package engine

import "math/bits"

// goal is a question under evaluation: is the subject in the set that a rule,
// or an intersection or exclusion, gives for an object?
type goal struct {
	object objectID
	what   what
	// parents heads the list of links to the goals that asked for this one.
	parents int32
	// missing counts the operands of an intersection, or the linked objects of an
	// intersection arrow, that are not proven.
	missing int32
	proof   proof
	proven  bool
	root    bool // a query asked it
	based   bool // exclusion: the base is proven
	state   state
}

// state is what settling recursive exclusions found out about a goal that is not
// proven (recursion.go).
type state uint8

const (
	unsettled state = iota
	cleared         // an exclusion whose subtracted side is refuted
	refuted         // does not hold
	cyclic          // depends on its own negation
)

// what is the question of a goal: a rule, which is a union, or logic, which
// combines rules; in one of two modes.
type what int32

// mode says how tuples count whose terms cannot be decided.
type mode int32

const (
	certain  mode = 0 // they do not hold
	possible mode = 1 // they hold
)

func ruleGoal(rule int32, m mode) what   { return what(rule<<2 | int32(m)<<1) }
func logicGoal(logic int32, m mode) what { return what(logic<<2 | int32(m)<<1 | 1) }

func (w what) isLogic() bool { return w&1 == 1 }
func (w what) mode() mode    { return mode(w >> 1 & 1) }
func (w what) index() int32  { return int32(w >> 2) }

// proof is why a goal holds: enough to walk the path again for its reasons.
type proof struct {
	step step
	// relation is the tuple's relation, for steps along a tuple.
	relation relationID
	// child is the goal that the step led to, or -1.
	child int32
	// subject is the tuple's plain subject, for byTuple.
	subject objectID
}

// step is a kind of proof.
type step uint8

const (
	byIdentity step = iota // the subject is the userset that was asked about
	bySelf                 // the subject is the object itself
	byTuple                // a tuple names the subject, or everyone
	byUserset              // a tuple names a userset, which the child proved
	byArrow                // a tuple links to an object, whose relation the child proved
	byLogic                // the child, an intersection or exclusion, is part of the union
	byOperands             // an intersection: all operands, or all linked objects, are proven
	byBase                 // an exclusion: the base is proven, the subtracted side is not
)

// link is an entry of a goal's list of parents.
type link struct {
	parent int32
	next   int32
	// how the parent uses the goal: the proof it gets, or for logic the operand.
	step     step
	operand  int16
	relation relationID
}

func goalKey(object objectID, w what) uint64 {
	return uint64(object)<<32 | uint64(uint32(w))
}

// goalTable finds goals by object and question. Clearing it costs nothing: an
// entry counts only if it bears the current generation.
type goalTable struct {
	slots      []goalSlot
	used       int
	generation uint32
}

type goalSlot struct {
	key        uint64
	goal       int32
	generation uint32
}

func (t *goalTable) clear() {
	t.used = 0
	t.generation++
	if t.slots == nil || t.generation == 0 {
		t.slots = make([]goalSlot, max(64, len(t.slots)))
		t.generation = 1
	}
}

// slot returns where the key is or belongs; found tells which.
func (t *goalTable) slot(key uint64) (s *goalSlot, found bool) {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	high, low := bits.Mul64(key, 0x9e3779b97f4a7c15) // so that every bit of the key counts
	for i := (high ^ low) & mask; ; i = (i + 1) & mask {
		s = &t.slots[i]
		if s.generation != t.generation {
			return s, false
		}
		if s.key == key {
			return s, true
		}
	}
}

func (t *goalTable) put(s *goalSlot, key uint64, goal int32) {
	*s = goalSlot{key, goal, t.generation}
	t.used++
}

func (t *goalTable) grow() {
	old := t.slots
	t.slots = make([]goalSlot, 2*len(old))
	t.used = 0
	for _, s := range old {
		if s.generation == t.generation {
			to, _ := t.slot(s.key)
			t.put(to, s.key, s.goal)
		}
	}
}
