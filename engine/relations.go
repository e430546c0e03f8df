package engine

import (
	"context"
	"fmt"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// Relations lists the relations of a resource as written (not derived), in the order of
// relation and subject, after a record of an earlier page (nil: from the start), at most
// limit. An empty relation means all relations. It fails with [*ResourceNotFoundError].
func (e *Engine) Relations(ctx context.Context, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	if !at.compiled.HasType(o.Type) {
		return nil, &UnknownTypeError{Type: o.Type}
	}
	if relation != "" {
		if _, ok := at.compiled.Rule(o.Type, relation); !ok {
			return nil, &UndefinedRelationError{Type: o.Type, Relation: relation}
		}
	}
	snapshot := e.store.Snapshot(tenantID, at.revision)
	found, err := snapshot.Find(ctx, tuplestore.Lookup{Tuples: []tuplestore.Tuple{tuplestore.Presence(o)}})
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	if len(found) == 0 {
		return nil, &ResourceNotFoundError{Resource: o}
	}
	records, err := snapshot.List(ctx, tuplestore.Filter{ObjectType: o.Type, ObjectID: o.ID, Relation: relation}, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	return records, nil
}

// RelationsIn lists the relations of a resource as [Engine.Relations] does, on the
// connection of a transaction, for [Origin.Also]. It does not reflect writes that commit
// together with that one.
func (e *Engine) RelationsIn(ctx context.Context, tx *sqldb.Tx, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	f := tuplestore.Filter{ObjectType: o.Type, ObjectID: o.ID, Relation: relation}
	records, err := e.store.SnapshotIn(tx, tenantID).List(ctx, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	return records, nil
}

// NamingIn lists relations as [Engine.Naming] does, on the connection of a transaction,
// for [Origin.Also].
func (e *Engine) NamingIn(ctx context.Context, tx *sqldb.Tx, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	f := tuplestore.Filter{ObjectType: typ, SubjectType: subject.Type, SubjectID: subject.ID}
	records, err := e.store.SnapshotIn(tx, tenantID).List(ctx, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	return records, nil
}

// Registered lists the registered resources of a type, newest first, after a
// record of an earlier page (nil: from the start), at most limit. It fails with
// [*UnknownTypeError].
func (e *Engine) Registered(ctx context.Context, tenantID, typ string, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	if !at.compiled.HasType(typ) {
		return nil, &UnknownTypeError{Type: typ}
	}
	f := tuplestore.Filter{ObjectType: typ, Presence: tuplestore.OnlyPresence, Newest: true}
	records, err := e.store.Snapshot(tenantID, at.revision).List(ctx, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	return records, nil
}

// Registration returns the presence record of a resource, or
// [*ResourceNotFoundError].
func (e *Engine) Registration(ctx context.Context, tenantID string, o tuplestore.Object) (tuplestore.Record, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return tuplestore.Record{}, fmt.Errorf("read resource: %w", err)
	}
	if !at.compiled.HasType(o.Type) {
		return tuplestore.Record{}, &UnknownTypeError{Type: o.Type}
	}
	f := tuplestore.Filter{ObjectType: o.Type, ObjectID: o.ID, Presence: tuplestore.OnlyPresence}
	records, err := e.store.Snapshot(tenantID, at.revision).List(ctx, f, nil, 1)
	if err != nil {
		return tuplestore.Record{}, fmt.Errorf("read resource: %w", err)
	}
	if len(records) == 0 {
		return tuplestore.Record{}, &ResourceNotFoundError{Resource: o}
	}
	return records[0], nil
}

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
