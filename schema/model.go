// Package schema is the model of resource types and its compiler. It has no I/O and no
// tuples.
//
// A [Type] lists [Relation]s. A relation is a set of subjects, given by userset rewrites
// (Zanzibar, §2.3.1) over the tuples of the same resource and of linked resources. The
// types of a tenant form one document ([Encode], [Decode]), which is validated and compiled
// as a whole because rewrites refer to other types.
//
// [Compile] translates the document into [Rule]s, which an evaluation traverses. The union
// of all that a relation gets from its own resource is flattened into one rule, so one
// visit of a resource covers all relations that it includes. Only intersections, exclusions
// and intersection arrows remain as [Logic] between rules.
//
// Recursion through exclusions may have no answer: "x is a viewer unless x is a viewer".
// Every relation therefore has a stratum, higher than the strata of the relations that it
// subtracts and not lower than those that it includes. A relation with open subject types
// takes only usersets of its own stratum or below, so that tuples cannot create recursion
// that the document does not have.
//
// A document in which a relation reaches itself through an exclusion is refused if the
// cycle stays within one resource. If tuples lead around it, as in "a viewer of a folder,
// unless a viewer of its parent", the relations of the cycle share a stratum and the
// exclusion is marked ([Logic].Local): folders form a tree, in which each answer depends
// only on the ancestors.
package schema

import (
	"time"

	"stonetown/schema/condition"
)

// Type is a resource type: the relations of its resources and how each is derived.
type Type struct {
	Name string
	// Stored is the name of the type in stored tuples; empty: Name. See [StoredNames].
	Stored      string
	Description string
	// Deprecated says what to use instead; empty: the type is not deprecated.
	Deprecated string
	Relations  []Relation
	// Actions maps an action to the relation that permits it. It takes precedence over the
	// convention (see [Compiled.ActionRelation]).
	Actions map[string]string
	// Conditions may be set on tuples of any relation of the type, which then hold only
	// while the condition is met.
	Conditions []condition.Definition

	CreatedAt, UpdatedAt time.Time
}

// Relation is a named set of subjects of each resource of a type.
type Relation struct {
	Name string
	// Stored is the name of the relation in stored tuples; empty: Name.
	Stored string
	// Rewrites are the sources of the set, united. Without any, the relation is direct: its
	// set is the subjects of its tuples.
	Rewrites []Rewrite
	// Subjects limits the subjects of tuples of this relation. Nil allows every known type
	// and every userset that cannot lead back through an exclusion (see [Compiled.Allows]),
	// but no wildcard: to open a relation to everyone must be explicit.
	Subjects []SubjectType
	// Cardinality is how many tuples of this relation a resource may have. The zero value is
	// [Many].
	Cardinality Cardinality
	// OnSecond is what becomes of a second tuple if the cardinality is [One]. The zero value is
	// [Refuse].
	OnSecond OnSecond
	// Deprecated says what to use instead; empty: the relation is not deprecated.
	Deprecated string
}

// Cardinality is a number of tuples of one relation of a resource.
type Cardinality string

const (
	Many Cardinality = "many" // any number
	One  Cardinality = "one"  // at most one
)

// OnSecond is what a write does that names a second subject in a relation of cardinality [One].
// Tuples that have expired do not count, and end with the write.
type OnSecond string

const (
	Refuse  OnSecond = "refuse"  // it fails
	Replace OnSecond = "replace" // it takes the place of the first
)

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
	This           Kind = "this"             // the subjects of the relation's tuples
	Self           Kind = "self"             // the resource itself
	Computed       Kind = "computed"         // another relation of the same resource
	TupleToUserset Kind = "tuple_to_userset" // a relation of linked resources
	Union          Kind = "union"            // any of the children
	Intersection   Kind = "intersection"     // all of the children
	Exclusion      Kind = "exclusion"        // base without subtract
)

// Mode is the number of linked resources in which the computed relation of a TupleToUserset
// must hold; the zero value is [Any].
type Mode string

const (
	Any Mode = "any" // one suffices
	All Mode = "all" // all, and at least one
)

// Rewrite is one rewrite of a relation. Its kind determines which fields it has.
type Rewrite struct {
	Kind     Kind
	Relation string    // Computed: the other relation
	Tupleset string    // TupleToUserset: the relation that links, for example parent
	Computed string    // TupleToUserset: the relation of the linked resources
	Mode     Mode      // TupleToUserset: whether it must hold in one or all of them
	Children []Rewrite // Union, Intersection
	Base     *Rewrite  // Exclusion
	Subtract *Rewrite  // Exclusion
}
