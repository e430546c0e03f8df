// Package schema is the model of resource types and its compiler. It is pure:
// no I/O, no tuples.
//
// A [Type] lists [Relation]s; a relation is a set of subjects, given by userset
// rewrites (Zanzibar, §2.3.1) over the tuples of the same resource and of
// resources it links to. The types of a tenant together form one document
// ([Encode], [Decode]), validated and compiled as a whole, because rewrites
// reach across types.
//
// [Compile] turns the document into [Rule]s, the form an evaluation walks. The
// union of everything a relation gets from its own resource is flattened into
// one rule, so a single visit of a resource answers for all relations that
// matter there; only intersections, exclusions and arrows that ask all of the
// linked resources remain as [Logic] between rules.
//
// Exclusion makes recursion dangerous: "x is a viewer unless x is a viewer" has
// no answer. Every relation therefore has a stratum, higher than that of
// anything it subtracts and no lower than that of anything it includes. A
// relation with open subject types takes only usersets of its own stratum or
// below, so that tuples cannot create recursion where the document has none.
//
// A document in which a relation reaches itself through an exclusion is refused
// if the cycle stays within one resource. If tuples lead around it, as in "a
// viewer of a folder, unless a viewer of its parent", the relations of the cycle
// share a stratum and the exclusion is marked ([Logic].Local): folders form a
// tree, in which each answer depends only on those further up.
package schema

import (
	"time"

	"stonetown/schema/condition"
)

// Type is a resource type: what relations its resources have and how each is
// derived.
type Type struct {
	Name        string
	Description string
	Relations   []Relation
	// Actions maps an action to the relation that permits it, ahead of the
	// convention (see [Compiled.ActionRelation]).
	Actions map[string]string
	// Conditions may stand on tuples of any relation of the type, which then
	// hold only where the condition is met.
	Conditions []condition.Definition

	CreatedAt, UpdatedAt time.Time
}

// Relation is a named set of subjects of each resource of a type.
type Relation struct {
	Name string
	// Rewrites are the sources of the set, united. None at all means a direct
	// relation: the set is what tuples name.
	Rewrites []Rewrite
	// Subjects limits what tuples of this relation may name. Nil allows every
	// known type and every userset that cannot lead back through an exclusion
	// (see [Compiled.Allows]), but no wildcard: opening a relation to everyone
	// has to be said.
	Subjects []SubjectType
}

// SubjectType is a kind of subject that a relation allows. Its text form is
// type, type#relation or type:*.
type SubjectType struct {
	Type     string
	Relation string // a userset of this relation; empty for plain subjects
	Wildcard bool   // every subject of the type at once
}

// Kind names a userset rewrite, as in the Zanzibar paper (§2.3.1).
type Kind string

const (
	This           Kind = "this"             // the subjects that tuples name
	Self           Kind = "self"             // the resource itself
	Computed       Kind = "computed"         // another relation of the same resource
	TupleToUserset Kind = "tuple_to_userset" // a relation of the resources that a relation names
	Union          Kind = "union"            // any of the children
	Intersection   Kind = "intersection"     // all of the children
	Exclusion      Kind = "exclusion"        // base without subtract
)

// Mode says of how many linked resources a TupleToUserset asks its computed
// relation; the zero value is [Any].
type Mode string

const (
	Any Mode = "any" // one is enough
	All Mode = "all" // every one, and there has to be one
)

// Rewrite is one rule of a relation. Which fields it has depends on its kind.
type Rewrite struct {
	Kind     Kind
	Relation string    // Computed: the other relation
	Tupleset string    // TupleToUserset: the relation that links, for example parent
	Computed string    // TupleToUserset: the relation asked of what is linked
	Mode     Mode      // TupleToUserset: how many of what is linked have to have it
	Children []Rewrite // Union, Intersection
	Base     *Rewrite  // Exclusion
	Subtract *Rewrite  // Exclusion
}
