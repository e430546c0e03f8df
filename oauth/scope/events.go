package scope

import (
	"context"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

type scopeEvent struct {
	Scope   any              `json:"scope"`
	Changes document.Changes `json:"changes,omitzero"`
}

func scopeCreated(ctx context.Context, s Scope) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ScopeCreated, scopeEvent{Scope: s.Document()})
}

func scopeUpdated(ctx context.Context, before, after Scope) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ScopeUpdated, scopeEvent{after.Document(), document.Difference(before.Document(), after.Document())})
}

func scopeDeleted(ctx context.Context, name string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ScopeDeleted, scopeEvent{Scope: map[string]string{"name": name}})
}
