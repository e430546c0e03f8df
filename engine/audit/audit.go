// Package audit is the engine with events: every change of resource types and relations by
// a tenant's own applications commits with its event. Package resources writes the events
// of resources. Modules write to the engine itself, because their events describe the
// meaning of a relation, such as that a user has joined a group.
package audit

import (
	"context"
	"fmt"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Engine is an engine whose writes have events. It sets Attach and Event of their origins.
type Engine struct {
	*engine.Engine
	// MayRename fails if data that the engine does not know has a name that would change. Nil:
	// there is no such data.
	MayRename func(ctx context.Context, tenantID string, renames []schema.Rename) error
}

// WriteRelation writes or deletes one relation, with the event relation.created or
// relation.deleted if that changes something, and relation.bulk_applied if it replaces another
// relation. It fails as [engine.Engine.Write] does.
func (e Engine) WriteRelation(ctx context.Context, tenantID string, op engine.WriteOp, origin engine.Origin) (engine.WriteResponse, error) {
	usual := relationCreated
	if op.Delete {
		usual = relationDeleted
	}
	text := usual(ctx, op).Text() // here, because other writes wait for a commit
	record(&origin, tenantID, func(r tuplestore.Result) string {
		switch r.Statuses[0] {
		case tuplestore.Created, tuplestore.Deleted:
			return text
		case tuplestore.Updated:
			return relationReplaced(ctx, op).Text()
		case tuplestore.Replaced:
			return bulk(ctx, []engine.WriteOp{op})(r)
		default:
			return ""
		}
	})
	return e.Engine.Write(ctx, tenantID, engine.WriteRequest{Origin: origin, Ops: []engine.WriteOp{op}})
}

// Write is [engine.Engine.Write] with the event relation.bulk_applied if it changes
// something.
func (e Engine) Write(ctx context.Context, tenantID string, req engine.WriteRequest) (engine.WriteResponse, error) {
	record(&req.Origin, tenantID, bulk(ctx, req.Ops))
	return e.Engine.Write(ctx, tenantID, req)
}

// Import is [engine.Engine.Write] for some lines of an import of relations, with the event
// relation.imported if it changes something. The event counts the relations and does not name them.
func (e Engine) Import(ctx context.Context, tenantID string, req engine.WriteRequest, firstLine, lastLine int64) (engine.WriteResponse, error) {
	record(&req.Origin, tenantID, imported(ctx, len(req.Ops), firstLine, lastLine))
	return e.Engine.Write(ctx, tenantID, req)
}

// DeleteRelations is [engine.Engine.DeleteRelations] with the event relation.bulk_applied if
// it deletes something.
func (e Engine) DeleteRelations(ctx context.Context, tenantID string, d engine.RelationDeletion) (engine.RelationsDeleted, error) {
	of := d.Origin
	d.Origin = func(ops []engine.WriteOp) engine.Origin {
		origin := of(ops)
		record(&origin, tenantID, bulk(ctx, ops))
		return origin
	}
	return e.Engine.DeleteRelations(ctx, tenantID, d)
}

// bulk returns the event of a write of ops.
func bulk(ctx context.Context, ops []engine.WriteOp) func(tuplestore.Result) string {
	return func(r tuplestore.Result) string {
		event, changed := bulkApplied(ctx, ops, r)
		if !changed {
			return ""
		}
		return event.Text()
	}
}

// record stores an event, unless it is empty, in the row of the commit.
func record(origin *engine.Origin, tenantID string, event func(tuplestore.Result) string) {
	var text string
	origin.Event = func(r tuplestore.Result) string {
		text = event(r)
		return text
	}
	origin.Attach = func(_ tuplestore.Result, b *sqldb.Batch) {
		if text != "" {
			eventlog.NotifyCommit(b, tenantID)
		}
	}
}

// PlanTypes is [engine.Engine.PlanTypes], and fails as MayRename does.
func (e Engine) PlanTypes(ctx context.Context, tenantID string, req engine.PlanRequest) (*engine.TypesPlan, error) {
	if err := e.mayRename(ctx, tenantID, req.Renames); err != nil {
		return nil, err
	}
	return e.Engine.PlanTypes(ctx, tenantID, req)
}

// ApplyTypes is [engine.Engine.ApplyTypes] with the event resource_type.created,
// resource_type.updated or resource_type.deleted for each type that it changes, after the event
// resource_type.renamed if it renames any or their relations. It also fails as MayRename does.
func (e Engine) ApplyTypes(ctx context.Context, tenantID string, change engine.TypesChange, origin engine.Origin) (engine.TypesApplied, error) {
	if err := e.mayRename(ctx, tenantID, change.Renames); err != nil {
		return engine.TypesApplied{}, err
	}
	origin = withTypeEvents(ctx, tenantID, origin)
	if len(change.Renames) > 0 {
		attach := origin.AttachTypes
		origin.AttachTypes = func(r tuplestore.Result, changes []engine.TypeChange, b *sqldb.Batch) {
			eventlog.AppendAt(b, tenantID, int64(r.Revision), typesRenamed(ctx, change.Renames))
			attach(r, changes, b)
		}
	}
	return e.Engine.ApplyTypes(ctx, tenantID, change, origin)
}

func (e Engine) mayRename(ctx context.Context, tenantID string, renames []schema.Rename) error {
	if len(renames) == 0 || e.MayRename == nil {
		return nil
	}
	if err := e.MayRename(ctx, tenantID, renames); err != nil {
		return fmt.Errorf("rename resource types: %w", err)
	}
	return nil
}

// PutType is [engine.Engine.PutType] with the event of ApplyTypes.
func (e Engine) PutType(ctx context.Context, tenantID string, t schema.Type, origin engine.Origin) (stored schema.Type, created bool, token string, err error) {
	return e.Engine.PutType(ctx, tenantID, t, withTypeEvents(ctx, tenantID, origin))
}

// DeleteType is [engine.Engine.DeleteType] with the event of ApplyTypes.
func (e Engine) DeleteType(ctx context.Context, tenantID, name string, origin engine.Origin) (token string, err error) {
	return e.Engine.DeleteType(ctx, tenantID, name, withTypeEvents(ctx, tenantID, origin))
}

func withTypeEvents(ctx context.Context, tenantID string, origin engine.Origin) engine.Origin {
	origin.AttachTypes = func(r tuplestore.Result, changes []engine.TypeChange, b *sqldb.Batch) {
		for _, c := range changes {
			switch c.Result {
			case engine.TypeCreated:
				eventlog.AppendAt(b, tenantID, int64(r.Revision), typeCreated(ctx, c.Type))
			case engine.TypeUpdated:
				eventlog.AppendAt(b, tenantID, int64(r.Revision), typeUpdated(ctx, c.Type))
			case engine.TypeDeleted:
				eventlog.AppendAt(b, tenantID, int64(r.Revision), typeDeleted(ctx, c.Type.Name))
			case engine.TypeUnchanged:
			}
		}
	}
	return origin
}
