package identity

import (
	"context"
	"errors"
	"fmt"

	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Relations is what the directory needs of [engine.Engine]: what users and groups may
// do is relations, and so is who is in a group.
type Relations interface {
	Write(ctx context.Context, tenantID string, req engine.WriteRequest) (engine.WriteResponse, error)
	Naming(ctx context.Context, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	Forget(ctx context.Context, tenantID string, subject tuplestore.Object, first string, origin engine.Origin) (token string, err error)
}

func userObject(userID string) tuplestore.Object {
	return tuplestore.Object{Type: schema.UserType, ID: userID}
}

// Delete removes an account for good, with every relation that names the user.
// origin says who does it, and what commits with it. It fails with
// [ErrUserNotFound].
func (d *Directory) Delete(ctx context.Context, tenantID, userID string, origin engine.Origin) error {
	u, err := d.User(ctx, tenantID, userID)
	if err != nil {
		return err
	}
	origin.Also = func(ctx context.Context, tx *sqldb.Tx) error { return deleteUser(ctx, tx, u) }
	_, err = d.relations.Forget(ctx, tenantID, userObject(userID), schema.GroupType, origin)
	if err != nil && !errors.Is(err, ErrUserNotFound) {
		err = fmt.Errorf("delete user: %w", err)
	}
	return err
}
