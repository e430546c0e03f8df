package identity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"stonetown/engine"
	"stonetown/identity/onetime"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// A directory of another organisation keeps users and groups as it has them: it changes the
// address and the state of users as well, and several properties in one transaction.

// Provision changes an account as a directory demands. change modifies the current account and
// may run more than once; it may change the profile, the address and the state, and its error
// ends the call. attach queues statements that commit with the change. Disabling an account ends
// its sessions, as [Directory.Disable] does; links that were mailed to a former address become
// invalid. Provision fails with [ErrUserNotFound], [ErrEmailInvalid], [ErrUserExists],
// [ErrManaged] or [ErrLastAdministrator], or with [*authority.DeniedError] for a user with more rights than the
// caller, whatever the change is: the profile decides about claims.
func (d *Directory) Provision(ctx context.Context, tenantID, userID string, change func(*User) error, attach func(*sqldb.Batch)) (after User, err error) {
	if err := d.MayManage(ctx, tenantID, userID); err != nil {
		return User{}, err
	}
	seen, err := d.User(ctx, tenantID, userID)
	if err != nil {
		return User{}, err
	}
	wanted := seen
	if err := change(&wanted); err != nil {
		return User{}, err
	}
	outer := ctx // has the origin of the events, which the context of a shared transaction lacks
	disables := func(before, after User) bool { return before.State != Disabled && after.State == Disabled }
	run := func(ctx context.Context, tx *sqldb.Tx) error {
		c, err := d.provisionIn(ctx, tx, tenantID, userID, change, attach)
		if err == nil && disables(c.Before, c.After) && !disables(seen, wanted) {
			return errChanged
		}
		if err == nil && disables(c.Before, c.After) {
			c.Ended, err = d.SignOut(ctx, tx, tenantID, userID, "")
		}
		if after = c.After; err != nil || reflect.DeepEqual(c.Before, c.After) {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, c.events(outer)...)
		if c.Before.Email != c.After.Email {
			eventlog.Append(&b, tenantID, userEmailChanged(outer, c))
		}
		return tx.Send(ctx, &b)
	}
	if disables(seen, wanted) {
		err = d.disabling(ctx, tenantID, userID, "", run)
	} else {
		err = d.db.Tx(ctx, func(tx *sqldb.Tx) error { return run(ctx, tx) })
	}
	if errors.Is(err, errChanged) {
		return d.Provision(ctx, tenantID, userID, change, attach)
	}
	if err != nil {
		return User{}, fmt.Errorf("provision user: %w", err)
	}
	return after, nil
}

// provisionIn changes the row of an account.
func (d *Directory) provisionIn(ctx context.Context, tx *sqldb.Tx, tenantID, userID string, change func(*User) error, attach func(*sqldb.Batch)) (Change, error) {
	before, err := selectUser(ctx, tx, tenantID, userID)
	if err != nil {
		return Change{}, err
	}
	c := Change{Before: before, After: before}
	if err := change(&c.After); err != nil {
		return Change{}, err
	}
	if c.After.Email != before.Email && !ValidEmail(c.After.Email) {
		return Change{}, ErrEmailInvalid
	}
	if err := c.staysManaged(); err != nil {
		return Change{}, err
	}
	var b sqldb.Batch
	attach(&b)
	if !reflect.DeepEqual(before, c.After) {
		c.After.UpdatedAt = d.now()
		updateUser(&b, c.After)
	}
	if c.After.Email != before.Email {
		onetime.Discard(&b, tenantID, userID)
	}
	if b.Len() == 0 {
		return c, nil
	}
	err = tx.Send(ctx, &b)
	if sqldb.IsUniqueViolation(err) {
		err = ErrUserExists
	}
	return c, err
}

// userEmailChanged is the event of an address that a directory changed.
func userEmailChanged(ctx context.Context, c Change) eventlog.Event {
	type subject struct {
		ID    string `json:"id"`
		Email string `json:"email"`
	}
	return eventlog.Of(ctx, eventlog.UserEmailChanged, struct {
		User    subject          `json:"user"`
		Changes document.Changes `json:"changes"`
	}{subject{c.After.ID, c.After.Email}, document.Changes{"email": {c.Before.Email, c.After.Email}}})
}

// UnknownMembersError is returned for members that are no users.
type UnknownMembersError struct{ IDs []string }

func (e *UnknownMembersError) Error() string { return fmt.Sprintf("user %q not found", e.IDs[0]) }

// GroupChange is a change of the name and the members of a group.
type GroupChange struct {
	Name        string   // empty: stays the same
	Add, Remove []string // ids of users, at most [MaxMembers] together
	// Check is called in the transaction with the group as it is then, and may be called more than
	// once; its error ends the call. nil: there is no check.
	Check  func(Group) error
	Attach func(*sqldb.Batch)
}

// MayProvision fails with [*authority.DeniedError] if the caller lacks a scope that a group gives.
func (d *Directory) MayProvision(ctx context.Context, tenantID string, g Group) error {
	return d.authority.MayGive(ctx, tenantID, g.Scopes)
}

// ProvisionGroup changes a group as a directory demands, in one transaction. Members that are
// added twice or removed without being there are no error. It fails with [ErrGroupNotFound],
// [*UnknownMembersError] for users to add that do not exist, or [ErrLastAdministrator], or with
// [*authority.DeniedError] for a group with a scope that the caller lacks, even if the change
// takes rights away, or with the error of the check.
func (d *Directory) ProvisionGroup(ctx context.Context, tenantID, groupID string, c GroupChange) (Group, error) {
	for {
		g, err := d.Group(ctx, tenantID, groupID)
		if err != nil {
			return Group{}, err
		}
		if err := d.MayProvision(ctx, tenantID, g); err != nil {
			return Group{}, err
		}
		known, err := selectKnown(ctx, d.db, tenantID, append(slices.Clone(c.Add), c.Remove...))
		if err != nil {
			return Group{}, fmt.Errorf("provision group: %w", err)
		}
		if unknown := slices.DeleteFunc(slices.Clone(c.Add), func(id string) bool { return known[id] }); len(unknown) > 0 {
			return Group{}, &UnknownMembersError{unknown}
		}
		removed := slices.DeleteFunc(slices.Clone(c.Remove), func(id string) bool { return !known[id] })
		_, err = d.relations.Write(ctx, tenantID, d.groupWrite(ctx, g, c, removed))
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return Group{}, fmt.Errorf("provision group: %w", err)
		}
		return d.Group(ctx, tenantID, groupID)
	}
}

// groupWrite returns the write of a change of a group.
func (d *Directory) groupWrite(ctx context.Context, g Group, c GroupChange, removed []string) engine.WriteRequest {
	outer := ctx
	req := engine.WriteRequest{Origin: origin(ctx, "")}
	for _, userID := range c.Add {
		req.Ops = append(req.Ops, membership(g.ID, userID))
	}
	for _, userID := range removed {
		op := membership(g.ID, userID)
		op.Delete, op.IfPresent = true, true
		req.Ops = append(req.Ops, op)
	}
	renamed := g
	if c.Name != "" {
		renamed.Name = c.Name
	}
	req.Alone = g.IsBuiltin() && len(removed) > 0
	req.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		// The transaction holds the lock of the relations, which deleting a user or a group
		// requires.
		still, err := selectKnown(ctx, tx, g.TenantID, c.Add)
		if err == nil && len(still) < len(c.Add) {
			return errChanged
		}
		if err == nil {
			var now Group
			now, err = selectGroup(ctx, tx, g.TenantID, g.ID)
			if err == nil && len(added(g.Scopes, now.Scopes)) > 0 {
				return errChanged
			}
			if err == nil && c.Check != nil {
				err = c.Check(now)
			}
		}
		if err == nil && req.Alone {
			err = d.keepsAdministrator(ctx, tx, g, removed)
		}
		if err == nil && renamed.Name != g.Name {
			renamed.UpdatedAt = d.now()
			err = updateGroup(ctx, tx, g, renamed)
		}
		return err
	}
	req.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		var events []eventlog.Event
		if renamed.Name != g.Name {
			events = append(events, groupUpdated(outer, g, renamed))
		}
		var joined, left []string
		for i, userID := range c.Add {
			if r.Statuses[i] == tuplestore.Created {
				joined = append(joined, userID)
			}
		}
		for i, userID := range removed {
			if r.Counts[len(c.Add)+i] > 0 {
				left = append(left, userID)
			}
		}
		if len(joined)+len(left) > 0 {
			countMembers(b, g, len(joined)-len(left), d.now())
		}
		events = append(events, membersChanged(outer, memberAdded, g, joined)...)
		events = append(events, membersChanged(outer, memberRemoved, g, left)...)
		if c.Attach != nil {
			c.Attach(b)
		}
		eventlog.AppendAt(b, g.TenantID, int64(r.Revision), events...)
	}
	return req
}

// MemberIDs lists the ids of the members of a group in their order, at most limit, after one of
// them (empty: from the start). It does not read the users.
func (d *Directory) MemberIDs(ctx context.Context, tenantID, groupID, after string, limit int) ([]string, error) {
	var last *tuplestore.Record
	if after != "" {
		op := membership(groupID, after)
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
	return ids, nil
}

// GroupIDs returns the ids of the groups of a user.
func (d *Directory) GroupIDs(ctx context.Context, tenantID, userID string) ([]string, error) {
	memberships, err := d.memberships(ctx, d.relations.Naming, tenantID, userID)
	return groupIDs(memberships), err
}
