package schema

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a document. Each is far above practical use, and low enough that compiling is
// fast.
const (
	MaxTypes     = 1000 // types of a tenant
	MaxRelations = 200  // relations of a type
	MaxDocument  = 2000 // relations of all types together
	MaxRewrites  = 200  // rewrites of a relation, nested ones included
	MaxDepth     = 16   // nesting of rewrites
	MaxActions   = 200  // actions of a type
	MaxSubjects  = 200  // allowed subject types of a relation
	MaxText      = 1024 // bytes of a description
	MaxNote      = 200  // characters of a note on a deprecation

	MaxConditions = 50 // conditions of a type
)

var (
	namePattern   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	actionPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:-]{0,127}$`)
)

// IsAction reports whether an action may have a name.
func IsAction(name string) bool { return actionPattern.MatchString(name) }

// validateType validates one type alone.
func validateType(t *Type) error {
	if !namePattern.MatchString(t.Name) {
		return fieldError(t.Name, "name", "name_invalid", "name must match %s", namePattern)
	}
	if reserved[t.Name] {
		return fieldError(t.Name, "name", "name_reserved", "the name %q is reserved", t.Name)
	}
	if len(t.Description) > MaxText {
		return fieldError(t.Name, "description", "too_long", "description has %d bytes, at most %d are allowed", len(t.Description), MaxText)
	}
	if err := validateNote(t, "deprecated", t.Deprecated); err != nil {
		return err
	}
	if n := len(t.Relations); n > MaxRelations {
		return fieldError(t.Name, "relations", "too_many", "%d relations, at most %d are allowed", n, MaxRelations)
	}
	names := map[string]bool{}
	for i, r := range t.Relations {
		path := fmt.Sprintf("relations[%d].name", i)
		if !namePattern.MatchString(r.Name) {
			return fieldError(t.Name, path, "name_invalid", "relation name must match %s", namePattern)
		}
		if names[r.Name] {
			return fieldError(t.Name, path, "duplicate", "relation %q is defined twice", r.Name)
		}
		names[r.Name] = true
	}
	for i := range t.Relations {
		if err := validateRewrites(t, i); err != nil {
			return err
		}
		if err := validateCardinality(t, i); err != nil {
			return err
		}
		if err := validateNote(t, fmt.Sprintf("relations[%d].deprecated", i), t.Relations[i].Deprecated); err != nil {
			return err
		}
	}
	return validateActions(t, names)
}

func validateCardinality(t *Type, index int) error {
	r, path := &t.Relations[index], fmt.Sprintf("relations[%d].", index)
	switch {
	case r.Cardinality != "" && r.Cardinality != Many && r.Cardinality != One:
		return fieldError(t.Name, path+"cardinality", "unknown_value", "cardinality %q is not one of many, one", r.Cardinality)
	case r.OnSecond != "" && r.OnSecond != Refuse && r.OnSecond != Replace:
		return fieldError(t.Name, path+"on_second", "unknown_value", "on_second %q is not one of refuse, replace", r.OnSecond)
	case r.OnSecond != "" && r.Cardinality != One:
		return fieldError(t.Name, path+"on_second", "conflict", "on_second requires the cardinality one")
	case r.Cardinality == One && !r.isDirect():
		return fieldError(t.Name, path+"cardinality", "conflict", "relation %q takes no tuples, so it has no cardinality", r.Name)
	}
	return nil
}

// validateNote accepts one line of plain text.
func validateNote(t *Type, path, note string) error {
	if n := utf8.RuneCountInString(note); n > MaxNote {
		return fieldError(t.Name, path, "too_long", "the note has %d characters, at most %d are allowed", n, MaxNote)
	}
	if !utf8.ValidString(note) || strings.ContainsFunc(note, unicode.IsControl) {
		return fieldError(t.Name, path, "invalid", "the note is not one line of text")
	}
	return nil
}

func validateActions(t *Type, relations map[string]bool) error {
	if n := len(t.Actions); n > MaxActions {
		return fieldError(t.Name, "actions", "too_many", "%d actions, at most %d are allowed", n, MaxActions)
	}
	actions := make([]string, 0, len(t.Actions))
	for action := range t.Actions {
		actions = append(actions, action)
	}
	sort.Strings(actions) // the same document gets the same error every time
	for _, action := range actions {
		if !actionPattern.MatchString(action) {
			return fieldError(t.Name, "actions", "name_invalid", "action name must match %s", actionPattern)
		}
		if !relations[t.Actions[action]] {
			return fieldError(t.Name, "actions."+action, "unknown_relation", "action %q names relation %q, which the type does not have", action, t.Actions[action])
		}
	}
	return nil
}

func validateRewrites(t *Type, index int) error {
	v := rewriteValidator{typ: t, relation: &t.Relations[index]}
	for j := range v.relation.Rewrites {
		path := fmt.Sprintf("relations[%d].rewrites[%d]", index, j)
		if err := v.rewrite(&v.relation.Rewrites[j], path, 1); err != nil {
			return err
		}
	}
	return nil
}

type rewriteValidator struct {
	typ      *Type
	relation *Relation
	seen     int
}

func (v *rewriteValidator) rewrite(r *Rewrite, path string, depth int) error {
	if v.seen++; v.seen > MaxRewrites {
		return rewriteError(v.typ.Name, path, "too_many", "relation %q has more than %d rewrites", v.relation.Name, MaxRewrites)
	}
	if depth > MaxDepth {
		return rewriteError(v.typ.Name, path, "depth", "rewrites are nested more than %d deep", MaxDepth)
	}
	switch {
	case r.Mode != "" && r.Kind != TupleToUserset:
		return rewriteError(v.typ.Name, path+".mode", "unknown_value", "rewrite kind %q has no mode", r.Kind)
	case r.Mode != "" && r.Mode != Any && r.Mode != All:
		return rewriteError(v.typ.Name, path+".mode", "unknown_value", "mode %q is not one of any, all", r.Mode)
	}
	switch r.Kind {
	case This, Self:
		return nil
	case Computed:
		if v.typ.relation(r.Relation) == nil {
			return rewriteError(v.typ.Name, path+".relation", "unknown_relation", "relation %q is not defined on type %q", r.Relation, v.typ.Name)
		}
		return nil
	case TupleToUserset:
		tupleset := v.typ.relation(r.Tupleset)
		if tupleset == nil {
			return rewriteError(v.typ.Name, path+".tupleset", "missing_tupleset", "relation %q is not defined on type %q", r.Tupleset, v.typ.Name)
		}
		if !tupleset.isDirect() {
			return rewriteError(v.typ.Name, path+".tupleset", "missing_tupleset", "relation %q takes no tuples, so it links to nothing", r.Tupleset)
		}
		if !namePattern.MatchString(r.Computed) {
			return rewriteError(v.typ.Name, path+".computed", "unknown_relation", "computed must name a relation of the linked resource")
		}
		return nil
	case Union, Intersection:
		if len(r.Children) == 0 {
			return rewriteError(v.typ.Name, path+".children", "missing_field", "%s needs at least one child", r.Kind)
		}
		for i := range r.Children {
			if err := v.rewrite(&r.Children[i], fmt.Sprintf("%s.children[%d]", path, i), depth+1); err != nil {
				return err
			}
		}
		return nil
	case Exclusion:
		if r.Base == nil {
			return rewriteError(v.typ.Name, path+".base", "missing_field", "exclusion needs a base")
		}
		if r.Subtract == nil {
			return rewriteError(v.typ.Name, path+".subtract", "missing_field", "exclusion needs a subtract")
		}
		if err := v.rewrite(r.Base, path+".base", depth+1); err != nil {
			return err
		}
		return v.rewrite(r.Subtract, path+".subtract", depth+1)
	default:
		return rewriteError(v.typ.Name, path+".kind", "unknown_kind", "rewrite kind %q is not one of this, self, computed, tuple_to_userset, union, intersection, exclusion", r.Kind)
	}
}

func (t *Type) relation(name string) *Relation {
	for i := range t.Relations {
		if t.Relations[i].Name == name {
			return &t.Relations[i]
		}
	}
	return nil
}

// isDirect reports whether the relation's own rewrites use its tuples.
func (r *Relation) isDirect() bool {
	if len(r.Rewrites) == 0 {
		return true
	}
	direct := false
	for i := range r.Rewrites {
		r.Rewrites[i].visit(func(rw *Rewrite) { direct = direct || rw.Kind == This })
	}
	return direct
}

// subtractsTuples reports whether a subtracted side in the relation's own rewrites uses its
// tuples.
func (r *Relation) subtractsTuples() bool {
	found := false
	for i := range r.Rewrites {
		r.Rewrites[i].visit(func(rw *Rewrite) {
			if rw.Kind == Exclusion {
				rw.Subtract.visit(func(under *Rewrite) { found = found || under.Kind == This })
			}
		})
	}
	return found
}

func (r *Rewrite) visit(fn func(*Rewrite)) {
	fn(r)
	for i := range r.Children {
		r.Children[i].visit(fn)
	}
	if r.Base != nil {
		r.Base.visit(fn)
	}
	if r.Subtract != nil {
		r.Subtract.visit(fn)
	}
}
