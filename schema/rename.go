package schema

import (
	"fmt"
	"maps"
	"slices"
)

// Rename is a new name of a type or of a relation. All names of several renames are those
// before all of them.
type Rename struct {
	Type     string // whose relation is renamed; empty: From is a type
	From, To string
}

// String prints from=to or type#from=to.
func (r Rename) String() string {
	if r.Type == "" {
		return r.From + "=" + r.To
	}
	return r.Type + "#" + r.From + "=" + r.To
}

// RenameError is an error in one of several renames.
type RenameError struct {
	Index  int
	Rename Rename
	// Field is what is wrong: type, from or to.
	Field string
	// Reason is a stable word: unknown_type, unknown_relation, name_invalid, name_reserved,
	// duplicate, exists, ambiguous or conflict.
	Reason  string
	Message string
}

func (e *RenameError) Error() string { return e.Message }

// Renaming is the effect of renames on names and types.
type Renaming struct {
	// Types are the types with their new names, and with those in all references.
	Types []Type
	Names

	renames []Rename
}

// Rename renames types and relations. Every action of every resource has the same subjects
// as before if the tuples are renamed, too: also an action that has the name of a renamed
// relation, which becomes an action of the type. Errors: [*RenameError].
func (c *Compiled) Rename(renames []Rename) (*Renaming, error) {
	n := &Renaming{renames: renames, Names: newNames()}
	for i := range renames {
		if err := n.add(c, i); err != nil {
			return nil, err
		}
	}
	if len(renames) == 0 {
		n.Types = c.Types
		return n, nil
	}
	for i := range c.Types {
		t, err := n.rename(c, &c.Types[i])
		if err != nil {
			return nil, err
		}
		n.Types = append(n.Types, t)
	}
	return n, nil
}

// Reverse returns the renaming from the new names to those before. It has no Types.
func (n *Renaming) Reverse() *Renaming {
	back := &Renaming{Names: newNames()}
	for from, to := range n.types {
		back.types[to] = from
	}
	for key, to := range n.relations {
		back.relations[relationKey{n.Type(key.typ), to}] = key.relation
	}
	return back
}

// add validates a rename and adds it.
func (n *Renaming) add(c *Compiled, i int) error {
	r := n.renames[i]
	fail := func(field, reason, format string, args ...any) error {
		return &RenameError{Index: i, Rename: r, Field: field, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	field, name := "from", r.From
	if r.Type != "" {
		field, name = "type", r.Type
	}
	t := c.byName[name]
	taken := c.byName[r.To] != nil
	switch {
	case IsSystem(name):
		return fail(field, "name_reserved", "the type %q is built in", name)
	case t == nil:
		return fail(field, "unknown_type", "resource type %q is not defined", name)
	case !namePattern.MatchString(r.To):
		return fail("to", "name_invalid", "name must match %s", namePattern)
	case r.Type == "" && reserved[r.To] && r.To != r.From:
		return fail("to", "name_reserved", "the name %q is reserved", r.To)
	case r.Type != "":
		if t.relation(r.From) == nil {
			return fail("from", "unknown_relation", "relation %q is not defined on type %q", r.From, r.Type)
		}
		taken = t.relation(r.To) != nil
	}
	for _, earlier := range n.renames[:i] {
		if earlier.Type == r.Type && earlier.From == r.From {
			return fail("from", "duplicate", "%q is renamed a second time", r.From)
		}
		if earlier.Type == r.Type && earlier.To == r.To {
			return fail("to", "duplicate", "%q is a new name for the second time", r.To)
		}
	}
	freed := slices.ContainsFunc(n.renames, func(other Rename) bool { return other.Type == r.Type && other.From == r.To })
	if taken && (!freed || r.From == r.To) {
		return fail("to", "exists", "the name %q is in use", r.To)
	}
	// Subjects may be of types that are not defined. A rename must not define one.
	if t, relation := c.naming(r.To); r.Type == "" && !taken && t != nil {
		return fail("to", "exists", "the name %q is in use: relation %q of type %q names it as a subject", r.To, relation.Name, t.Name)
	}
	if r.Type == "" {
		n.types[r.From] = r.To
	} else {
		n.relations[relationKey{r.Type, r.From}] = r.To
	}
	return nil
}

// naming returns a type with a relation that names subjects of a type; nil if there is none.
func (c *Compiled) naming(typ string) (*Type, *Relation) {
	for i := range c.Types {
		for j := range c.Types[i].Relations {
			relation := &c.Types[i].Relations[j]
			if slices.ContainsFunc(relation.Subjects, func(s SubjectType) bool { return s.Type == typ }) {
				return &c.Types[i], relation
			}
		}
	}
	return nil, nil
}

// rename returns a type with the new names.
func (n *Renaming) rename(c *Compiled, t *Type) (Type, error) {
	out := *t
	out.Name, out.Stored = n.Type(t.Name), t.stored()
	if out.Stored == out.Name {
		out.Stored = ""
	}
	out.Relations = make([]Relation, len(t.Relations))
	for i, r := range t.Relations {
		renamed := r
		renamed.Name, renamed.Stored, renamed.Rewrites = n.Relation(t.Name, r.Name), r.stored(), nil
		if renamed.Stored == renamed.Name {
			renamed.Stored = ""
		}
		for j := range r.Rewrites {
			rw, err := n.rewrite(c, t, &r.Rewrites[j])
			if err != nil {
				return Type{}, err
			}
			renamed.Rewrites = append(renamed.Rewrites, *rw)
		}
		if r.Subjects != nil {
			renamed.Subjects = make([]SubjectType, 0, len(r.Subjects))
			for _, s := range r.Subjects {
				renamed.Subjects = append(renamed.Subjects, SubjectType{Type: n.Type(s.Type), Relation: n.Relation(s.Type, s.Relation), Wildcard: s.Wildcard})
			}
		}
		out.Relations[i] = renamed
	}
	n.keepActions(c, t, &out)
	return out, nil
}

// keepActions maps the actions of a type to the new names of their relations.
func (n *Renaming) keepActions(c *Compiled, t, renamed *Type) {
	renamed.Actions = maps.Clone(t.Actions)
	for action, relation := range t.Actions {
		renamed.Actions[action] = n.Relation(t.Name, relation)
	}
	for _, action := range c.Actions(t.Name) {
		was, _ := c.ActionRelation(t.Name, action)
		want := n.Relation(t.Name, was)
		if is, ok := renamed.actionRelation(action); ok && is == want {
			continue
		}
		if renamed.Actions == nil {
			renamed.Actions = map[string]string{}
		}
		renamed.Actions[action] = want
	}
}

// rewrite returns a rewrite of a type with the new names.
func (n *Renaming) rewrite(c *Compiled, t *Type, rw *Rewrite) (*Rewrite, error) {
	if rw == nil {
		return nil, nil
	}
	if rw.Kind == TupleToUserset {
		return n.arrow(c, t, rw)
	}
	out := *rw
	if rw.Kind == Computed {
		out.Relation = n.Relation(t.Name, rw.Relation)
	}
	out.Children = nil
	for i := range rw.Children {
		child, err := n.rewrite(c, t, &rw.Children[i])
		if err != nil {
			return nil, err
		}
		out.Children = append(out.Children, *child)
	}
	var err error
	if out.Base, err = n.rewrite(c, t, rw.Base); err == nil {
		out.Subtract, err = n.rewrite(c, t, rw.Subtract)
	}
	return &out, err
}

// arrow returns a TupleToUserset with the new names. Its computed relation can have got
// different ones, because it is a relation of several types: then it becomes the union of
// these.
func (n *Renaming) arrow(c *Compiled, t *Type, rw *Rewrite) (*Rewrite, error) {
	linked := c.linked(t.relation(rw.Tupleset))
	var names []string
	for _, l := range linked {
		if name := n.Relation(l.Name, rw.Computed); l.relation(rw.Computed) != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = []string{rw.Computed}
	}
	// A name must not lead to a relation that the arrow did not have.
	leadsAstray := func(name string) bool {
		return slices.ContainsFunc(linked, func(l *Type) bool {
			return slices.ContainsFunc(l.Relations, func(r Relation) bool {
				return r.Name != rw.Computed && n.Relation(l.Name, r.Name) == name
			})
		})
	}
	if len(names) > 1 && rw.Mode == All || slices.ContainsFunc(names, leadsAstray) {
		return nil, n.ambiguous(t, rw, names)
	}
	slices.Sort(names)
	arrows := make([]Rewrite, len(names))
	for i, name := range names {
		arrows[i] = Rewrite{Kind: TupleToUserset, Tupleset: n.Relation(t.Name, rw.Tupleset), Computed: name, Mode: rw.Mode}
	}
	if len(arrows) == 1 {
		return &arrows[0], nil
	}
	return &Rewrite{Kind: Union, Children: arrows}, nil
}

// ambiguous returns the error of an arrow that needs names which it cannot have.
func (n *Renaming) ambiguous(t *Type, rw *Rewrite, names []string) error {
	i := slices.IndexFunc(n.renames, func(r Rename) bool {
		return r.Type != "" && (r.From == rw.Computed || slices.Contains(names, r.To))
	})
	r := n.renames[i]
	return &RenameError{Index: i, Rename: r, Field: "to", Reason: "ambiguous", Message: fmt.Sprintf(
		"type %q uses the relation %q of all types that its relation %q names; it cannot follow a rename of %s to %q only",
		t.Name, rw.Computed, rw.Tupleset, r.Type, r.To)}
}

// linked returns the types whose resources tuples of a relation may name.
func (c *Compiled) linked(tupleset *Relation) (types []*Type) {
	if tupleset.Subjects == nil {
		for t := range c.all() {
			types = append(types, t)
		}
		return types
	}
	for _, s := range tupleset.Subjects {
		if t := c.byName[s.Type]; t != nil && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}
