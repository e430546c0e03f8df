// Package resources stores the attributes of resources, which the engine does not use, and
// writes the events of resources.
//
// The existence of a resource is a presence tuple of the tuple store, with a history and as
// part of every consistent answer. Attributes are an ordinary row, written and deleted in
// the same transaction. A resource that was only registered by a relation has no row.
package resources

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the table of attributes.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("resources", migrations) }

// Resource is a registered resource.
type Resource struct {
	Type, ExternalID string
	// Attributes is a JSON object, nil if there is none. Permission checks do not use it.
	Attributes           []byte
	CreatedAt, UpdatedAt time.Time
}

// Object returns the name of the resource in tuples.
func (r Resource) Object() tuplestore.Object {
	return tuplestore.Object{Type: r.Type, ID: r.ExternalID}
}

// Store reads and writes resources. It is safe for concurrent use. Its errors
// are the engine's: [*engine.ResourceNotFoundError], [*engine.UnknownTypeError],
// [*engine.InvalidResourceError], or the database's. Changes commit with their rows and
// events, for which the store sets AlsoOf and Attach of origins.
type Store struct {
	engine *engine.Engine
	db     *sqldb.DB
}

// New returns a store over an engine and the database that its tuples are in.
func New(e *engine.Engine, db *sqldb.DB) *Store { return &Store{e, db} }

// Put registers a resource or, if it exists, replaces its attributes. Without attributes,
// an existing resource keeps its attributes.
func (s *Store) Put(ctx context.Context, tenant string, r Resource, origin engine.Origin) (stored Resource, created bool, token string, err error) {
	now := time.Now()
	if r.Attributes != nil {
		origin.AlsoOf = func(ctx context.Context, tx *sqldb.Tx, stored tuplestore.Object) error {
			return putAttributes(ctx, tx, tenant, stored, r.Attributes, now)
		}
	}
	origin.Attach = func(result tuplestore.Result, b *sqldb.Batch) {
		switch {
		case result.Statuses[0] == tuplestore.Created:
			eventlog.AppendAt(b, tenant, int64(result.Revision), resourceCreated(ctx, r.Object(), r.Attributes))
		case r.Attributes != nil:
			eventlog.AppendAt(b, tenant, int64(result.Revision), resourceUpdated(ctx, r.Object(), r.Attributes))
		}
	}
	created, token, err = s.engine.Register(ctx, tenant, r.Object(), origin)
	if err != nil {
		return Resource{}, false, "", err
	}
	stored, err = s.Get(ctx, tenant, r.Type, r.ExternalID)
	return stored, created, token, err
}

// Patch replaces the attributes of a resource that exists; nil clears them.
func (s *Store) Patch(ctx context.Context, tenant, typ, externalID string, attributes []byte, origin engine.Origin) (stored Resource, token string, err error) {
	o := tuplestore.Object{Type: typ, ID: externalID}
	now := time.Now()
	origin.AlsoOf = func(ctx context.Context, tx *sqldb.Tx, stored tuplestore.Object) error {
		return putAttributes(ctx, tx, tenant, stored, attributes, now)
	}
	origin.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		eventlog.AppendAt(b, tenant, int64(r.Revision), resourceUpdated(ctx, o, attributes))
	}
	token, err = s.engine.Alter(ctx, tenant, o, origin)
	if err != nil {
		return Resource{}, "", err
	}
	stored, err = s.Get(ctx, tenant, typ, externalID)
	return stored, token, err
}

// Get reads one resource.
func (s *Store) Get(ctx context.Context, tenant, typ, externalID string) (Resource, error) {
	registration, err := s.engine.Registration(ctx, tenant, tuplestore.Object{Type: typ, ID: externalID})
	if err != nil {
		return Resource{}, err
	}
	found, err := s.withAttributes(ctx, tenant, typ, []engine.Registration{registration})
	if err != nil {
		return Resource{}, err
	}
	return found[0], nil
}

// List returns resources of a type, newest first, after the position that an
// earlier page ended with (nil: from the start), and the position of the last one (nil:
// there is none).
func (s *Store) List(ctx context.Context, tenant, typ string, after *tuplestore.Record, limit int) ([]Resource, *tuplestore.Record, error) {
	records, err := s.engine.Registered(ctx, tenant, typ, after, limit)
	if err != nil || len(records) == 0 {
		return nil, nil, err
	}
	found, err := s.withAttributes(ctx, tenant, typ, records)
	if err != nil {
		return nil, nil, err
	}
	return found, records[len(records)-1].Position, nil
}

// Delete removes a resource, its attributes and every relation that names it.
func (s *Store) Delete(ctx context.Context, tenant, typ, externalID string, origin engine.Origin) (token string, err error) {
	o := tuplestore.Object{Type: typ, ID: externalID}
	origin.AlsoOf = func(ctx context.Context, tx *sqldb.Tx, stored tuplestore.Object) error {
		return deleteAttributes(ctx, tx, tenant, stored)
	}
	origin.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		eventlog.AppendAt(b, tenant, int64(r.Revision), resourceDeleted(ctx, o, r.Counts[1]+r.Counts[2]))
	}
	return s.engine.Unregister(ctx, tenant, o, origin)
}

func (s *Store) withAttributes(ctx context.Context, tenant, typ string, records []engine.Registration) ([]Resource, error) {
	found := make([]Resource, len(records))
	position := make(map[string]int, len(records))
	for i, r := range records {
		found[i] = Resource{Type: typ, ExternalID: r.Object.ID, CreatedAt: r.CreatedAt, UpdatedAt: r.CreatedAt}
		position[r.Object.ID] = i
	}
	err := eachAttributes(ctx, s.db, tenant, records, func(id string, attributes []byte, updatedAt time.Time) error {
		i, ok := position[id]
		if !ok {
			return errors.New("unexpected row")
		}
		found[i].Attributes, found[i].UpdatedAt = attributes, updatedAt
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read attributes: %w", err)
	}
	return found, nil
}
