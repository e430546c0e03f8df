package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine"
	"stonetown/engine/authority"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Relations is the part of [engine.Engine] that the directory uses.
type Relations interface {
	Write(ctx context.Context, tenantID string, req engine.WriteRequest) (engine.WriteResponse, error)
	Unregister(ctx context.Context, tenantID string, o tuplestore.Object, origin engine.Origin) (token string, err error)
	Relations(ctx context.Context, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) (page []tuplestore.Record, next *tuplestore.Record, err error)
	Naming(ctx context.Context, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	Forget(ctx context.Context, tenantID string, subject tuplestore.Object, origin engine.Origin) (token string, err error)
	// RelationsIn and NamingIn are Relations and Naming within a transaction.
	RelationsIn(ctx context.Context, tx *sqldb.Tx, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	NamingIn(ctx context.Context, tx *sqldb.Tx, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
}

// origin returns the origin of a change of relations on behalf of the context's caller.
func origin(ctx context.Context, commitID string) engine.Origin {
	caller, _ := authority.Of(ctx)
	return engine.Origin{Actor: caller.ID, CommitID: commitID}
}

func userObject(userID string) tuplestore.Object {
	return tuplestore.Object{Type: schema.UserType, ID: userID}
}

// Delete deletes an account, first its memberships, one group after the other, then the other
// relations that name the user and the data of other modules ([Config.OnDelete]). A commit id
// that is not empty makes the call idempotent. Delete fails with [ErrUserNotFound] or
// [ErrLastAdministrator], or with [*authority.DeniedError] for a user with more rights than the
// caller.
func (d *Directory) Delete(ctx context.Context, tenantID, userID, commitID string) error {
	if err := d.MayManage(ctx, tenantID, userID); err != nil {
		return err
	}
	for {
		u, err := d.User(ctx, tenantID, userID)
		if err != nil {
			return err
		}
		groups, err := d.groupsOf(ctx, tenantID, userID)
		if err != nil {
			return err
		}
		for _, g := range groups {
			_, err := d.RemoveMembers(ctx, tenantID, g.ID, []string{userID}, "")
			if err != nil && !errors.Is(err, ErrGroupNotFound) {
				return err
			}
		}
		last := origin(ctx, commitID)
		last.Alone = true
		last.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
			for _, queue := range d.onDelete {
				queue(b, tenantID, userID)
			}
			eventlog.AppendAt(b, tenantID, int64(r.Revision), userDeleted(ctx, userID))
		}
		last.Also = func(ctx context.Context, tx *sqldb.Tx) error {
			// The lock of the relations keeps the user from joining another group.
			member, err := d.isMember(ctx, tx, tenantID, userID)
			if err == nil && member {
				err = errChanged
			}
			if err == nil {
				err = deleteUser(ctx, tx, u)
			}
			return err
		}
		_, err = d.relations.Forget(ctx, tenantID, userObject(userID), last)
		switch {
		case errors.Is(err, errChanged):
			continue
		case err != nil:
			return fmt.Errorf("delete user: %w", err)
		}
		return nil
	}
}

// groupsOf returns the groups of a user.
func (d *Directory) groupsOf(ctx context.Context, tenantID, userID string) ([]Group, error) {
	const all = 1 << 30
	return d.Groups(ctx, tenantID, "", userID, nil, all)
}

// Disable makes an account disabled, so that its user cannot sign in, and ends all sessions.
// commitID is as for [Directory.Delete]. Disable fails as Delete does.
func (d *Directory) Disable(ctx context.Context, tenantID, userID, commitID string) (u User, err error) {
	outer := ctx // has the origin of the events, which the context of a shared transaction lacks
	disable := func(ctx context.Context, tx *sqldb.Tx) error {
		c, err := d.UpdateIn(ctx, tx, tenantID, userID, (*User).disable)
		if u = c.After; err != nil || c.Before.State == Disabled {
			return err
		}
		if c.Ended, err = d.SignOut(ctx, tx, tenantID, userID, ""); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, c.events(outer)...)
		return tx.Send(ctx, &b)
	}
	if err := d.MayManage(ctx, tenantID, userID); err != nil {
		return User{}, err
	}
	err = d.disabling(ctx, tenantID, userID, commitID, disable)
	if err == nil && u.ID == "" { // an idempotent request has disabled the user before
		u, err = d.User(ctx, tenantID, userID)
	}
	if err != nil {
		return User{}, fmt.Errorf("disable user: %w", err)
	}
	return u, nil
}

// disabling runs the transaction that disables an account. That of a member of the group of the
// administrators is serialized with the changes of the members, and fails with
// [ErrLastAdministrator] if no other administrator is active.
func (d *Directory) disabling(ctx context.Context, tenantID, userID, commitID string, run func(context.Context, *sqldb.Tx) error) error {
	groups, err := d.groupsOf(ctx, tenantID, userID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(groups, Group.IsBuiltin)
	if i < 0 {
		return d.db.Tx(ctx, func(tx *sqldb.Tx) error { return run(ctx, tx) })
	}
	change := origin(ctx, commitID)
	change.Alone = true
	change.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		if err := d.keepsAdministrator(ctx, tx, groups[i], []string{userID}); err != nil {
			return err
		}
		return run(ctx, tx)
	}
	_, err = d.relations.Write(ctx, tenantID, engine.WriteRequest{Origin: change})
	return err
}
