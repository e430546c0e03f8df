package enginetest

import (
	"fmt"
	"iter"
	"maps"
	"strings"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Oracle answers the same questions as the engine in the naive way: for one subject it
// computes the whole table of the nodes that hold, from the definitions alone. It shares no
// code with the compiler or the engine.
//
// The sets are the least ones that satisfy the rewrites. With exclusions, the table is the
// alternating fixpoint (van Gelder 1989) of under- and overestimates. They agree for every
// schema whose exclusions are not recursive. Nodes for which they differ depend on their
// own negation. Each exclusion is an atom of the table, also if it is subtracted by another
// one: a double negation does not cancel out.
type Oracle struct {
	Types  []schema.Type // system types included by NewOracle
	Tuples map[tuplestore.Tuple]bool
	// Suspended are nodes whose exclusions subtract nothing.
	Suspended map[tuplestore.Node]bool

	named map[tuplestore.Node][]tuplestore.Subject // Tuples by node, while it answers
}

// NewOracle starts without tuples.
func NewOracle(types []schema.Type) *Oracle {
	direct := func(names ...string) (list []schema.Relation) {
		for _, name := range names {
			list = append(list, schema.Relation{Name: name})
		}
		return list
	}
	all := append([]schema.Type{
		{Name: schema.UserType, Relations: direct(schema.ActAs)},
		{Name: schema.ApplicationType, Relations: direct(schema.ActAs, schema.Exchange, schema.ActAsUser, schema.ActAsApplication, schema.Impersonator)},
		{Name: schema.GroupType, Relations: direct(schema.GroupMember)},
		{Name: schema.ScopeType, Relations: direct(schema.ScopeHolder)},
		{Name: schema.AudienceType, Relations: direct(schema.AudienceCaller, schema.AudienceExchanger)},
		{Name: schema.WebhookSubscriptionType, Relations: append(direct(schema.WebhookOwner), schema.Relation{
			Name: schema.WebhookViewer, Rewrites: []schema.Rewrite{{Kind: schema.This}, {Kind: schema.Computed, Relation: schema.WebhookOwner}},
		})},
		{Name: schema.WorkloadIdentityType},
	}, types...)
	return &Oracle{Types: all, Tuples: map[tuplestore.Tuple]bool{}}
}

// Holds returns every node that the subject is in, and the nodes that depend on their own
// negation.
func (o *Oracle) Holds(subject tuplestore.Subject) (holds, cyclic map[tuplestore.Node]bool) {
	o.named = map[tuplestore.Node][]tuplestore.Subject{}
	for t := range o.Tuples {
		o.named[t.Node()] = append(o.named[t.Node()], t.Subject)
	}
	under := map[tuplestore.Node]bool{}
	for {
		over := o.least(subject, under)
		next := o.least(subject, over)
		if len(next) == len(under) { // it only grows
			maps.DeleteFunc(over, func(n tuplestore.Node, _ bool) bool { return next[n] || isExclusion(n) })
			maps.DeleteFunc(next, func(n tuplestore.Node, _ bool) bool { return isExclusion(n) })
			return next, over
		}
		under = next
	}
}

// least computes the least sets if the subtracted sides are those of assumed.
func (o *Oracle) least(subject tuplestore.Subject, assumed map[tuplestore.Node]bool) map[tuplestore.Node]bool {
	holds := map[tuplestore.Node]bool{}
	objects := map[tuplestore.Object]bool{}
	for t := range o.Tuples {
		objects[t.Object] = true
		objects[t.Subject.Object()] = true
	}
	objects[subject.Object()] = true
	for grown := true; grown; {
		grown = false
		for object := range objects {
			t := o.typ(object.Type)
			if t == nil {
				continue
			}
			for i := range t.Relations {
				node := tuplestore.Node{Object: object, Relation: t.Relations[i].Name}
				if !holds[node] && o.in(subject, node, &t.Relations[i], holds, assumed) {
					holds[node] = true
					grown = true
				}
				for j := range t.Relations[i].Rewrites {
					for rw := range exclusions(&t.Relations[i].Rewrites[j]) {
						if atom := exclusion(node, rw); !holds[atom] && o.rewrite(subject, node, rw, holds, assumed) {
							holds[atom] = true
							grown = true
						}
					}
				}
			}
		}
	}
	return holds
}

// exclusion is the atom of an exclusion within the rewrite of a node.
func exclusion(n tuplestore.Node, rw *schema.Rewrite) tuplestore.Node {
	return tuplestore.Node{Object: n.Object, Relation: fmt.Sprintf("%s%s%p", n.Relation, exclusionMark, rw)}
}

const exclusionMark = " exclusion " // no relation has a space

func isExclusion(n tuplestore.Node) bool { return strings.Contains(n.Relation, exclusionMark) }

// exclusions are all exclusions in a rewrite.
func exclusions(rw *schema.Rewrite) iter.Seq[*schema.Rewrite] {
	return func(yield func(*schema.Rewrite) bool) {
		var visit func(*schema.Rewrite) bool
		visit = func(rw *schema.Rewrite) bool {
			if rw.Kind == schema.Exclusion {
				return yield(rw) && visit(rw.Base) && visit(rw.Subtract)
			}
			for i := range rw.Children {
				if !visit(&rw.Children[i]) {
					return false
				}
			}
			return true
		}
		visit(rw)
	}
}

func (o *Oracle) typ(name string) *schema.Type {
	for i := range o.Types {
		if o.Types[i].Name == name {
			return &o.Types[i]
		}
	}
	return nil
}

// in reports whether the subject is in a node, given the nodes known to hold.
func (o *Oracle) in(subject tuplestore.Subject, node tuplestore.Node, r *schema.Relation, holds, assumed map[tuplestore.Node]bool) bool {
	if subject.IsUserset() && subject.Object() == node.Object && subject.Relation == node.Relation {
		return true // every userset contains itself
	}
	if len(r.Rewrites) == 0 {
		return o.direct(subject, node, holds)
	}
	for i := range r.Rewrites {
		if o.rewrite(subject, node, &r.Rewrites[i], holds, assumed) {
			return true
		}
	}
	return false
}

func (o *Oracle) rewrite(subject tuplestore.Subject, node tuplestore.Node, rw *schema.Rewrite, holds, assumed map[tuplestore.Node]bool) bool {
	switch rw.Kind {
	case schema.This:
		return o.direct(subject, node, holds)
	case schema.Computed:
		return holds[tuplestore.Node{Object: node.Object, Relation: rw.Relation}]
	case schema.Self:
		return subject == tuplestore.Subject{Type: node.Object.Type, ID: node.Object.ID} && subject.ID != tuplestore.Wildcard
	case schema.TupleToUserset:
		if rw.Mode == schema.All {
			return o.all(node, rw, holds)
		}
		for _, s := range o.named[tuplestore.Node{Object: node.Object, Relation: rw.Tupleset}] {
			if holds[tuplestore.Node{Object: s.Object(), Relation: rw.Computed}] {
				return true
			}
		}
		return false
	case schema.Union:
		for i := range rw.Children {
			if o.rewrite(subject, node, &rw.Children[i], holds, assumed) {
				return true
			}
		}
		return false
	case schema.Intersection:
		for i := range rw.Children {
			if !o.rewrite(subject, node, &rw.Children[i], holds, assumed) {
				return false
			}
		}
		return true
	case schema.Exclusion:
		return o.rewrite(subject, node, rw.Base, holds, assumed) &&
			(o.Suspended[node] || !o.subtracted(subject, node, rw.Subtract, assumed))
	}
	panic("unknown rewrite " + rw.Kind)
}

// subtracted reports whether the subject is in a subtracted rewrite, by the table of all atoms.
func (o *Oracle) subtracted(subject tuplestore.Subject, node tuplestore.Node, rw *schema.Rewrite, table map[tuplestore.Node]bool) bool {
	switch rw.Kind {
	case schema.Exclusion:
		return table[exclusion(node, rw)]
	case schema.Union:
		for i := range rw.Children {
			if o.subtracted(subject, node, &rw.Children[i], table) {
				return true
			}
		}
		return false
	case schema.Intersection:
		for i := range rw.Children {
			if !o.subtracted(subject, node, &rw.Children[i], table) {
				return false
			}
		}
		return true
	}
	return o.rewrite(subject, node, rw, table, nil)
}

// all reports whether the computed relation holds at every object that the tupleset links
// to. There must be at least one.
func (o *Oracle) all(node tuplestore.Node, rw *schema.Rewrite, holds map[tuplestore.Node]bool) bool {
	links := o.named[tuplestore.Node{Object: node.Object, Relation: rw.Tupleset}]
	for _, s := range links {
		if !holds[tuplestore.Node{Object: s.Object(), Relation: rw.Computed}] {
			return false
		}
	}
	return len(links) > 0
}

// direct reports whether a tuple of the node names the subject, its wildcard, or a userset
// that it is in.
func (o *Oracle) direct(subject tuplestore.Subject, node tuplestore.Node, holds map[tuplestore.Node]bool) bool {
	for _, s := range o.named[node] {
		everyone := s.ID == tuplestore.Wildcard && s.Type == subject.Type && !subject.IsUserset()
		if s == subject || everyone || s.IsUserset() && holds[tuplestore.Node{Object: s.Object(), Relation: s.Relation}] {
			return true
		}
	}
	return false
}

// Check answers as the engine's Check does.
func (o *Oracle) Check(subject tuplestore.Subject, node tuplestore.Node) Verdict {
	holds, cyclic := o.Holds(subject)
	switch {
	case !o.Tuples[tuplestore.Presence(node.Object)]:
		return NotFound
	case cyclic[node]:
		return Cyclic
	case holds[node]:
		return Allowed
	}
	return Denied
}
