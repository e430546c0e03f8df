package identity

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/internal/text"
	"stonetown/schema"
	"stonetown/tuplestore"
)

var (
	// ErrGroupNotFound is returned for an id that no group has.
	ErrGroupNotFound = errors.New("group not found")
	// ErrSlugInvalid is returned for a slug that is not URL-safe, or reserved.
	ErrSlugInvalid = errors.New("slug is not 1 to 63 lower-case letters, digits and single hyphens, or is reserved")
	// ErrSlugTaken is returned for a slug that another group has.
	ErrSlugTaken = errors.New("another group has this slug")
	// ErrBuiltin is returned for what would take the administrators' group away, or
	// scopes from it.
	ErrBuiltin = errors.New("the administrators group cannot be deleted, and its scopes cannot be changed")
)

// AdministratorsSlug names the group that every tenant has from its beginning.
const AdministratorsSlug = "administrators"

// Group is users who have something in common: scopes, and whatever relations name
// the group as their subject. Who its members are is relations, too, and only those:
// group:<id>#member@user:<id>. That it grants a scope is scope:<name>#holder@group:<id>#member.
type Group struct {
	ID          string
	TenantID    string
	Slug        string // unique in the tenant and immutable
	Name        string
	Description string
	Scopes      []string // sorted
	MemberCount int
	CreatedAt   time.Time // UTC
	UpdatedAt   time.Time
}

// IsBuiltin reports whether the group is that of the administrators.
func (g Group) IsBuiltin() bool { return g.Slug == AdministratorsSlug }

// NewGroup is what creating a group takes.
type NewGroup struct {
	Slug, Name, Description string
	Scopes                  []string

	initial bool     // the group comes with the tenant, which is not an event
	first   []string // ids of its first members
}

var slugPattern = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){0,62}$`)

var reservedGroupSlugs = []string{"new", "bulk", "me", "system"}

func groupObject(groupID string) tuplestore.Object {
	return tuplestore.Object{Type: schema.GroupType, ID: groupID}
}

// grant is the relation that gives a group's members a scope.
func grant(groupID, scope string) engine.WriteOp {
	return engine.WriteOp{
		Resource: tuplestore.Object{Type: schema.ScopeType, ID: scope}, Relation: schema.ScopeHolder,
		Subject: tuplestore.Subject{Type: schema.GroupType, ID: groupID, Relation: schema.GroupMember},
	}
}

// UnknownScopesError is returned for scopes that the tenant does not have.
type UnknownScopesError struct{ Scopes []string }

func (e *UnknownScopesError) Error() string {
	return fmt.Sprintf("scope %q is not registered", e.Scopes[0])
}

// known fails with [*UnknownScopesError] for scopes that a tenant does not have, as a
// transaction sees them (nil: as they are now).
func (d *Directory) known(ctx context.Context, tx *sqldb.Tx, tenantID string, scopes []string) error {
	if d.scopes == nil {
		return nil
	}
	unknown, err := d.scopes.UnknownScopes(ctx, tx, tenantID, scopes)
	if err == nil && len(unknown) > 0 {
		err = &UnknownScopesError{unknown}
	}
	return err
}

// CreateGroup adds a group without members. A commit id, if it is not empty, makes it safe
// to ask again. It fails with [*UnknownScopesError], [ErrSlugInvalid] or [ErrSlugTaken], or
// with [*authority.DeniedError] for a scope that the caller lacks.
func (d *Directory) CreateGroup(ctx context.Context, tenantID string, n NewGroup, commitID string) (Group, error) {
	return d.createGroup(ctx, tenantID, n, origin(ctx, commitID))
}

func (d *Directory) createGroup(ctx context.Context, tenantID string, n NewGroup, origin engine.Origin) (Group, error) {
	// Before the transaction, as some texts cannot be the id of a scope.
	if err := d.known(ctx, nil, tenantID, n.Scopes); err != nil {
		return Group{}, err
	}
	if len(n.Slug) > 63 || !slugPattern.MatchString(n.Slug) || slices.Contains(reservedGroupSlugs, n.Slug) {
		return Group{}, ErrSlugInvalid
	}
	if err := d.authority.MayGive(ctx, tenantID, n.Scopes); err != nil {
		return Group{}, err
	}
	now := d.now()
	g := Group{
		ID: id.New(id.Group), TenantID: tenantID, Slug: n.Slug, Name: n.Name, Description: n.Description, Scopes: sorted(n.Scopes),
		MemberCount: len(n.first), CreatedAt: now, UpdatedAt: now,
	}
	origin.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		if err := d.known(ctx, tx, tenantID, g.Scopes); err != nil {
			return err
		}
		return insertGroup(ctx, tx, g)
	}
	req := engine.WriteRequest{Origin: origin, Register: []tuplestore.Object{groupObject(g.ID)}}
	for _, scope := range g.Scopes {
		req.Ops = append(req.Ops, grant(g.ID, scope))
	}
	for _, userID := range n.first {
		req.Ops = append(req.Ops, membership(g.ID, userID))
	}
	req.Attach = func(_ tuplestore.Result, b *sqldb.Batch) {
		if !n.initial {
			eventlog.Append(b, tenantID, groupCreated(ctx, g))
		}
	}
	if _, err := d.relations.Write(ctx, tenantID, req); err != nil {
		return Group{}, fmt.Errorf("create group: %w", err)
	}
	return selectGroupBySlug(ctx, d.db, tenantID, g.Slug) // which the same request may have made before
}

// Group finds a group by its id. It fails with [ErrGroupNotFound].
func (d *Directory) Group(ctx context.Context, tenantID, groupID string) (Group, error) {
	return selectGroup(ctx, d.db, tenantID, groupID)
}

// UpdateGroup changes a group: change makes of it what it shall be; only name,
// description and scopes may differ. Without a difference nothing is written. commitID is
// that of [Directory.CreateGroup]. It fails with [ErrGroupNotFound], [*UnknownScopesError]
// or [ErrBuiltin], or with [*authority.DeniedError] for a further scope that the caller
// lacks.
func (d *Directory) UpdateGroup(ctx context.Context, tenantID, groupID string, change func(*Group), commitID string) (Group, error) {
	for {
		before, err := d.Group(ctx, tenantID, groupID)
		if err != nil {
			return Group{}, err
		}
		after := before
		change(&after)
		after.Scopes = sorted(after.Scopes)
		scopes := slices.Equal(before.Scopes, after.Scopes)
		if scopes && after.Name == before.Name && after.Description == before.Description {
			return before, nil
		}
		further := added(before.Scopes, after.Scopes)
		if err := d.known(ctx, nil, tenantID, further); err != nil {
			return Group{}, err
		}
		if !scopes && before.IsBuiltin() {
			return Group{}, ErrBuiltin
		}
		if err := d.authority.MayGive(ctx, tenantID, further); err != nil {
			return Group{}, err
		}
		after.UpdatedAt = d.now()
		req := engine.WriteRequest{Origin: origin(ctx, commitID)}
		req.Also = func(ctx context.Context, tx *sqldb.Tx) error {
			if err := d.known(ctx, tx, tenantID, further); err != nil {
				return err
			}
			return updateGroup(ctx, tx, before, after)
		}
		for _, scope := range further {
			req.Ops = append(req.Ops, grant(groupID, scope))
		}
		for _, scope := range added(after.Scopes, before.Scopes) {
			op := grant(groupID, scope)
			op.Delete = true
			req.Ops = append(req.Ops, op)
		}
		req.Attach = func(_ tuplestore.Result, b *sqldb.Batch) {
			eventlog.Append(b, tenantID, groupUpdated(ctx, before, after))
		}
		_, err = d.relations.Write(ctx, tenantID, req)
		var gone *engine.RelationNotFoundError
		if errors.Is(err, errChanged) || errors.As(err, &gone) {
			continue // by somebody else, meanwhile
		}
		if err != nil {
			return Group{}, fmt.Errorf("update group: %w", err)
		}
		return d.Group(ctx, tenantID, groupID)
	}
}

// DeleteGroup removes a group, with every relation that names it. commitID is that of
// [Directory.CreateGroup]. It fails with [ErrGroupNotFound] or [ErrBuiltin].
func (d *Directory) DeleteGroup(ctx context.Context, tenantID, groupID, commitID string) error {
	g, err := d.Group(ctx, tenantID, groupID)
	if err != nil {
		return err
	}
	if g.IsBuiltin() {
		return ErrBuiltin
	}
	change := origin(ctx, commitID)
	change.Also = func(ctx context.Context, tx *sqldb.Tx) error { return deleteGroup(ctx, tx, g) }
	change.Attach = func(_ tuplestore.Result, b *sqldb.Batch) { eventlog.Append(b, tenantID, groupDeleted(ctx, g)) }
	_, err = d.relations.Unregister(ctx, tenantID, groupObject(groupID), change)
	var gone *engine.ResourceNotFoundError
	if errors.As(err, &gone) {
		err = ErrGroupNotFound
	}
	if err != nil {
		return fmt.Errorf("delete group: %w", err)
	}
	return nil
}

// Groups lists groups, newest first, behind a position (nil: from the start), at most
// limit: those that have a text in slug, name or description, and a user, if asked for.
func (d *Directory) Groups(ctx context.Context, tenantID, query, userID string, after *Position, limit int) ([]Group, error) {
	var of []string
	if userID != "" {
		memberships, err := d.memberships(ctx, d.relations.Naming, tenantID, userID)
		if err != nil || len(memberships) == 0 {
			return nil, err
		}
		of = groupIDs(memberships)
	}
	found, err := selectGroups(ctx, d.db, tenantID, strings.Fields(text.Fold(query)), of, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	return found, nil
}

// isMember reports within a transaction whether a user is a member of a group.
func (d *Directory) isMember(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) (bool, error) {
	naming := func(ctx context.Context, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
		return d.relations.NamingIn(ctx, tx, tenantID, typ, subject, after, limit)
	}
	memberships, err := d.memberships(ctx, naming, tenantID, userID)
	if err != nil || len(memberships) == 0 {
		return false, err
	}
	found, err := selectGroups(ctx, tx, tenantID, nil, groupIDs(memberships), nil, 1)
	return len(found) > 0, err
}

// naming lists relations that name a subject, as [engine.Engine.Naming] does.
type naming func(ctx context.Context, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)

func groupIDs(memberships []tuplestore.Record) (ids []string) {
	for _, m := range memberships {
		ids = append(ids, m.Object.ID)
	}
	return ids
}

// memberships are the relations that make a user a member of groups.
func (d *Directory) memberships(ctx context.Context, list naming, tenantID, userID string) (found []tuplestore.Record, err error) {
	const page = 1000
	var after *tuplestore.Record
	for {
		records, err := list(ctx, tenantID, schema.GroupType, userObject(userID), after, page)
		if err != nil {
			return nil, fmt.Errorf("list groups of a user: %w", err)
		}
		if found = append(found, records...); len(records) < page {
			return found, nil
		}
		after = &records[page-1]
	}
}

// added are those scopes of after that are not among those of before.
func added(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(scope string) bool { return slices.Contains(before, scope) })
}

func sorted(scopes []string) []string {
	scopes = slices.Clone(scopes)
	slices.Sort(scopes)
	return slices.Compact(scopes)
}
