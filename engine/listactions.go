package engine

import (
	"context"
	"fmt"

	"stonetown/engine/internal/work"
	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// ListActionsRequest asks for the actions that a subject may perform on a resource.
type ListActionsRequest struct {
	Subject  tuplestore.Subject
	Resource tuplestore.Object
	// Context and Contextual are as for a check.
	Context     map[string]any
	Contextual  []WriteOp
	Consistency Consistency
}

// ActionList is the answer to a [ListActionsRequest].
type ActionList struct {
	// Actions are in bytewise order: those of the resource's type, those by
	// convention, and its relations by name.
	Actions []string
	Token   string // names the revision that the list reflects
}

// ListActions lists every action that a check would allow. Errors are those of
// [Engine.Check], [*UnknownTypeError], [*ResourceNotFoundError], and [*ConditionError] or
// [*NegativeCycleError] if an action cannot be decided.
func (e *Engine) ListActions(ctx context.Context, tenantID string, req ListActionsRequest) (answer *ActionList, err error) {
	ctx, span := tracing.Start(ctx, "engine.list_actions")
	err = e.attempt(ctx, tenantID, func(l work.Limits) error {
		answer, err = e.listActionsWithin(ctx, tenantID, &req, l)
		return err
	})
	span.End(err)
	return answer, err
}

func (e *Engine) listActionsWithin(ctx context.Context, tenantID string, req *ListActionsRequest, l work.Limits) (*ActionList, error) {
	v, err := e.readView(ctx, tenantID, req.Consistency, l)
	if err != nil {
		return nil, fmt.Errorf("list actions: %w", err)
	}
	defer v.leave()
	if !v.at.compiled.HasType(req.Resource.Type) {
		return nil, &UnknownTypeError{Type: req.Resource.Type}
	}
	actions := v.at.compiled.Actions(req.Resource.Type)
	checks := CheckRequest{Subject: req.Subject, Context: req.Context, Contextual: req.Contextual}
	for _, action := range actions {
		checks.Queries = append(checks.Queries, Query{Resource: req.Resource, Action: action})
	}
	c := check{readView: v, req: &checks, response: &CheckResponse{Decisions: make([]Decision, len(actions))}}
	if err := c.answer(ctx); err != nil {
		return nil, fmt.Errorf("list actions: %w", err)
	}
	list := &ActionList{Token: v.at.token}
	for i, d := range c.response.Decisions {
		if d.Err != nil {
			return nil, d.Err
		}
		if d.Allowed {
			list.Actions = append(list.Actions, actions[i])
		}
	}
	return list, nil
}
