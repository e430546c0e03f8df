package schema

import (
	"cmp"
	"slices"
	"strconv"
)

// Names translates the names of types and their relations: to new ones, or to those of stored
// tuples.
type Names struct {
	types     map[string]string
	relations map[relationKey]string // by the type's name before the translation
}

func newNames() Names {
	return Names{types: map[string]string{}, relations: map[relationKey]string{}}
}

// Type translates the name of a type.
func (n *Names) Type(name string) string { return cmp.Or(n.types[name], name) }

// Relation translates the name of a relation of a type, which has the name before.
func (n *Names) Relation(typ, name string) string {
	return cmp.Or(n.relations[relationKey{typ, name}], name)
}

// ChangesRelation reports whether a relation of some type gets or loses a name.
func (n *Names) ChangesRelation(name string) bool {
	for from, to := range n.relations {
		if from.relation != to && (from.relation == name || to == name) {
			return true
		}
	}
	return false
}

// StoredNames translates between the names of types and those that stored tuples have. A rename
// changes only the document: tuples keep the names that they were written with ([Type.Stored],
// [Relation.Stored]), however many there are, and the document of each revision says what the names
// of its tuples mean.
//
// A name that no type or relation has on one side is translated to one that nothing has on the
// other.
type StoredNames struct{ Of, Back Names }

// StoredNames returns the stored names of all types, nil if all are those of the document.
func (c *Compiled) StoredNames() *StoredNames { return c.stored }

func storedNames(types []Type) *StoredNames {
	if !haveStored(types) {
		return nil
	}
	s := &StoredNames{newNames(), newNames()}
	for _, t := range types {
		s.Of.types[t.Name], s.Back.types[t.stored()] = t.stored(), t.Name
		for _, r := range t.Relations {
			s.Of.relations[relationKey{t.Name, r.Name}] = r.stored()
			s.Back.relations[relationKey{t.stored(), r.stored()}] = r.Name
		}
	}
	for _, t := range types {
		reserve(s.Of.types, t.stored(), t.stored())
		reserve(s.Back.types, t.Name, t.Name)
		for _, r := range t.Relations {
			reserve(s.Of.relations, relationKey{t.Name, r.stored()}, r.stored())
			reserve(s.Back.relations, relationKey{t.stored(), r.Name}, r.Name)
		}
	}
	return s
}

// haveStored reports whether a type or a relation has a stored name of its own.
func haveStored(types []Type) bool {
	return slices.ContainsFunc(types, func(t Type) bool {
		return t.Stored != "" || slices.ContainsFunc(t.Relations, func(r Relation) bool { return r.Stored != "" })
	})
}

// reserve translates a name that nothing has on one side, but something on the other.
func reserve[K comparable](names map[K]string, key K, name string) {
	if _, ok := names[key]; !ok {
		names[key] = name + "~" // which no other name ends with
	}
}

func (t *Type) stored() string     { return cmp.Or(t.Stored, t.Name) }
func (r *Relation) stored() string { return cmp.Or(r.Stored, r.Name) }

// KeepStored returns a type with the stored names of the one that it replaces, or with new ones if
// that is nil. all are the types before. Tuples with a name of these can exist until the change is
// made, so no new type or relation gets it.
func KeepStored(t Type, replaced *Type, all []Type) Type {
	t.Relations = slices.Clone(t.Relations)
	if replaced == nil {
		t.Stored = unusedName(t.Name, func(name string) bool {
			return slices.ContainsFunc(all, func(other Type) bool { return other.stored() == name })
		})
	} else {
		t.Stored = replaced.Stored
	}
	for i := range t.Relations {
		r := &t.Relations[i]
		switch {
		case replaced == nil:
			r.Stored = ""
		case replaced.relation(r.Name) != nil:
			r.Stored = replaced.relation(r.Name).Stored
		default:
			r.Stored = unusedName(r.Name, func(name string) bool {
				return slices.ContainsFunc(replaced.Relations, func(other Relation) bool { return other.stored() == name })
			})
		}
	}
	return t
}

// unusedName returns the stored name of something new, empty if it can be its own.
func unusedName(name string, isUsed func(string) bool) string {
	if !isUsed(name) {
		return ""
	}
	for n := 2; ; n++ {
		if stored := name + "~" + strconv.Itoa(n); !isUsed(stored) {
			return stored
		}
	}
}

// Renamed returns the renames by which types became others, in one change that may have done more.
func Renamed(before, after []Type) (renames []Rename) {
	if !haveStored(before) && !haveStored(after) {
		return nil
	}
	for i := range before {
		was := &before[i]
		at := slices.IndexFunc(after, func(t Type) bool { return t.stored() == was.stored() })
		if at < 0 {
			continue
		}
		if after[at].Name != was.Name {
			renames = append(renames, Rename{From: was.Name, To: after[at].Name})
		}
		for _, r := range was.Relations {
			for _, now := range after[at].Relations {
				if now.stored() == r.stored() && now.Name != r.Name {
					renames = append(renames, Rename{Type: was.Name, From: r.Name, To: now.Name})
				}
			}
		}
	}
	return renames
}
