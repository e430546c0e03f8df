package resources

import (
	"context"
	"net/http"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/internal/document"
	"stonetown/tuplestore"
)

// Watch streams all changes of a tenant, or how they change decisions.
func (h *Handlers) Watch(ctx context.Context, request WatchRequestObject) (WatchResponseObject, error) {
	p := request.Params
	req := engine.WatchRequest{After: p.After}
	if about := (engine.WatchedDecisions{Type: p.Type, Action: p.Action, SubjectType: p.SubjectType}); about != (engine.WatchedDecisions{}) {
		var v validation
		v.Text("", "type", p.Type)
		v.Text("", "action", p.Action)
		v.Text("", "subject_type", p.SubjectType)
		if err := v.Err(); err != nil {
			return nil, err
		}
		req.Decisions = &about
	}
	return watch{ctx, h.Engine, web.InfoOf(ctx).Tenant.ID, req}, nil
}

// watch is the response to a watch, written for as long as the client listens.
type watch struct {
	ctx    context.Context
	engine Engine
	tenant string
	req    engine.WatchRequest
}

// VisitWatchResponse implements [WatchResponseObject].
func (r watch) VisitWatchResponse(w http.ResponseWriter) error {
	to := web.NewLines(w) // sends nothing before the first event, so that a watch can be refused
	err := r.engine.Watch(r.ctx, r.tenant, r.req, func(ev engine.WatchEvent) error {
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
		Renamed: renamesOf(ev.Renamed),
	}
	switch {
	case ev.Heartbeat:
		out.Event = "heartbeat"
	case ev.Scope != nil:
		out.Event, out.Reason = "scope", WatchEventReason(ev.Scope.Reason)
		for _, r := range ev.Scope.Resources {
			out.Resources = append(out.Resources, engine.RefTo(r))
		}
		out.Subjects = wireSubjects(ev.Scope.Subjects)
	case ev.Decisions != nil:
		out.Event = "decisions"
		for _, c := range ev.Decisions {
			list := map[engine.DecisionState]*[]WatchDecision{
				engine.DecisionAllowed: &out.Gained, engine.DecisionDenied: &out.Lost,
				engine.DecisionConditional: &out.Conditional, engine.DecisionUndecidable: &out.Undecidable,
			}[c.After]
			*list = append(*list, WatchDecision{
				Resource: engine.RefTo(c.Resource), Subject: engine.SubjectDocumentOf(c.Subject), Before: decisionStates[c.Before], Except: wireSubjects(c.Except),
			})
		}
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

var decisionStates = map[engine.DecisionState]WatchDecisionBefore{
	engine.DecisionAllowed: "allowed", engine.DecisionDenied: "denied",
	engine.DecisionConditional: "conditional", engine.DecisionUndecidable: "undecidable",
}

func wireSubjects(subjects []tuplestore.Subject) (list []Subject) {
	for _, s := range subjects {
		list = append(list, engine.SubjectDocumentOf(s))
	}
	return list
}
