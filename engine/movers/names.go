package movers

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"stonetown/schema"
)

const maxName = 63 // bytes

var (
	nameAllowed = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	notInNames  = regexp.MustCompile(`[^a-z0-9_]+`)
)

// Rename gives every name of a kind (type, relation, condition) the name it has
// here. One that may stay the same does; for each that may not, a finding is
// made at the place where it is declared. No two get the same name, and the same
// names get the same ones every time.
func (w *World) Rename(kind string, declared map[string]Place, reserved func(string) bool) map[string]string {
	renamed := map[string]string{}
	taken := map[string]bool{}
	numbers := map[string]int{}
	free := func(name string) string {
		candidate := name
		for taken[candidate] || reserved(candidate) {
			numbers[name] = max(2, numbers[name]+1)
			number := "_" + strconv.Itoa(numbers[name])
			candidate = name[:min(len(name), maxName-len(number))] + number
		}
		return candidate
	}
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if nameAllowed.MatchString(name) && !reserved(name) {
			renamed[name], taken[name] = name, true
		} else {
			rest = append(rest, name)
		}
	}
	for _, name := range rest {
		to := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "_"), "_")
		if to == "" || to[0] < 'a' || to[0] > 'z' {
			to = "x_" + to
		}
		to = free(to[:min(len(to), maxName)])
		renamed[name], taken[to] = to, true
		w.Find(declared[name], Renamed, fmt.Sprintf("%s %q is called %q", kind, name, to))
	}
	return renamed
}

// IsBuiltIn reports whether a type of another engine, by its own names, is one
// that every tenant has: users and applications without relations of their own,
// and groups whose members are users, applications and groups.
func IsBuiltIn(t schema.Type) bool {
	switch t.Name {
	case schema.UserType, schema.ApplicationType:
		return len(t.Relations) == 0
	case schema.GroupType:
		if len(t.Relations) != 1 || t.Relations[0].Name != schema.GroupMember || len(t.Conditions) > 0 {
			return false
		}
		for _, r := range t.Relations[0].Rewrites {
			if r.Kind != schema.This {
				return false
			}
		}
		for _, s := range t.Relations[0].Subjects {
			plain := s == schema.SubjectType{Type: schema.UserType} || s == schema.SubjectType{Type: schema.ApplicationType}
			if !plain && s != (schema.SubjectType{Type: schema.GroupType, Relation: schema.GroupMember}) {
				return false
			}
		}
		return true
	}
	return false
}

// PinActions makes actions of the original names of a type's relations, given
// with their names here, where those would mean another relation or none: edit,
// view and delete mean editor, viewer and owner by convention.
func PinActions(t *schema.Type, original map[string]string) {
	for name, relation := range original {
		conventional := name == "edit" || name == "view" || name == "delete"
		if !conventional && name == relation || !schema.IsAction(name) {
			continue
		}
		if t.Actions == nil {
			t.Actions = map[string]string{}
		}
		t.Actions[name] = relation
	}
}
