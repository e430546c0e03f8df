package identity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// ErrLastAdministrator is returned for a change that would leave a tenant without an active
// administrator.
var ErrLastAdministrator = errors.New("the last administrator cannot be removed, disabled or deleted")

// MaxMembers is the maximum number of members that a call can add or remove.
const MaxMembers = 1000

// Member is a user as the member of a group.
type Member struct {
	User
	AddedAt time.Time
	AddedBy string // the id of a user, or the client id of an application
}

// Outcome is the result for one user of a call about several.
type Outcome string

const (
	Succeeded     Outcome = "succeeded"
	AlreadyMember Outcome = "already_member"
	NotMember     Outcome = "not_member"
	UnknownUser   Outcome = "unknown_user"
)

func membership(groupID, userID string) engine.WriteOp {
	return engine.WriteOp{
		Resource: groupObject(groupID), Relation: schema.GroupMember,
		Subject: tuplestore.Subject{Type: schema.UserType, ID: userID},
	}
}

// errChanged is returned for a change that was based on outdated state. The change is repeated.
var errChanged = errors.New("changed concurrently")

// AddMembers adds users to a group: all that exist, or none. It returns the outcome of each user.
// commitID is as for [Directory.CreateGroup]. AddMembers fails with [ErrGroupNotFound], or with
// [*authority.DeniedError] for a group with a scope that the caller lacks.
func (d *Directory) AddMembers(ctx context.Context, tenantID, groupID string, userIDs []string, commitID string) (map[string]Outcome, error) {
	for {
		g, err := d.Group(ctx, tenantID, groupID)
		if err != nil {
			return nil, err
		}
		if err := d.authority.MayGive(ctx, tenantID, g.Scopes); err != nil {
			return nil, err
		}
		known, err := selectKnown(ctx, d.db, tenantID, userIDs)
		if err != nil {
			return nil, fmt.Errorf("add members: %w", err)
		}
		outcomes := map[string]Outcome{}
		var users []string
		for _, userID := range userIDs {
			if _, ok := outcomes[userID]; ok {
				continue
			}
			if outcomes[userID] = UnknownUser; known[userID] {
				outcomes[userID] = Succeeded
				users = append(users, userID)
			}
		}
		if len(users) == 0 {
			return outcomes, nil
		}
		req := engine.WriteRequest{Origin: origin(ctx, commitID)}
		for _, userID := range users {
			req.Ops = append(req.Ops, membership(groupID, userID))
		}
		req.Also = func(ctx context.Context, tx *sqldb.Tx) error {
			// The transaction holds the lock of the relations, which deleting a user or
			// a group requires.
			still, err := selectKnown(ctx, tx, tenantID, users)
			if err == nil && len(still) < len(users) {
				err = errChanged
			}
			var now Group
			if err == nil {
				now, err = selectGroup(ctx, tx, tenantID, groupID)
			}
			if err == nil && len(added(g.Scopes, now.Scopes)) > 0 {
				err = errChanged
			}
			return err
		}
		req.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
			var changed []string
			for i, userID := range users {
				if r.Statuses[i] == tuplestore.Created {
					changed = append(changed, userID)
				}
			}
			if len(changed) > 0 {
				countMembers(b, g, len(changed), d.now())
				eventlog.AppendAt(b, tenantID, int64(r.Revision), membersChanged(ctx, memberAdded, g, changed)...)
			}
		}
		written, err := d.relations.Write(ctx, tenantID, req)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("add members: %w", err)
		}
		for i, userID := range users {
			if written.Statuses[i] != tuplestore.Created {
				outcomes[userID] = AlreadyMember
			}
		}
		return outcomes, nil
	}
}

// RemoveMembers removes users from a group. It returns the outcome of each user. commitID is as
// for [Directory.CreateGroup]. RemoveMembers fails with [ErrGroupNotFound] or [ErrLastAdministrator].
func (d *Directory) RemoveMembers(ctx context.Context, tenantID, groupID string, userIDs []string, commitID string) (map[string]Outcome, error) {
	g, err := d.Group(ctx, tenantID, groupID)
	if err != nil {
		return nil, err
	}
	outcomes := map[string]Outcome{}
	for _, userID := range userIDs {
		outcomes[userID] = NotMember
	}
	known, err := selectKnown(ctx, d.db, tenantID, userIDs)
	if err != nil {
		return nil, fmt.Errorf("remove members: %w", err)
	}
	users := slices.Sorted(maps.Keys(known)) // only existing users can be members
	if len(users) == 0 {
		return outcomes, nil
	}
	req := engine.WriteRequest{Origin: origin(ctx, commitID)}
	for _, userID := range users {
		op := membership(groupID, userID)
		op.Delete, op.IfPresent = true, true
		req.Ops = append(req.Ops, op)
	}
	req.Alone = g.IsBuiltin()
	req.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		if _, err := selectGroup(ctx, tx, tenantID, groupID); err != nil || !g.IsBuiltin() {
			return err
		}
		return d.keepsAdministrator(ctx, tx, g, users)
	}
	req.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		var changed []string
		for i, userID := range users {
			if r.Counts[i] > 0 {
				changed = append(changed, userID)
			}
		}
		if len(changed) > 0 {
			countMembers(b, g, -len(changed), d.now())
			eventlog.AppendAt(b, tenantID, int64(r.Revision), membersChanged(ctx, memberRemoved, g, changed)...)
		}
	}
	written, err := d.relations.Write(ctx, tenantID, req)
	if err != nil {
		return nil, fmt.Errorf("remove members: %w", err)
	}
	for i, userID := range users {
		if written.Counts[i] > 0 {
			outcomes[userID] = Succeeded
		}
	}
	return outcomes, nil
}

// keepsAdministrator fails with [ErrLastAdministrator] if the group of the administrators has no
// other active member than those that leave. Managed users do not count: their session ends with
// their role in the organisation. The caller holds the lock of the relations.
func (d *Directory) keepsAdministrator(ctx context.Context, tx *sqldb.Tx, g Group, leaving []string) error {
	var after *tuplestore.Record
	member := false // one of those that leave is a member
	leaving, err := counted(ctx, tx, g.TenantID, leaving)
	if err != nil {
		return err
	}
	for {
		records, err := d.relations.RelationsIn(ctx, tx, g.TenantID, groupObject(g.ID), schema.GroupMember, after, MaxMembers)
		if err != nil {
			return err
		}
		var staying []string
		for _, r := range records {
			if slices.Contains(leaving, r.Subject.ID) {
				member = true
			} else {
				staying = append(staying, r.Subject.ID)
			}
		}
		active, err := countActive(ctx, tx, g.TenantID, staying)
		switch {
		case err != nil || active > 0:
			return err
		case len(records) < MaxMembers && member:
			return ErrLastAdministrator
		case len(records) < MaxMembers:
			return nil
		}
		after = &records[len(records)-1]
	}
}

// MemberPosition is a position in a list of members: after this one.
type MemberPosition struct{ UserID string }

// Members lists the members of a group by id, at most limit, after a position (nil: from the
// start). It fails with [ErrGroupNotFound].
func (d *Directory) Members(ctx context.Context, tenantID, groupID string, after *MemberPosition, limit int) ([]Member, error) {
	if _, err := d.Group(ctx, tenantID, groupID); err != nil {
		return nil, err
	}
	var last *tuplestore.Record
	if after != nil {
		op := membership(groupID, after.UserID)
		last = &tuplestore.Record{Fact: tuplestore.Fact{Tuple: tuplestore.Tuple{Object: op.Resource, Relation: op.Relation, Subject: op.Subject}}}
	}
	records, _, err := d.relations.Relations(ctx, tenantID, groupObject(groupID), schema.GroupMember, last, limit)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	ids := make([]string, len(records))
	for i, r := range records {
		ids[i] = r.Subject.ID
	}
	users, err := selectUsers(ctx, d.db, tenantID, ids)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	members := make([]Member, 0, len(records))
	for _, r := range records {
		u, ok := users[r.Subject.ID]
		if !ok { // deleted since
			u = User{ID: r.Subject.ID}
		}
		members = append(members, Member{User: u, AddedAt: r.CreatedAt, AddedBy: r.CreatedBy})
	}
	return members, nil
}

// ErrMemberNotFound is returned for a user who is not a member of the group.
var ErrMemberNotFound = errors.New("member not found")

// Member returns a member of a group. It fails with [ErrMemberNotFound].
func (d *Directory) Member(ctx context.Context, tenantID, groupID, userID string) (Member, error) {
	memberships, err := d.memberships(ctx, d.relations.Naming, tenantID, userID)
	if err != nil {
		return Member{}, err
	}
	for _, r := range memberships {
		if r.Object.ID == groupID && r.Relation == schema.GroupMember {
			u, err := d.User(ctx, tenantID, userID)
			return Member{User: u, AddedAt: r.CreatedAt, AddedBy: r.CreatedBy}, err
		}
	}
	return Member{}, ErrMemberNotFound
}

// Administrators creates the group of administrators of a tenant if it does not exist, with the
// given scopes and with the first user of the tenant as a member.
func (d *Directory) Administrators(ctx context.Context, tenantID string, scopes []string) error {
	if _, err := selectGroupBySlug(ctx, d.db, tenantID, AdministratorsSlug); !errors.Is(err, ErrGroupNotFound) {
		return err
	}
	first, err := d.FirstUser(ctx, tenantID)
	if err != nil && !errors.Is(err, ErrUserNotFound) {
		return err
	}
	n := NewGroup{
		Slug: AdministratorsSlug, Name: "Administrators", Description: "Users who may do everything in this tenant.", Scopes: scopes, initial: true,
	}
	if first.ID != "" {
		n.first = []string{first.ID}
	}
	_, err = d.createGroup(ctx, tenantID, n, engine.Origin{Actor: first.ID})
	if errors.Is(err, ErrSlugTaken) { // created by another process meanwhile
		return nil
	}
	return err
}
