package resources

import (
	"context"
	"net/http"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/internal/document"
	"stonetown/tuplestore"
)

// Watch streams all changes of a tenant.
func (h *Handlers) Watch(ctx context.Context, request WatchRequestObject) (WatchResponseObject, error) {
	return watch{ctx, h.Engine, web.InfoOf(ctx).Tenant.ID, request.Params.After}, nil
}

// watch is the response to a watch, written for as long as the client listens.
type watch struct {
	ctx    context.Context
	engine Engine
	tenant string
	after  string
}

// VisitWatchResponse implements [WatchResponseObject].
func (r watch) VisitWatchResponse(w http.ResponseWriter) error {
	to := web.NewLines(w) // sends nothing before the first event, so that a watch can be refused
	err := r.engine.Watch(r.ctx, r.tenant, engine.WatchRequest{After: r.after}, func(ev engine.WatchEvent) error {
		if err := to.Write(wireEvent(ev)); err != nil {
			return err
		}
		return to.Flush()
	})
	if r.ctx.Err() != nil {
		return nil // the client disconnected, its token expired, or the service stops
	}
	return err
}

func wireEvent(ev engine.WatchEvent) WatchEvent {
	out := WatchEvent{
		Event: "change", ConsistencyToken: ev.Token, At: document.Timestamp(ev.At), Actor: ev.Actor, SchemaChanged: ev.SchemaChanged,
	}
	if ev.Heartbeat {
		out.Event = "heartbeat"
	}
	for _, c := range ev.Changes {
		out.Changes = append(out.Changes, wireChange(c))
	}
	return out
}

func wireChange(c tuplestore.Change) WatchChange {
	out := WatchChange{Op: "create", Resource: engine.RefTo(c.Tuple.Object), Relation: c.Tuple.Relation}
	if c.Deleted {
		out.Op = "delete"
	}
	if !c.Tuple.IsPresence() {
		out.Subject = engine.SubjectDocumentOf(c.Tuple.Subject)
	}
	out.ExpiresAt, out.Condition = engine.QualifierDocument(c.Qualifier)
	return out
}
