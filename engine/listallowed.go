package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stonetown/engine/internal/work"
	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// ResourceQuery asks for the resources of a type on which an action may be performed.
type ResourceQuery struct {
	Type   string
	Action string // mapped to a relation as for a check
}

// ListAllowedRequest asks for the resources that a subject is allowed by at least one of
// some queries.
type ListAllowedRequest struct {
	Subject tuplestore.Subject
	Queries []ResourceQuery
	Filter  ResourceFilter
	// Context and Contextual are as for a check.
	Context     map[string]any
	Contextual  []WriteOp
	Consistency Consistency
	// After omits resources up to this one, in the order of the list.
	After tuplestore.Object
	// Limit is the maximum number of resources; 0: unlimited.
	Limit int
}

// AllowedList is the answer to a [ListAllowedRequest].
type AllowedList struct {
	// Resources are in bytewise order of type and ID.
	Resources []AllowedResource
	Token     string // names the revision that the list reflects
}

// AllowedResource is a resource with the actions that allow it, in the order of the queries.
// Resources may share the memory of their actions.
type AllowedResource struct {
	tuplestore.Object
	Actions []string
}

// ListAllowed is [Engine.ListResources] for several types and actions, from one revision.
func (e *Engine) ListAllowed(ctx context.Context, tenantID string, req ListAllowedRequest) (answer *AllowedList, err error) {
	ctx, span := tracing.Start(ctx, "engine.list_allowed")
	span.Int("stonetown.queries", len(req.Queries))
	err = e.attempt(ctx, tenantID, func(l work.Limits) error {
		answer, err = e.listAllowedWithin(ctx, tenantID, &req, l)
		return err
	})
	span.End(err)
	return answer, err
}

func (e *Engine) listAllowedWithin(ctx context.Context, tenantID string, req *ListAllowedRequest, l work.Limits) (*AllowedList, error) {
	viewOf := e.reverseView
	if req.Filter.IDs != nil {
		viewOf = e.readView
	}
	v, err := viewOf(ctx, tenantID, req.Consistency, l)
	if err != nil {
		return nil, fmt.Errorf("list allowed: %w", err)
	}
	defer v.leave()
	found, err := v.listAllowed(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("list allowed: %w", err)
	}
	return &AllowedList{Resources: found, Token: v.at.token}, nil
}

func (v *readView) listAllowed(ctx context.Context, req *ListAllowedRequest) ([]AllowedResource, error) {
	subject, err := checkedSubject(v.at.compiled, req.Subject)
	if err != nil {
		return nil, err
	}
	targets := map[string][]resolved{}
	for _, q := range req.Queries {
		target := resolve(v.at.compiled, q.Type, q.Action)
		if target.err != nil {
			return nil, target.err
		}
		targets[q.Type] = append(targets[q.Type], target)
	}
	if err := v.addContextual(req.Contextual); err != nil {
		return nil, err
	}
	s := v.begin(ctx, subject, req.Context)
	types := make([]string, 0, len(targets))
	for typ := range targets {
		if typ >= req.After.Type {
			types = append(types, typ)
		}
	}
	slices.Sort(types)
	var list []AllowedResource
	for _, typ := range types {
		after, limit := "", 0
		if typ == req.After.Type {
			after = req.After.ID
		}
		if req.Limit > 0 {
			if limit = req.Limit - len(list); limit == 0 {
				break
			}
		}
		known := map[int32][]string{} // actions may share a rule
		start := len(list)
		for _, target := range targets[typ] {
			ids, ok := known[target.rule]
			if !ok {
				if ids, err = v.allowedIDs(ctx, s, typ, target.rule, req.Filter, after, limit); err != nil {
					return nil, err
				}
				known[target.rule] = ids
			}
			actions := []string{target.action}
			list = slices.Grow(list, len(ids))
			for _, id := range ids {
				list = append(list, AllowedResource{tuplestore.Object{Type: typ, ID: id}, actions})
			}
		}
		if len(targets[typ]) > 1 {
			list = list[:start+len(merged(list[start:]))]
		}
		if limit > 0 {
			list = list[:min(len(list), start+limit)]
		}
	}
	return list, nil
}

// merged sorts resources of one type, and unites the actions of equal ones.
func merged(list []AllowedResource) []AllowedResource {
	slices.SortStableFunc(list, func(a, b AllowedResource) int { return strings.Compare(a.ID, b.ID) })
	n := 0
	for _, r := range list {
		if n > 0 && list[n-1].ID == r.ID {
			list[n-1].Actions = slices.Concat(list[n-1].Actions, r.Actions)
			continue
		}
		list[n] = r
		n++
	}
	return list[:n]
}
