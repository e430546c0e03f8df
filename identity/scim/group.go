package scim

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"stonetown/identity"
	"stonetown/internal/sqldb"
	"stonetown/internal/text"
)

// MaxMembers is the maximum number of members in a response, of all its groups.
const MaxMembers = 100_000

// Group returns a group without its members.
func (s *Service) Group(ctx context.Context, c Client, id string) (Resource, error) {
	g, err := s.directory.Group(ctx, c.TenantID, id)
	if errors.Is(err, identity.ErrGroupNotFound) {
		return Resource{}, notFound(Groups, id)
	}
	if err != nil {
		return Resource{}, err
	}
	externalID, err := s.externalID(ctx, c, id)
	return c.group(g, externalID), err
}

// MembersOf sets the attribute members of groups. It fails with tooMany.
func (s *Service) MembersOf(ctx context.Context, c Client, groups ...Resource) error {
	total := 0
	for _, r := range groups {
		ids, err := s.memberIDs(ctx, c, r.ID, MaxMembers-total)
		if err != nil {
			return err
		}
		total += len(ids)
		var members []any
		for _, id := range ids {
			members = append(members, Object{"value": id, "$ref": c.Base + "/Users/" + id, "type": "User"})
		}
		if members != nil {
			r.Object["members"] = members
		}
	}
	return nil
}

func (s *Service) memberIDs(ctx context.Context, c Client, id string, most int) (ids []string, err error) {
	after := ""
	for {
		page, err := s.directory.MemberIDs(ctx, c.TenantID, id, after, identity.MaxMembers)
		if err != nil {
			return nil, err
		}
		if ids = append(ids, page...); len(ids) > most {
			return nil, refuse(TooMany, "the groups have more than %d members; use excludedAttributes=members", MaxMembers)
		}
		if len(page) < identity.MaxMembers {
			return ids, nil
		}
		after = page[len(page)-1]
	}
}

// groupEdit is what a request wants a group to become.
type groupEdit struct {
	name, externalID string
	all              bool            // the members are those of add, and no others
	add, remove      map[string]bool // ids of users
}

func newGroupEdit() *groupEdit { return &groupEdit{add: map[string]bool{}, remove: map[string]bool{}} }

func (e *groupEdit) join(id string)  { e.add[id] = true; delete(e.remove, id) }
func (e *groupEdit) leave(id string) { e.remove[id] = true; delete(e.add, id) }

// memberIDsOf returns the ids of members in a canonical value.
func memberIDsOf(value any) (ids []string, err error) {
	for _, item := range asList(value) {
		o, _ := item.(Object)
		id, _ := o["value"].(string)
		if kind, _ := o["type"].(string); kind != "" && !strings.EqualFold(kind, "User") {
			return nil, refuse(InvalidValue, "the members of groups are users, not groups")
		}
		if id == "" {
			return nil, refuse(InvalidValue, "members.value is required")
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// CreateGroup creates a group. Its slug is made of the name.
func (s *Service) CreateGroup(ctx context.Context, c Client, in Object) (Resource, error) {
	o, err := Groups.Canonical(in)
	if err != nil {
		return Resource{}, err
	}
	name, _ := o["displayName"].(string)
	if err := validGroup(name, external(o)); err != nil {
		return Resource{}, err
	}
	members, err := memberIDsOf(o["members"])
	if err != nil {
		return Resource{}, err
	}
	// Members are checked before there is a group.
	if err := s.checkUsers(ctx, c, members); err != nil {
		return Resource{}, err
	}
	n := identity.NewGroup{Slug: slugOf(name), Name: name}
	if externalID := external(o); externalID != "" {
		n.ExternalIDs = map[string]string{c.ID: externalID}
	}
	g, err := s.directory.CreateGroup(ctx, c.TenantID, n, "")
	for errors.Is(err, identity.ErrSlugTaken) || errors.Is(err, identity.ErrSlugInvalid) {
		n.Slug = strings.Trim(cut(slugOf(name), 54)+"-"+strings.ToLower(rand.Text()[:8]), "-")
		g, err = s.directory.CreateGroup(ctx, c.TenantID, n, "")
	}
	if err != nil {
		return Resource{}, err
	}
	e := newGroupEdit()
	for _, id := range members {
		e.join(id)
	}
	e.externalID = external(o)
	return s.save(ctx, c, g, e.externalID, e, "")
}

// checkUsers fails with [*identity.UnknownMembersError] if a user does not exist.
func (s *Service) checkUsers(ctx context.Context, c Client, ids []string) error {
	known, err := s.directory.UsersByID(ctx, c.TenantID, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, ok := known[id]; !ok {
			return &identity.UnknownMembersError{IDs: []string{id}}
		}
	}
	return nil
}

func validGroup(name, externalID string) error {
	if name == "" {
		return refuse(InvalidValue, "displayName is required")
	}
	for field, value := range map[string]string{"displayName": name, "externalId": externalID} {
		if len(value) > MaxText || !text.IsLine(value) {
			return refuse(InvalidValue, "%s must be one line of at most %d bytes", field, MaxText)
		}
	}
	return nil
}

// slugOf returns the slug of a name: its ASCII letters and digits, separated by hyphens. It may be
// empty or taken.
func slugOf(name string) string {
	var b strings.Builder
	hyphen := false
	for _, r := range text.Fold(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if hyphen && b.Len() > 0 {
				b.WriteByte('-')
			}
			b.WriteRune(r)
			hyphen = false
		} else {
			hyphen = true
		}
	}
	return strings.Trim(cut(b.String(), 63), "-")
}

func cut(s string, most int) string { return s[:min(len(s), most)] }

// ReplaceGroup sets all attributes of a group.
func (s *Service) ReplaceGroup(ctx context.Context, c Client, id string, in Object, match Match) (Resource, error) {
	o, err := Groups.Canonical(in)
	if err != nil {
		return Resource{}, err
	}
	return s.changeGroup(ctx, c, id, match, func(e *groupEdit, _ func() ([]string, error)) error {
		e.name, _ = o["displayName"].(string)
		e.externalID, e.all = external(o), true
		members, err := memberIDsOf(o["members"])
		for _, id := range members {
			e.join(id)
		}
		return err
	})
}

// PatchGroup changes attributes of a group. The members are not read unless the operations select
// some of them by another attribute than their id.
func (s *Service) PatchGroup(ctx context.Context, c Client, id string, operations []Operation, match Match) (Resource, error) {
	return s.changeGroup(ctx, c, id, match, func(e *groupEdit, current func() ([]string, error)) error {
		return Groups.each(operations, func(op string, to target, value any) error {
			if to.attribute.Name == "members" {
				return e.members(op, to, value, current)
			}
			o := Object{"displayName": e.name}
			if e.externalID != "" {
				o["externalId"] = e.externalID
			}
			if err := to.apply(op, o, value); err != nil {
				return err
			}
			e.name, _ = o["displayName"].(string)
			e.externalID = external(o)
			return nil
		})
	})
}

// members applies an operation on the members.
func (e *groupEdit) members(op string, to target, value any, current func() ([]string, error)) error {
	if to.sub != nil {
		return refuse(Mutability, "the attributes of members cannot be changed; add and remove members")
	}
	if to.where != nil {
		if op != "remove" {
			return refuse(InvalidPath, "members are added without a filter")
		}
		have, err := current()
		if err != nil {
			return err
		}
		if e.all {
			have = nil
		}
		for _, id := range append(have, sortedIDs(e.add)...) {
			ok, err := to.where.holds(to.where.node, scope{attributes: to.attribute.SubAttributes, object: Object{"value": id, "type": "User"}})
			if err != nil {
				return err
			}
			if ok {
				e.leave(id)
			}
		}
		return nil
	}
	if op == "remove" && value == nil {
		e.all, e.add = true, map[string]bool{}
		return nil
	}
	converted, err := convert(to.attribute, value, "")
	if err != nil {
		return err
	}
	ids, err := memberIDsOf(converted)
	if err != nil {
		return err
	}
	if op == "replace" {
		e.all, e.add, e.remove = true, map[string]bool{}, map[string]bool{}
	}
	for _, id := range ids {
		if op == "remove" {
			e.leave(id)
		} else {
			e.join(id)
		}
	}
	return nil
}

func sortedIDs(set map[string]bool) (ids []string) {
	for id := range set {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (s *Service) changeGroup(ctx context.Context, c Client, id string, match Match, decide func(e *groupEdit, current func() ([]string, error)) error) (Resource, error) {
	g, err := s.directory.Group(ctx, c.TenantID, id)
	if errors.Is(err, identity.ErrGroupNotFound) {
		return Resource{}, notFound(Groups, id)
	}
	if err != nil {
		return Resource{}, err
	}
	had, err := s.externalID(ctx, c, id)
	if err != nil {
		return Resource{}, err
	}
	if err := match.check(c.group(g, had).Version); err != nil {
		return Resource{}, err
	}
	e := newGroupEdit()
	e.name, e.externalID = g.Name, had
	current := func() ([]string, error) { return s.memberIDs(ctx, c, id, MaxMembers) }
	if err := decide(e, current); err != nil {
		return Resource{}, err
	}
	if err := validGroup(e.name, e.externalID); err != nil {
		return Resource{}, err
	}
	if e.all {
		have, err := current()
		if err != nil {
			return Resource{}, err
		}
		for _, id := range have {
			if e.add[id] {
				delete(e.add, id)
			} else {
				e.remove[id] = true
			}
		}
	}
	return s.save(ctx, c, g, had, e, match)
}

// save applies an edit to a group, at most [identity.MaxMembers] members in one transaction; the
// first checks the version again. had is the external id of the group before.
func (s *Service) save(ctx context.Context, c Client, g identity.Group, had string, e *groupEdit, match Match) (Resource, error) {
	add, remove := sortedIDs(e.add), sortedIDs(e.remove)
	if len(add)+len(remove) > identity.MaxMembers { // so that a refusal comes before the first step
		if err := s.checkUsers(ctx, c, add); err != nil {
			return Resource{}, err
		}
	}
	for first := true; first || len(add)+len(remove) > 0; first = false {
		var change identity.GroupChange
		if e.name != "" && e.name != g.Name {
			change.Name = e.name
		}
		n := min(len(add), identity.MaxMembers)
		change.Add, add = add[:n], add[n:]
		n = min(len(remove), identity.MaxMembers-n)
		change.Remove, remove = remove[:n], remove[n:]
		if first && e.externalID != had {
			change.Attach = func(b *sqldb.Batch) { c.setExternalID(b, g.ID, e.externalID) }
		}
		if first && match != "" {
			change.Check = func(now identity.Group) error { return match.check(c.group(now, had).Version) }
		}
		if len(change.Add)+len(change.Remove) == 0 && change.Attach == nil && change.Name == "" {
			if err := s.directory.MayProvision(ctx, c.TenantID, g); err != nil {
				return Resource{}, err
			}
			break
		}
		var err error
		if g, err = s.directory.ProvisionGroup(ctx, c.TenantID, g.ID, change); err != nil {
			return Resource{}, err
		}
	}
	return c.group(g, e.externalID), nil
}

// DeleteGroup deletes a group.
func (s *Service) DeleteGroup(ctx context.Context, c Client, id string, match Match) error {
	g, err := s.directory.Group(ctx, c.TenantID, id)
	if errors.Is(err, identity.ErrGroupNotFound) {
		return notFound(Groups, id)
	}
	if err != nil {
		return err
	}
	had, err := s.externalID(ctx, c, id)
	if err == nil {
		err = match.check(c.group(g, had).Version)
	}
	if err == nil {
		err = s.directory.MayProvision(ctx, c.TenantID, g)
	}
	if err == nil {
		err = s.directory.DeleteGroup(ctx, c.TenantID, id, "")
	}
	return err
}
