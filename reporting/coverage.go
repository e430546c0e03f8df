package reporting

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// pageSize is how many users, members or applications are read at once.
const pageSize = 500

// coverage lists the users that are not disabled and have no second factor or, with
// [Parameters.IncludeCovered], all of them, and counts them by kind of factor and by group.
func (p *production) coverage(ctx context.Context) error {
	groupsOf, slugs, err := p.memberships(ctx)
	if err != nil {
		return err
	}
	type group struct{ users, without int }
	users, without := 0, 0
	kinds, groups := map[string]int{}, map[string]*group{}
	for _, slug := range slugs {
		groups[slug] = &group{}
	}
	for after := ""; ; {
		page, err := p.people.EnabledUsers(ctx, p.run.TenantID, after, pageSize)
		if err != nil {
			return err
		}
		for _, u := range page {
			after = u.ID
			users++
			if len(u.Factors) == 0 {
				without++
			}
			for _, kind := range u.Factors {
				kinds[kind]++
			}
			for _, slug := range groupsOf[u.ID] {
				groups[slug].users++
				if len(u.Factors) == 0 {
					groups[slug].without++
				}
			}
			if len(u.Factors) > 0 && !p.run.Parameters.IncludeCovered {
				continue
			}
			if err := p.add(ctx, u.ID, u.Email, u.Name, u.State, strings.Join(u.Factors, " "), strings.Join(groupsOf[u.ID], " "), orNull(u.LastSignedInAt)); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			break
		}
		if users >= MaxUsers {
			p.truncated = true
			break
		}
	}
	p.figure("users", "", users)
	p.figure("users_without_factor", "", without)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		p.figure("users_with_factor", kind, kinds[kind])
	}
	// The groups with the most users to ask come first.
	sorted := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(groups[b].without, groups[a].without), strings.Compare(a, b))
	})
	for _, slug := range sorted[:min(len(sorted), maxGroupFigures)] {
		p.figure("group_users", slug, groups[slug].users)
		p.figure("group_users_without_factor", slug, groups[slug].without)
	}
	return nil
}

// memberships returns the slugs of the groups of users, and of all groups. All of them are in memory, so
// their number is bounded.
func (p *production) memberships(ctx context.Context) (of map[string][]string, slugs []string, err error) {
	of = map[string][]string{}
	groups, err := p.people.Groups(ctx, p.run.TenantID, MaxGroups+1)
	if err != nil {
		return nil, nil, err
	}
	if len(groups) > MaxGroups {
		groups, p.truncated = groups[:MaxGroups], true
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Slug, b.Slug) })
	read := 0
	for _, g := range groups {
		slugs = append(slugs, g.Slug)
		for after := ""; ; {
			if read >= MaxMemberships {
				p.truncated = true
				break
			}
			ids, err := p.people.MemberIDs(ctx, p.run.TenantID, g.ID, after, pageSize)
			if err != nil {
				return nil, nil, err
			}
			for _, userID := range ids {
				after = userID
				of[userID] = append(of[userID], g.Slug)
			}
			if read += len(ids); len(ids) < pageSize {
				break
			}
		}
	}
	return of, slugs, nil
}
