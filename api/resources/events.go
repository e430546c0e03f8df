package resources

import (
	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// events says what happened if a change has a result; nothing, if it changed
// nothing.
type events func(r tuplestore.Result) (eventlog.Type, any)

// origin says that a change comes from the caller, and lets its event commit with
// it.
func origin(call *web.Call, happened events) engine.Origin {
	return engine.Origin{
		Actor: call.Principal.Subject, CommitID: call.CommitID,
		Attach: func(r tuplestore.Result, b *sqldb.Batch) {
			if t, data := happened(r); t != "" {
				eventlog.Append(b, call.Tenant.ID, call.Event(t, data))
			}
		},
	}
}

// always is a change that cannot be made without effect.
func always(t eventlog.Type, data any) events {
	return func(tuplestore.Result) (eventlog.Type, any) { return t, data }
}

type typeEvent struct {
	ResourceType any `json:"resource_type"`
}

func typePut(definition *ResourceTypeInput) events {
	return func(r tuplestore.Result) (eventlog.Type, any) {
		if r.Statuses[0] == tuplestore.Created {
			return eventlog.ResourceTypeCreated, typeEvent{definition}
		}
		return eventlog.ResourceTypeUpdated, typeEvent{definition}
	}
}

func typeDeleted(name string) events {
	return always(eventlog.ResourceTypeDeleted, typeEvent{map[string]string{"name": name}})
}

type resourceEvent struct {
	Resource         any `json:"resource"`
	RelationsDeleted int `json:"relations_deleted,omitzero"`
}

func resourceWithAttributes(o tuplestore.Object, attributes []byte) resourceEvent {
	return resourceEvent{Resource: ResourceInput{Type: o.Type, ExternalID: o.ID, Attributes: attributes}}
}

func resourcePut(o tuplestore.Object, attributes []byte) events {
	return func(r tuplestore.Result) (eventlog.Type, any) {
		switch {
		case r.Statuses[0] == tuplestore.Created:
			return eventlog.ResourceCreated, resourceWithAttributes(o, attributes)
		case attributes != nil:
			return eventlog.ResourceUpdated, resourceWithAttributes(o, attributes)
		}
		return "", nil
	}
}

func resourcePatched(o tuplestore.Object, attributes []byte) events {
	return always(eventlog.ResourceUpdated, resourceWithAttributes(o, attributes))
}

func resourceDeleted(o tuplestore.Object) events {
	return func(r tuplestore.Result) (eventlog.Type, any) {
		return eventlog.ResourceDeleted, resourceEvent{Resource: wireRef(o), RelationsDeleted: r.Counts[1] + r.Counts[2]}
	}
}

type relationEvent struct {
	Relation any `json:"relation"`
	// Replaced: the relation was there before, on other terms.
	Replaced bool `json:"replaced,omitzero"`
}

func relationWritten(relation Relation) events {
	return func(r tuplestore.Result) (eventlog.Type, any) {
		switch r.Statuses[0] {
		case tuplestore.Created:
			return eventlog.RelationCreated, relationEvent{Relation: relation}
		case tuplestore.Updated:
			return eventlog.RelationCreated, relationEvent{relation, true}
		case tuplestore.Deleted:
			return eventlog.RelationDeleted, relationEvent{Relation: relation}
		case tuplestore.Existed:
		}
		return "", nil
	}
}

type bulkEvent struct {
	Created    int          `json:"created"`
	Updated    int          `json:"updated"`
	Deleted    int          `json:"deleted"`
	Operations []bulkChange `json:"operations"` // those that changed something
}

type bulkChange struct {
	Op string `json:"op"`
	Relation
}

func bulkApplied(ops []engine.WriteOp) events {
	return func(r tuplestore.Result) (eventlog.Type, any) {
		var e bulkEvent
		for i, op := range ops {
			change := bulkChange{"create", wireRelation(op)}
			switch r.Statuses[i] {
			case tuplestore.Created:
				e.Created++
			case tuplestore.Updated:
				e.Updated++
			case tuplestore.Deleted:
				e.Deleted++
				change.Op = "delete"
			case tuplestore.Existed:
				continue
			}
			e.Operations = append(e.Operations, change)
		}
		if len(e.Operations) == 0 {
			return "", nil
		}
		return eventlog.RelationBulkApplied, e
	}
}
