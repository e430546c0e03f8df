// Package audit is the engine with events: every change of resource types and relations by
// a tenant's own applications commits with its event. Package resources writes the events
// of resources. Modules write to the engine itself, because their events describe the
// meaning of a relation, such as that a user has joined a group.
package audit

import (
	"context"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Engine is an engine whose writes have events. It sets the Attach of their origins.
type Engine struct {
	*engine.Engine
}

// WriteRelation writes or deletes one relation, with the event relation.created or
// relation.deleted if that changes something. It fails as [engine.Engine.Write] does.
func (e Engine) WriteRelation(ctx context.Context, tenantID string, op engine.WriteOp, origin engine.Origin) (engine.WriteResponse, error) {
	origin.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		switch r.Statuses[0] {
		case tuplestore.Created:
			eventlog.AppendAt(b, tenantID, int64(r.Revision), relationCreated(ctx, op))
		case tuplestore.Updated:
			eventlog.AppendAt(b, tenantID, int64(r.Revision), relationReplaced(ctx, op))
		case tuplestore.Deleted:
			eventlog.AppendAt(b, tenantID, int64(r.Revision), relationDeleted(ctx, op))
		case tuplestore.Existed:
		}
	}
	return e.Engine.Write(ctx, tenantID, engine.WriteRequest{Origin: origin, Ops: []engine.WriteOp{op}})
}

// Write is [engine.Engine.Write] with the event relation.bulk_applied if it changes
// something.
func (e Engine) Write(ctx context.Context, tenantID string, req engine.WriteRequest) (engine.WriteResponse, error) {
	req.Attach = bulk(ctx, tenantID, req.Ops)
	return e.Engine.Write(ctx, tenantID, req)
}

// DeleteSubjectRelations is [engine.Engine.DeleteSubjectRelations] with the event
// relation.bulk_applied if it deletes something.
func (e Engine) DeleteSubjectRelations(ctx context.Context, tenantID string, d engine.SubjectDeletion) (engine.SubjectDeleted, error) {
	of := d.Origin
	d.Origin = func(ops []engine.WriteOp) engine.Origin {
		origin := of(ops)
		origin.Attach = bulk(ctx, tenantID, ops)
		return origin
	}
	return e.Engine.DeleteSubjectRelations(ctx, tenantID, d)
}

// bulk attaches the event of many relations to a write of ops.
func bulk(ctx context.Context, tenantID string, ops []engine.WriteOp) func(tuplestore.Result, *sqldb.Batch) {
	return func(r tuplestore.Result, b *sqldb.Batch) {
		if event, changed := bulkApplied(ctx, ops, r.Statuses); changed {
			eventlog.AppendAt(b, tenantID, int64(r.Revision), event)
		}
	}
}

// PutType is [engine.Engine.PutType] with the event resource_type.created or
// resource_type.updated.
func (e Engine) PutType(ctx context.Context, tenantID string, t schema.Type, origin engine.Origin) (stored schema.Type, created bool, token string, err error) {
	origin.AttachType = func(r tuplestore.Result, stored schema.Type, created bool, b *sqldb.Batch) {
		event := typeUpdated
		if created {
			event = typeCreated
		}
		eventlog.AppendAt(b, tenantID, int64(r.Revision), event(ctx, stored))
	}
	return e.Engine.PutType(ctx, tenantID, t, origin)
}

// DeleteType is [engine.Engine.DeleteType] with the event resource_type.deleted.
func (e Engine) DeleteType(ctx context.Context, tenantID, name string, origin engine.Origin) (token string, err error) {
	origin.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		eventlog.AppendAt(b, tenantID, int64(r.Revision), typeDeleted(ctx, name))
	}
	return e.Engine.DeleteType(ctx, tenantID, name, origin)
}
