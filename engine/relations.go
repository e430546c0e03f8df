package engine

import (
	"context"
	"fmt"

	"stonetown/engine/internal/names"
	"stonetown/tuplestore"
)

// Relations lists the relations of a resource as written (not derived), in the order of
// relation and subject, after the position that an earlier page ended with (nil: from the
// start), at most limit. An empty relation means all relations. next is the end of the page,
// nil if there are no more. Relations fails with [*ResourceNotFoundError].
//
// The order is that of the names with which relations are stored, and a position has these
// names. They are those before renames.
func (e *Engine) Relations(ctx context.Context, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) (page []tuplestore.Record, next *tuplestore.Record, err error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return nil, nil, fmt.Errorf("list relations: %w", err)
	}
	if !at.compiled.HasType(o.Type) {
		return nil, nil, &UnknownTypeError{Type: o.Type}
	}
	if relation != "" {
		if _, ok := at.compiled.Rule(o.Type, relation); !ok {
			return nil, nil, &UndefinedRelationError{Type: o.Type, Relation: relation}
		}
	}
	snapshot := e.snapshot(tenantID, at)
	found, err := snapshot.Find(ctx, tuplestore.Lookup{Tuples: []tuplestore.Tuple{tuplestore.Presence(o)}})
	if err != nil {
		return nil, nil, fmt.Errorf("list relations: %w", err)
	}
	if len(found) == 0 {
		return nil, nil, &ResourceNotFoundError{Resource: o}
	}
	page, err = names.List(ctx, snapshot, tuplestore.Filter{ObjectType: o.Type, ObjectID: o.ID, Relation: relation}, after, limit+1)
	if err != nil {
		return nil, nil, fmt.Errorf("list relations: %w", err)
	}
	if len(page) > limit {
		page = page[:limit]
		next = names.Position(&page[limit-1], at.compiled)
	}
	return page, next, nil
}

// RelationsIn lists the relations of a resource as [Engine.Relations] does, on the
// connection of a transaction, for [Origin.Also]. It does not reflect writes that commit
// together with that one. It does not know the types, and is for those that no tenant renames.
func (e *Engine) RelationsIn(ctx context.Context, tx *tuplestore.Tx, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	f := tuplestore.Filter{ObjectType: o.Type, ObjectID: o.ID, Relation: relation}
	records, err := e.store.SnapshotIn(tx, tenantID).List(ctx, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	return records, nil
}

// NamingIn lists relations as [Engine.Naming] does, on the connection of a transaction,
// for [Origin.Also]. It is for types that no tenant renames.
func (e *Engine) NamingIn(ctx context.Context, tx *tuplestore.Tx, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	f := tuplestore.Filter{ObjectType: typ, SubjectType: subject.Type, SubjectID: subject.ID}
	records, err := e.store.SnapshotIn(tx, tenantID).List(ctx, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	return records, nil
}

// Registered lists the registered resources of a type, newest first, after the position of an
// earlier record (nil: from the start), at most limit. It fails with [*UnknownTypeError].
func (e *Engine) Registered(ctx context.Context, tenantID, typ string, after *tuplestore.Record, limit int) ([]Registration, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	if !at.compiled.HasType(typ) {
		return nil, &UnknownTypeError{Type: typ}
	}
	f := tuplestore.Filter{ObjectType: typ, Presence: tuplestore.OnlyPresence, Newest: true}
	records, err := names.List(ctx, e.snapshot(tenantID, at), f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	all := make([]Registration, len(records))
	for i := range records {
		all[i] = Registration{records[i], names.Position(&records[i], at.compiled)}
	}
	return all, nil
}

// Registration is the presence of a resource.
type Registration struct {
	tuplestore.Record
	// Position is that of the record in a list. Its object has the name by which data about the
	// resource is stored, which a rename of its type does not change.
	Position *tuplestore.Record
}

// Registration returns the presence of a resource, or [*ResourceNotFoundError].
func (e *Engine) Registration(ctx context.Context, tenantID string, o tuplestore.Object) (Registration, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return Registration{}, fmt.Errorf("read resource: %w", err)
	}
	if !at.compiled.HasType(o.Type) {
		return Registration{}, &UnknownTypeError{Type: o.Type}
	}
	f := tuplestore.Filter{ObjectType: o.Type, ObjectID: o.ID, Presence: tuplestore.OnlyPresence}
	records, err := e.snapshot(tenantID, at).List(ctx, f, nil, 1)
	if err != nil {
		return Registration{}, fmt.Errorf("read resource: %w", err)
	}
	if len(records) == 0 {
		return Registration{}, &ResourceNotFoundError{Resource: o}
	}
	return Registration{records[0], names.Position(&records[0], at.compiled)}, nil
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
	records, err := e.snapshot(tenantID, at).List(ctx, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list relations: %w", err)
	}
	return records, nil
}
