package audit

import (
	"context"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/schema"
	"stonetown/tuplestore"
)

type typeEvent struct {
	ResourceType any `json:"resource_type"`
}

func typeCreated(ctx context.Context, t schema.Type) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceTypeCreated, typeEvent{engine.TypeDocumentOf(t)})
}

func typeUpdated(ctx context.Context, t schema.Type) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceTypeUpdated, typeEvent{engine.TypeDocumentOf(t)})
}

func typeDeleted(ctx context.Context, name string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceTypeDeleted, typeEvent{map[string]string{"name": name}})
}

type relationEvent struct {
	Relation engine.RelationDocument `json:"relation"`
	// Replaced: the relation existed with another expiry or condition.
	Replaced bool `json:"replaced,omitzero"`
}

func relationCreated(ctx context.Context, op engine.WriteOp) eventlog.Event {
	return eventlog.Of(ctx, eventlog.RelationCreated, relationEvent{Relation: op.Document()})
}

func relationReplaced(ctx context.Context, op engine.WriteOp) eventlog.Event {
	return eventlog.Of(ctx, eventlog.RelationCreated, relationEvent{op.Document(), true})
}

func relationDeleted(ctx context.Context, op engine.WriteOp) eventlog.Event {
	return eventlog.Of(ctx, eventlog.RelationDeleted, relationEvent{Relation: op.Document()})
}

type bulkEvent struct {
	Created    int          `json:"created"`
	Updated    int          `json:"updated"`
	Deleted    int          `json:"deleted"`
	Operations []bulkChange `json:"operations"` // without those that changed nothing
}

type bulkChange struct {
	Op     string `json:"op"`
	Result string `json:"result"` // the name of its count
	engine.RelationDocument
}

// bulkApplied is the event of ops with these results; changed is false if none of them
// changed anything.
func bulkApplied(ctx context.Context, ops []engine.WriteOp, results tuplestore.Result) (event eventlog.Event, changed bool) {
	var data bulkEvent
	for i, op := range ops {
		if results.Counts[i] == 0 {
			continue
		}
		change := bulkChange{"create", "created", op.Document()}
		switch results.Statuses[i] {
		case tuplestore.Created:
			data.Created++
		case tuplestore.Updated:
			data.Updated++
			change.Result = "updated"
		case tuplestore.Deleted:
			data.Deleted++
			change.Op, change.Result = "delete", "deleted"
		}
		data.Operations = append(data.Operations, change)
	}
	if len(data.Operations) == 0 {
		return event, false
	}
	return eventlog.Of(ctx, eventlog.RelationBulkApplied, data), true
}
