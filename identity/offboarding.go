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

// Relations is what the directory needs of [engine.Engine]: what users and groups may
// do is relations, and so is who is in a group.
type Relations interface {
	Write(ctx context.Context, tenantID string, req engine.WriteRequest) (engine.WriteResponse, error)
	Unregister(ctx context.Context, tenantID string, o tuplestore.Object, origin engine.Origin) (token string, err error)
	Relations(ctx context.Context, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	Naming(ctx context.Context, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	Forget(ctx context.Context, tenantID string, subject tuplestore.Object, origin engine.Origin) (token string, err error)
	// RelationsIn and NamingIn are Relations and Naming within a transaction.
	RelationsIn(ctx context.Context, tx *sqldb.Tx, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	NamingIn(ctx context.Context, tx *sqldb.Tx, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
}

// origin is that of a change of relations that the context's caller asks for.
func origin(ctx context.Context, commitID string) engine.Origin {
	caller, _ := authority.Of(ctx)
	return engine.Origin{Actor: caller.ID, CommitID: commitID}
}

func userObject(userID string) tuplestore.Object {
	return tuplestore.Object{Type: schema.UserType, ID: userID}
}

// Delete removes an account for good, with every relation that names the user;
// memberships go first, one group after the other. What other modules keep about the user
// goes, too ([Config.OnDelete]). A commit id, if it is not empty, makes it safe to ask
// again. It fails with [ErrUserNotFound] or [ErrLastAdministrator], or with
// [*authority.DeniedError] for a user who holds more than the caller.
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
		last.Attach = func(_ tuplestore.Result, b *sqldb.Batch) {
			for _, queue := range d.onDelete {
				queue(b, tenantID, userID)
			}
			eventlog.Append(b, tenantID, userDeleted(ctx, userID))
		}
		last.Also = func(ctx context.Context, tx *sqldb.Tx) error {
			// Nobody can put the user into a group from here on.
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

// groupsOf are the groups that a user is a member of.
func (d *Directory) groupsOf(ctx context.Context, tenantID, userID string) ([]Group, error) {
	const all = 1 << 30
	return d.Groups(ctx, tenantID, "", userID, nil, all)
}

// Disable keeps a user from signing in and ends all sessions. commitID is that of
// [Directory.Delete], and it fails as that does.
func (d *Directory) Disable(ctx context.Context, tenantID, userID, commitID string) (u User, err error) {
	outer := ctx // events have its origin, which the context of a shared transaction lacks
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
	if _, err := d.User(ctx, tenantID, userID); err != nil {
		return User{}, err
	}
	if err := d.MayManage(ctx, tenantID, userID); err != nil {
		return User{}, err
	}
	groups, err := d.groupsOf(ctx, tenantID, userID)
	if err != nil {
		return User{}, err
	}
	i := slices.IndexFunc(groups, Group.IsBuiltin)
	if i < 0 {
		err = d.db.Tx(ctx, func(tx *sqldb.Tx) error { return disable(ctx, tx) })
	} else {
		// In line with the changes of who is an administrator.
		change := origin(ctx, commitID)
		change.Alone = true
		change.Also = func(ctx context.Context, tx *sqldb.Tx) error {
			if err := d.othersAdminister(ctx, tx, groups[i], []string{userID}); err != nil {
				return err
			}
			return disable(ctx, tx)
		}
		_, err = d.relations.Write(ctx, tenantID, engine.WriteRequest{Origin: change})
	}
	if err == nil && u.ID == "" { // done before, by the same request
		u, err = d.User(ctx, tenantID, userID)
	}
	if err != nil {
		return User{}, fmt.Errorf("disable user: %w", err)
	}
	return u, nil
}
