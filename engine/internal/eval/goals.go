package eval

import "stonetown/engine/internal/graph"

// goal is a question under evaluation: is the subject in the set that a rule, or logic,
// gives for an object?
type goal struct {
	object graph.ObjectID
	part   part
	// parents heads the list of links to the goals that depend on this one.
	parents int32
	// missing counts the operands of an intersection, or the linked objects of an
	// intersection arrow, that are not proven.
	missing int32
	proof   proof
	proven  bool
	root    bool // the goal of a question
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

// part is the part of the program that a goal evaluates: a rule, which is a union, or
// logic, which combines rules; in one of two modes.
type part int32

// mode is how tuples count whose condition cannot be decided.
type mode int32

const (
	certain  mode = 0 // they do not hold
	possible mode = 1 // they hold
)

func rulePart(rule int32, m mode) part   { return part(rule<<2 | int32(m)<<1) }
func logicPart(logic int32, m mode) part { return part(logic<<2 | int32(m)<<1 | 1) }

func (p part) isLogic() bool { return p&1 == 1 }
func (p part) mode() mode    { return mode(p >> 1 & 1) }
func (p part) index() int32  { return int32(p >> 2) }

func goalKey(object graph.ObjectID, p part) uint64 { return graph.TableKey(object, uint32(p)) }

// proof is why a goal holds: enough to follow its path again for the reasons.
type proof struct {
	step step
	// relation is the tuple's relation, for steps along a tuple.
	relation graph.RelationID
	// child is the goal that the step led to, or -1.
	child int32
	// subject is the tuple's plain subject, for byTuple.
	subject graph.ObjectID
}

// step is a kind of proof.
type step uint8

const (
	byIdentity step = iota // the subject is the userset itself
	bySelf                 // the subject is the object itself
	byTuple                // a tuple names the subject or its wildcard
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
	// step is the proof that the parent gets from the goal, and operand the operand that
	// the goal is for logic.
	step     step
	operand  int16
	relation graph.RelationID
}
