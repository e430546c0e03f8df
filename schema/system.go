package schema

// GroupMember is the relation that a subject {type: group} stands for.
const (
	UserType        = "user"
	ApplicationType = "application"
	GroupType       = "group"
	GroupMember     = "member"
	ScopeType       = "scope"
	ScopeHolder     = "holder"
)

// system types exist in every tenant and in no document. Users and applications
// are only ever subjects; groups have members, and groups among them; the holders of a
// scope of OAuth are entitled to it.
var system = []Type{
	{Name: UserType},
	{Name: ApplicationType},
	{Name: GroupType, Relations: []Relation{{
		Name:     GroupMember,
		Subjects: []SubjectType{{Type: UserType}, {Type: ApplicationType}, {Type: GroupType, Relation: GroupMember}},
	}}},
	{Name: ScopeType, Relations: []Relation{{Name: ScopeHolder, Subjects: []SubjectType{{Type: GroupType, Relation: GroupMember}}}}},
}

// reserved names cannot be defined: system types, those to come, and words that
// paths of the API use in the place of a type.
var reserved = map[string]bool{
	UserType: true, ApplicationType: true, GroupType: true, ScopeType: true, "audience": true,
	"relations": true, "check": true, "check-batch": true,
}

// IsReserved reports whether no type can be defined under a name.
func IsReserved(name string) bool { return reserved[name] }

// IsSystem reports whether a type is built in.
func IsSystem(name string) bool {
	for i := range system {
		if system[i].Name == name {
			return true
		}
	}
	return false
}
