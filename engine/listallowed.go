package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stonetown/engine/internal/view"
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

// AllowedList is the answer to a [ListAllowedRequest]: resources in bytewise order of type and ID. It
// is safe for concurrent use until it is released.
type AllowedList struct {
	Token string // names the revision that the list reflects

	types  []allowedOfType
	engine *Engine // has the memory for its next lists; nil: the garbage collector has it
}

// allowedOfType are the allowed resources of a type, and the actions of each, or of all.
type allowedOfType struct {
	typ     string
	ids     []string
	actions [][]string
}

// AllowedResource is a resource with the actions that allow it, in the order of the queries.
// Resources may share the memory of their actions.
type AllowedResource struct {
	tuplestore.Object
	Actions []string
}

// Len returns the number of resources.
func (l *AllowedList) Len() (n int) {
	for _, of := range l.types {
		n += len(of.ids)
	}
	return n
}

// At returns the i-th resource, 0 <= i < [AllowedList.Len].
func (l *AllowedList) At(i int) AllowedResource {
	for _, of := range l.types {
		if i < len(of.ids) {
			return of.at(i)
		}
		i -= len(of.ids)
	}
	panic("engine: no such resource in the list")
}

func (of *allowedOfType) at(i int) AllowedResource {
	actions := of.actions[0]
	if len(of.actions) > 1 {
		actions = of.actions[i]
	}
	return AllowedResource{tuplestore.Object{Type: of.typ, ID: of.ids[i]}, actions}
}

// Release ends the use of the list, so that the next one may have its memory. It need not be called:
// without it, long lists are more work for the garbage collector.
func (l *AllowedList) Release() {
	if l.engine != nil {
		for _, of := range l.types {
			l.engine.releaseIDs(of.ids)
		}
	}
	l.types = nil
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
	types, err := v.listAllowed(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("list allowed: %w", err)
	}
	list := &AllowedList{Token: v.at.token, types: types}
	if l.Heavy {
		list.engine = e
	}
	return list, nil
}

func (v *readView) listAllowed(ctx context.Context, req *ListAllowedRequest) ([]allowedOfType, error) {
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
	var list []allowedOfType
	left := req.Limit
	for _, typ := range slices.Sorted(maps.Keys(targets)) {
		after := ""
		switch {
		case typ < req.After.Type:
			continue
		case typ == req.After.Type:
			after = req.After.ID
		}
		of, err := v.allowedOf(ctx, s, typ, targets[typ], req.Filter, after, left)
		if err != nil {
			return nil, err
		}
		if req.Limit > 0 {
			of.ids = of.ids[:min(left, len(of.ids))]
			left -= len(of.ids)
		}
		list = append(list, of)
		if req.Limit > 0 && left == 0 {
			break
		}
	}
	return list, nil
}

// allowedOf lists resources of a type as [readView.allowedIDs] does, for several targets.
func (v *readView) allowedOf(ctx context.Context, s view.Subject, typ string, targets []resolved, f ResourceFilter, after string, limit int) (of allowedOfType, err error) {
	of.typ = typ
	known := map[int32][]string{} // actions may share a rule
	for _, target := range targets {
		ids, ok := known[target.rule]
		if !ok {
			if ids, err = v.allowedIDs(ctx, s, typ, target.rule, f, after, limit, v.engine.takeIDs(v.limits.Heavy)); err != nil {
				return of, err
			}
			known[target.rule] = ids
		}
		of.add(ids, target.action)
	}
	return of, nil
}

// add adds resources that an action allows. The IDs are in order, and become those of the list if it
// has none.
func (of *allowedOfType) add(ids []string, action string) {
	if of.actions == nil {
		of.ids, of.actions = ids, [][]string{{action}}
		return
	}
	all := allowedOfType{typ: of.typ, ids: make([]string, 0, len(of.ids)+len(ids)), actions: make([][]string, 0, len(of.ids)+len(ids))}
	one := []string{action}
	united := map[*string][]string{} // actions and this one, by the address of the first
	for i := 0; i < len(of.ids) || len(ids) > 0; {
		order := 1 // of the next resource of the list, to that of ids
		if i < len(of.ids) {
			order = -1
			if len(ids) > 0 {
				order = strings.Compare(of.ids[i], ids[0])
			}
		}
		if order > 0 {
			all.ids, all.actions = append(all.ids, ids[0]), append(all.actions, one)
			ids = ids[1:]
			continue
		}
		actions := of.at(i).Actions
		if order == 0 {
			with, ok := united[&actions[0]]
			if !ok {
				with = slices.Concat(actions, one)
				united[&actions[0]] = with
			}
			actions, ids = with, ids[1:]
		}
		all.ids, all.actions = append(all.ids, of.ids[i]), append(all.actions, actions)
		i++
	}
	*of = all
}
