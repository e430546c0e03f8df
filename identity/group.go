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
	// ErrGroupNotFound is returned for an unknown group.
	ErrGroupNotFound = errors.New("group not found")
	// ErrSlugInvalid is returned for an invalid or reserved slug.
	ErrSlugInvalid = errors.New("slug is not 1 to 63 lower-case letters, digits and single hyphens, or is reserved")
	// ErrSlugTaken is returned for the slug of another group.
	ErrSlugTaken = errors.New("another group has this slug")
	// ErrBuiltin is returned for deleting the group of the administrators and for changing
	// its scopes.
	ErrBuiltin = errors.New("the administrators group cannot be deleted, and its scopes cannot be changed")
)

// AdministratorsSlug is the slug of the group of administrators, which every tenant has.
const AdministratorsSlug = "administrators"

// Group is a set of users with common rights. Its members are the relations
// group:<id>#member@user:<id>, and its scopes the relations
// scope:<name>#holder@group:<id>#member.
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

// Deletable fails with [ErrBuiltin] or [ErrOrganizationMembers] for a group that cannot be deleted.
func (g Group) Deletable() error {
	switch g.Slug {
	case AdministratorsSlug:
		return ErrBuiltin
	case OrganizationMembersSlug:
		return ErrOrganizationMembers
	}
	return nil
}

// IsBuiltin reports whether the group is the group of the administrators.
func (g Group) IsBuiltin() bool { return g.Slug == AdministratorsSlug }

// NewGroup describes a new group.
type NewGroup struct {
	Slug, Name, Description string
	Scopes                  []string

	initial bool     // the group is created with its tenant, without an event
	first   []string // the ids of the first members

	// ExternalIDs are those that clients have for the group, by their client ids.
	ExternalIDs map[string]string
}

var slugPattern = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){0,62}$`)

var reservedGroupSlugs = []string{"new", "bulk", "me", "system", OrganizationMembersSlug}

func groupObject(groupID string) tuplestore.Object {
	return tuplestore.Object{Type: schema.GroupType, ID: groupID}
}

// grant is the relation that gives the members of a group a scope.
func grant(groupID, scope string) engine.WriteOp {
	return engine.WriteOp{
		Resource: tuplestore.Object{Type: schema.ScopeType, ID: scope}, Relation: schema.ScopeHolder,
		Subject: tuplestore.Subject{Type: schema.GroupType, ID: groupID, Relation: schema.GroupMember},
	}
}

// UnknownScopesError is returned for scopes that are not registered.
type UnknownScopesError struct{ Scopes []string }

func (e *UnknownScopesError) Error() string {
	return fmt.Sprintf("scope %q is not registered", e.Scopes[0])
}

// checkScopes fails with [*UnknownScopesError] for scopes that a tenant does not have. tx may be
// nil.
func (d *Directory) checkScopes(ctx context.Context, tx *sqldb.Tx, tenantID string, scopes []string) error {
	unknown, err := d.scopes.UnknownScopes(ctx, tx, tenantID, scopes)
	if err == nil && len(unknown) > 0 {
		err = &UnknownScopesError{unknown}
	}
	return err
}

// CreateGroup adds a group without members. A commit id that is not empty makes the call
// idempotent. CreateGroup fails with [*UnknownScopesError], [ErrSlugInvalid] or [ErrSlugTaken],
// or with [*authority.DeniedError] for a scope that the caller lacks.
func (d *Directory) CreateGroup(ctx context.Context, tenantID string, n NewGroup, commitID string) (Group, error) {
	return d.createGroup(ctx, tenantID, n, origin(ctx, commitID))
}

func (d *Directory) createGroup(ctx context.Context, tenantID string, n NewGroup, origin engine.Origin) (Group, error) {
	// Checked before the transaction as well, because not every text is a valid id of a
	// scope.
	if err := d.checkScopes(ctx, nil, tenantID, n.Scopes); err != nil {
		return Group{}, err
	}
	if len(n.Slug) > 63 || !slugPattern.MatchString(n.Slug) || slices.Contains(reservedGroupSlugs, n.Slug) {
		return Group{}, ErrSlugInvalid
	}
	if err := d.authority.MayGive(ctx, tenantID, n.Scopes); err != nil {
		return Group{}, err
	}
	groupID := id.New(id.Group)
	if origin.CommitID != "" { // an idempotent request writes the same relations again
		groupID = id.Of(id.Group, tenantID, origin.CommitID)
	}
	now := d.now()
	g := Group{
		ID: groupID, TenantID: tenantID, Slug: n.Slug, Name: n.Name, Description: n.Description, Scopes: sorted(n.Scopes),
		MemberCount: len(n.first), CreatedAt: now, UpdatedAt: now,
	}
	origin.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		if err := d.checkScopes(ctx, tx, tenantID, g.Scopes); err != nil {
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
	req.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		for clientID, externalID := range n.ExternalIDs {
			SetExternalID(b, tenantID, clientID, g.ID, externalID)
		}
		if !n.initial {
			eventlog.AppendAt(b, tenantID, int64(r.Revision), groupCreated(ctx, g))
		}
	}
	if _, err := d.relations.Write(ctx, tenantID, req); err != nil {
		return Group{}, fmt.Errorf("create group: %w", err)
	}
	return selectGroupBySlug(ctx, d.db, tenantID, g.Slug) // an idempotent request may have created it before
}

// Group returns a group by its id. It fails with [ErrGroupNotFound].
func (d *Directory) Group(ctx context.Context, tenantID, groupID string) (Group, error) {
	return selectGroup(ctx, d.db, tenantID, groupID)
}

// UpdateGroup changes a group. change may modify name, description and scopes, and may run more
// than once. Nothing is written if the group stays the same. commitID is as for
// [Directory.CreateGroup]. UpdateGroup fails with [ErrGroupNotFound], [*UnknownScopesError] or
// [ErrBuiltin], or with [*authority.DeniedError] for an additional scope that the caller lacks.
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
		if err := d.checkScopes(ctx, nil, tenantID, further); err != nil {
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
			if err := d.checkScopes(ctx, tx, tenantID, further); err != nil {
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
		req.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
			eventlog.AppendAt(b, tenantID, int64(r.Revision), groupUpdated(ctx, before, after))
		}
		_, err = d.relations.Write(ctx, tenantID, req)
		var gone *engine.RelationNotFoundError
		if errors.Is(err, errChanged) || errors.As(err, &gone) {
			continue // the group was changed meanwhile
		}
		if err != nil {
			return Group{}, fmt.Errorf("update group: %w", err)
		}
		return d.Group(ctx, tenantID, groupID)
	}
}

// DeleteGroup deletes a group and the relations that name it. commitID is as for
// [Directory.CreateGroup]. DeleteGroup fails with [ErrGroupNotFound], [ErrBuiltin] or
// [ErrOrganizationMembers].
func (d *Directory) DeleteGroup(ctx context.Context, tenantID, groupID, commitID string) error {
	g, err := d.Group(ctx, tenantID, groupID)
	if err != nil {
		return err
	}
	if err := g.Deletable(); err != nil {
		return err
	}
	change := origin(ctx, commitID)
	change.Also = func(ctx context.Context, tx *sqldb.Tx) error { return deleteGroup(ctx, tx, g) }
	change.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		forgetExternalIDs(b, tenantID, groupID)
		eventlog.AppendAt(b, tenantID, int64(r.Revision), groupDeleted(ctx, g))
	}
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

// Groups lists groups, newest first, at most limit, after a position (nil: from the start):
// those with a text in slug, name or description and, unless userID is empty, with the user as a
// member.
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

// isMember reports, within a transaction, whether a user is a member of any group.
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

// naming lists the relations that name a subject, as [engine.Engine.Naming] does.
type naming func(ctx context.Context, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)

func groupIDs(memberships []tuplestore.Record) (ids []string) {
	for _, m := range memberships {
		ids = append(ids, m.Object.ID)
	}
	return ids
}

// memberships returns the relations that make a user a member of groups.
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

// added returns the scopes of after that are not in before.
func added(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(scope string) bool { return slices.Contains(before, scope) })
}

func sorted(scopes []string) []string {
	scopes = slices.Clone(scopes)
	slices.Sort(scopes)
	return slices.Compact(scopes)
}
