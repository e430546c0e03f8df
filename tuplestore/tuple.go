package tuplestore

import (
	"cmp"
	"strings"
)

// Object is an object of relations: a document, a folder, a group. The ID is opaque text of
// the caller. The type has no colon.
type Object struct {
	Type, ID string
}

// String prints type:id.
func (o Object) String() string { return o.Type + ":" + o.ID }

// Compare compares the texts of two objects, without making them. It returns -1, 0 or 1.
func (o Object) Compare(p Object) int {
	if o.Type == p.Type {
		return strings.Compare(o.ID, p.ID)
	}
	// A type that the other one begins with is followed by the colon.
	n := min(len(o.Type), len(p.Type))
	if c := strings.Compare(o.Type[:n], p.Type[:n]); c != 0 || n == 0 {
		return cmp.Or(c, cmp.Compare(len(o.Type), len(p.Type)))
	}
	if len(o.Type) == n {
		return cmp.Compare(':', p.Type[n])
	}
	return cmp.Compare(o.Type[n], ':')
}

// Wildcard is the subject ID that represents every subject of its type.
const Wildcard = "*"

// Subject is the right-hand side of a tuple: an object (Relation empty), every
// object of a type (ID is [Wildcard]) or a userset, the set of subjects that
// have Relation to the object.
type Subject struct {
	Type, ID, Relation string
}

// Object returns the object that the subject names, without its relation.
func (s Subject) Object() Object { return Object{s.Type, s.ID} }

// IsUserset reports whether the subject is a userset.
func (s Subject) IsUserset() bool { return s.Relation != "" }

// String prints type:id or, for a userset, type:id#relation.
func (s Subject) String() string {
	if s.Relation == "" {
		return s.Type + ":" + s.ID
	}
	return s.Type + ":" + s.ID + "#" + s.Relation
}

// Node is one relation of one object. Usersets name nodes, and evaluations visit them.
type Node struct {
	Object   Object
	Relation string
}

// String prints type:id#relation.
func (n Node) String() string { return n.Object.String() + "#" + n.Relation }

// Tuple states that Subject has Relation to Object.
type Tuple struct {
	Object   Object
	Relation string
	Subject  Subject
}

// Node returns the left-hand side of the tuple.
func (t Tuple) Node() Node { return Node{t.Object, t.Relation} }

// Presence returns the tuple that records that an object is registered, whether or not a
// relation names it: the one with an empty relation and an empty subject. It has a history
// as every tuple has, so "this object does not exist" is as consistent as "this subject has
// no access".
func Presence(o Object) Tuple { return Tuple{Object: o} }

// IsPresence reports whether t only registers its object.
func (t Tuple) IsPresence() bool { return t.Relation == "" }

// Qualifier is the expiry and the condition of a tuple. A tuple with the zero value always
// holds. The qualifier is not part of a tuple's identity: two tuples never differ only in
// it.
type Qualifier struct {
	// ExpiresAt is when the tuple expires, in microseconds since 1970; 0: never. An expired
	// tuple stays stored, and readers ignore it.
	ExpiresAt int64
	// Condition names a condition of the object's type that must hold; empty:
	// none.
	Condition string
	// Context is a JSON object with the values for the condition that are stored with the
	// tuple; empty: none.
	Context string
}

// Clone returns a copy with strings of its own.
func (q Qualifier) Clone() Qualifier {
	return Qualifier{q.ExpiresAt, strings.Clone(q.Condition), strings.Clone(q.Context)}
}

// Fact is a tuple with its qualifier.
type Fact struct {
	Tuple
	Qualifier
}

// Compare orders tuples by their primary key: object, relation, subject and the relation of the
// subject, each byte by byte; of objects and subjects, their text type:id. It returns -1, 0 or 1.
func (t Tuple) Compare(u Tuple) int {
	// Each comparison only if those before it find no difference: to sort is much of a bulk load.
	if c := t.Object.Compare(u.Object); c != 0 {
		return c
	}
	if c := strings.Compare(t.Relation, u.Relation); c != 0 {
		return c
	}
	if c := t.Subject.Object().Compare(u.Subject.Object()); c != 0 {
		return c
	}
	return strings.Compare(t.Subject.Relation, u.Subject.Relation)
}

// String prints object#relation@subject, or just the object for a presence.
func (t Tuple) String() string {
	if t.IsPresence() {
		return t.Object.String()
	}
	var b strings.Builder
	b.WriteString(t.Object.String())
	b.WriteByte('#')
	b.WriteString(t.Relation)
	b.WriteByte('@')
	b.WriteString(t.Subject.String())
	return b.String()
}
