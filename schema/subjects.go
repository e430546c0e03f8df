package schema

// Refusal is the reason why a tuple may not name a subject; empty if it may.
type Refusal string

const (
	Allowed           Refusal = ""
	UnknownType       Refusal = "unknown_type"         // the subject's type is not defined
	UndefinedRelation Refusal = "relation_undefined"   // the subject's type has no such relation
	NotDirect         Refusal = "relation_not_direct"  // no rewrite uses tuples of the relation
	WildcardRefused   Refusal = "wildcard_not_allowed" // the relation does not list the wildcard
	TypeRefused       Refusal = "type_not_allowed"     // the relation does not list the subject type
	LeadsBack         Refusal = "recursion_through_exclusion"
)

// Allows reports whether tuples of a defined relation may name subjects of a kind.
func (c *Compiled) Allows(typ, relation string, s SubjectType) Refusal {
	info := c.relations[relationKey{typ, relation}]
	if info == nil {
		return UndefinedRelation
	}
	if c.byName[s.Type] == nil {
		return UnknownType
	}
	var target *relationInfo
	if s.Relation != "" {
		if target = c.relations[relationKey{s.Type, s.Relation}]; target == nil {
			return UndefinedRelation
		}
	}
	if !info.direct {
		return NotDirect
	}
	if info.relation.Subjects != nil {
		for _, allowed := range info.relation.Subjects {
			if allowed == s {
				return Allowed
			}
		}
		if s.Wildcard {
			return WildcardRefused
		}
		return TypeRefused
	}
	switch {
	case s.Wildcard:
		return WildcardRefused
	case target != nil && target.stratum > info.ceiling:
		return LeadsBack
	}
	return Allowed
}

// Subjects lists every kind of subject that tuples of a relation may name;
// none if the relation is not defined or not direct.
func (c *Compiled) Subjects(typ, relation string) []SubjectType {
	info := c.relations[relationKey{typ, relation}]
	if info == nil || !info.direct {
		return nil
	}
	candidates := info.relation.Subjects
	if candidates == nil {
		for t := range c.all() {
			candidates = append(candidates, SubjectType{Type: t.Name})
			for _, r := range t.Relations {
				candidates = append(candidates, SubjectType{Type: t.Name, Relation: r.Name})
			}
		}
	}
	var allowed []SubjectType
	for _, s := range candidates {
		if c.Allows(typ, relation, s) == Allowed {
			allowed = append(allowed, s)
		}
	}
	return allowed
}
