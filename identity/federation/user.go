package federation

import (
	"slices"

	"stonetown/identity/federation/claims"
)

// User is the account that a connection would make of claims.
type User struct {
	claims.Profile
	// EmailVerified reports whether the address counts as verified: the provider states it, or
	// states nothing and the connection trusts its addresses.
	EmailVerified bool
	GroupIDs      []string // of the group mapping, each once
}

// User applies the mappings of the connection to claims, as [claims.Mapping.Map] does.
func (c Connection) User(from map[string]any) (User, []claims.Warning, error) {
	m, err := c.Mapping()
	if err != nil {
		return User{}, nil, err
	}
	p, warnings := m.Map(from)
	u := User{Profile: p}
	switch {
	case p.Email == "":
	case p.EmailVerified != nil:
		u.EmailVerified = *p.EmailVerified
	default:
		u.EmailVerified = c.TrustEmail
	}
	for _, rule := range c.GroupMapping {
		if slices.Contains(p.Groups, rule.Value) && !slices.Contains(u.GroupIDs, rule.GroupID) {
			u.GroupIDs = append(u.GroupIDs, rule.GroupID)
		}
	}
	return u, warnings, nil
}
