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

// ErrLastAdministrator is returned for what would leave a tenant without a user who
// is among its administrators and can sign in.
var ErrLastAdministrator = errors.New("the last administrator cannot be removed, disabled or deleted")

// MaxMembers is how many members one call may add or remove.
const MaxMembers = 1000

// Member is a user as the member of a group.
type Member struct {
	User
	AddedAt time.Time
	AddedBy string // who added the user: the id of a user or of an application's client
}

// Outcome is what became of one user of a call about many.
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

// errChanged: something else changed what a change was based on; it is tried again.
var errChanged = errors.New("changed concurrently")

// AddMembers puts users into a group: all that exist, or none. Each user gets an
// outcome. commitID is that of [Directory.CreateGroup]. It fails with [ErrGroupNotFound],
// or with [*authority.DeniedError] for a group with a scope that the caller lacks.
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
			// From here on nobody can delete one of the users, or the group.
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
			var moved []string
			for i, userID := range users {
				if r.Statuses[i] == tuplestore.Created {
					moved = append(moved, userID)
				}
			}
			if len(moved) > 0 {
				countMembers(b, g, len(moved), d.now())
				eventlog.Append(b, tenantID, membersChanged(ctx, memberAdded, g, moved)...)
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

// RemoveMembers takes users out of a group. Each gets an outcome. commitID is that of
// [Directory.CreateGroup]. It fails with [ErrGroupNotFound] or [ErrLastAdministrator].
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
	users := slices.Sorted(maps.Keys(known)) // no others can be members
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
		return d.othersAdminister(ctx, tx, g, users)
	}
	req.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		var moved []string
		for i, userID := range users {
			if r.Counts[i] > 0 {
				moved = append(moved, userID)
			}
		}
		if len(moved) > 0 {
			countMembers(b, g, -len(moved), d.now())
			eventlog.Append(b, tenantID, membersChanged(ctx, memberRemoved, g, moved)...)
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

// othersAdminister fails with [ErrLastAdministrator] unless somebody stays who is a
// member of the administrators' group and active. It is called while the tenant's
// relations cannot change.
func (d *Directory) othersAdminister(ctx context.Context, tx *sqldb.Tx, g Group, leaving []string) error {
	var after *tuplestore.Record
	was := false // one of them an administrator
	for {
		records, err := d.relations.RelationsIn(ctx, tx, g.TenantID, groupObject(g.ID), schema.GroupMember, after, MaxMembers)
		if err != nil {
			return err
		}
		var staying []string
		for _, r := range records {
			if slices.Contains(leaving, r.Subject.ID) {
				was = true
			} else {
				staying = append(staying, r.Subject.ID)
			}
		}
		active, err := countActive(ctx, tx, g.TenantID, staying)
		switch {
		case err != nil || active > 0:
			return err
		case len(records) < MaxMembers && was:
			return ErrLastAdministrator
		case len(records) < MaxMembers:
			return nil
		}
		after = &records[len(records)-1]
	}
}

// MemberPosition is a place in a list of members: behind this one.
type MemberPosition struct{ UserID string }

// Members lists the members of a group by id, behind a position (nil: from the
// start), at most limit. It fails with [ErrGroupNotFound].
func (d *Directory) Members(ctx context.Context, tenantID, groupID string, after *MemberPosition, limit int) ([]Member, error) {
	if _, err := d.Group(ctx, tenantID, groupID); err != nil {
		return nil, err
	}
	var last *tuplestore.Record
	if after != nil {
		op := membership(groupID, after.UserID)
		last = &tuplestore.Record{Fact: tuplestore.Fact{Tuple: tuplestore.Tuple{Object: op.Resource, Relation: op.Relation, Subject: op.Subject}}}
	}
	records, err := d.relations.Relations(ctx, tenantID, groupObject(groupID), schema.GroupMember, last, limit)
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

// ErrMemberNotFound is returned for a user who is not in the group.
var ErrMemberNotFound = errors.New("member not found")

// Member finds a member of a group. It fails with [ErrMemberNotFound].
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

// Administrators makes sure that a tenant has its group of administrators. If it has
// none, one is made, with these scopes, and with the tenant's first user in it.
func (d *Directory) Administrators(ctx context.Context, tenantID string, scopes []string) error {
	if _, err := selectGroupBySlug(ctx, d.db, tenantID, AdministratorsSlug); !errors.Is(err, ErrGroupNotFound) {
		return err
	}
	first, err := selectFirstUser(ctx, d.db, tenantID)
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
	if errors.Is(err, ErrSlugTaken) { // by another process that starts
		return nil
	}
	return err
}
