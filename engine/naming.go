package engine

import (
	"context"
	"errors"
	"fmt"

	"stonetown/tuplestore"
)

// Naming lists the relations of resources of a type that name an object as their
// subject, as such or as a userset of it, as they are written, in the order of
// resource and relation, after a record of an earlier page (nil: from the start), at
// most limit. It fails with [*UnknownTypeError].
func (e *Engine) Naming(ctx context.Context, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	if !at.compiled.HasType(typ) {
		return nil, &UnknownTypeError{Type: typ}
	}
	f := tuplestore.Filter{ObjectType: typ, SubjectType: subject.Type, SubjectID: subject.ID}
	records, err := e.store.Snapshot(tenantID, at.revision).List(ctx, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	return records, nil
}

// Forget deletes every relation that names a subject whose existence is kept
// elsewhere, such as a user, so that nobody inherits what it may do.
func (e *Engine) Forget(ctx context.Context, tenantID string, subject tuplestore.Object, origin Origin) (token string, err error) {
	_, token, err = e.commit(ctx, tenantID, func(position) (tuplestore.Write, error) {
		w := origin.write()
		w.Ops = []tuplestore.Op{{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{SubjectType: subject.Type, SubjectID: subject.ID}}}
		return w, nil
	})
	if err != nil {
		return "", fmt.Errorf("forget subject: %w", err)
	}
	return token, nil
}

// ErrHasRelations: the resource has relations, and was to have none.
var ErrHasRelations = errors.New("the resource has relations")

// Retire takes a resource back, known or not, that has no relations. It fails with
// [ErrHasRelations].
func (e *Engine) Retire(ctx context.Context, tenantID string, o tuplestore.Object, origin Origin) (token string, err error) {
	_, token, err = e.commit(ctx, tenantID, func(position) (tuplestore.Write, error) {
		w := origin.write()
		w.Absent = []tuplestore.Filter{{ObjectType: o.Type, ObjectID: o.ID}}
		w.Ops = []tuplestore.Op{{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{
			ObjectType: o.Type, ObjectID: o.ID, Presence: tuplestore.OnlyPresence,
		}}}
		return w, nil
	})
	var conflict *tuplestore.ConflictError
	if errors.As(err, &conflict) {
		return "", ErrHasRelations
	}
	if err != nil {
		return "", fmt.Errorf("retire resource: %w", err)
	}
	return token, nil
}
