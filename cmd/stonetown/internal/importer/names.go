package importer

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

// Rename returns the translated name of every name of a kind (type, relation, condition). Valid
// names stay the same; for each other name, a finding is added at the place of its declaration.
// No two names become equal, and the result is the same for the same names.
func (w *Data) Rename(kind string, declared map[string]Place, reserved func(string) bool) map[string]string {
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

// RenameAll translates all names; built-in types keep the built-in names.
func (w *Data) RenameAll(types, relations, conditions map[string]Place, builtIn func(string) bool) (typeNames, relationNames, conditionNames map[string]string) {
	none := func(string) bool { return false }
	typeNames = w.Rename("type", types, func(name string) bool { return schema.IsReserved(name) && !builtIn(name) })
	return typeNames, w.Rename("relation", relations, none), w.Rename("condition", conditions, none)
}

// BuiltIns returns the types of another engine, by their own names, that are equal to built-in
// types: users and applications without relations, and groups whose members are users,
// applications and groups. A group as a subject stands for its members here and for itself in
// other engines, so there must be no such subject. Of conditions, only their existence matters.
func (w *Data) BuiltIns(types []schema.Type, group Place) map[string]bool {
	builtIn := map[string]bool{}
	var members []schema.SubjectType
	for _, t := range types {
		if !isBuiltIn(t) {
			continue
		}
		builtIn[t.Name] = true
		if t.Name == schema.GroupType {
			members = t.Relations[0].Subjects
		}
	}
	for _, s := range members {
		if s.Relation == "" && !builtIn[s.Type] {
			delete(builtIn, schema.GroupType)
		}
	}
	for _, t := range types {
		for _, r := range t.Relations {
			for _, s := range r.Subjects {
				if s.Type == schema.GroupType && s.Relation == "" {
					delete(builtIn, schema.GroupType)
				}
			}
		}
	}
	if builtIn[schema.GroupType] && len(members) < 3 {
		w.Find(group, Widened, "members of a group may be users, applications and members of groups")
	}
	return builtIn
}

// IsShared reports whether a type of another engine with this name can become a built-in type,
// if only its name is known. Scopes, audiences, webhook subscriptions and workload identities are part
// of the product here, and of the application's model in other engines.
func IsShared(name string) bool {
	switch name {
	case schema.ScopeType, schema.AudienceType, schema.WebhookSubscriptionType, schema.WorkloadIdentityType:
		return false
	}
	return schema.IsSystem(name)
}

func isBuiltIn(t schema.Type) bool {
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

// PinActions adds actions for the original names of a type's relations, given with their
// translated names, where the name by convention is another relation or none: edit, view and
// delete are editor, viewer and owner.
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
