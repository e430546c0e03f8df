package authzen

import (
	"context"
	"encoding/json"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/tuplestore"
)

// position is the end of a page of a search, and the revision that it reflects.
type position struct {
	Token string `json:"t"`
	After string `json:"a"`
}

// page is one page of a search: the request that its cursors are bound to, and its start.
type page struct {
	handlers *Handlers
	info     *web.RequestInfo
	list     []string
	limit    int
	after    string
	at       engine.Consistency
}

func (h *Handlers) page(ctx context.Context, name string, in AuthZENSearchInput) (page, error) {
	p := page{handlers: h, info: web.InfoOf(ctx)}
	token, asked := in.Page.Token, in.Page.Limit
	in.Page = AuthZENPage{}
	filters, err := json.Marshal(in)
	if err != nil {
		return p, err
	}
	p.list = []string{name, string(filters)}
	if p.limit, err = web.Limit(asked); err != nil || token == "" {
		return p, err
	}
	var from position
	if err := h.Cursors.Resume(p.info.Tenant.ID, p.list, token, &from); err != nil {
		return p, err
	}
	p.after, p.at = from.After, engine.Consistency{Mode: engine.Exactly, Token: from.Token}
	return p, nil
}

// next returns the metadata of the page. last is its last item, empty if the search ends
// with it.
func (p page) next(token, last string, count int) (AuthZENNextPage, error) {
	next := AuthZENNextPage{Count: count}
	if last == "" {
		return next, nil
	}
	var err error
	next.NextToken, err = p.handlers.Cursors.Next(p.info.Tenant.ID, p.list, position{token, last})
	return next, err
}

func (in AuthZENSearchInput) entities(must parts) (entities, error) {
	var v web.Validation
	e := entitiesOf(&v, "", AuthZENEvaluation{Subject: &in.Subject, Action: &in.Action, Resource: &in.Resource, Context: in.Context}, must)
	return e, v.Err()
}

// SearchSubjects lists the subjects that may perform an action on a resource (AuthZEN
// §8.4).
func (h *Handlers) SearchSubjects(ctx context.Context, request SearchSubjectsRequestObject) (SearchSubjectsResponseObject, error) {
	e, err := request.Body.entities(parts{action: true, resourceID: true})
	if err != nil {
		return nil, err
	}
	p, err := h.page(ctx, "searchSubjects", *request.Body)
	if err != nil {
		return nil, err
	}
	found, err := h.Engine.ListSubjects(ctx, p.info.Tenant.ID, engine.ListSubjectsRequest{
		Resource: e.resource, Action: e.action, SubjectType: e.subject.Type, Context: e.values,
		Consistency: p.at, After: p.after, Limit: p.limit + 1,
	})
	if err != nil {
		return nil, err
	}
	entries, last := found.Entries, ""
	if len(entries) > p.limit {
		entries, last = entries[:p.limit], entries[p.limit-1].Subject.ID
	}
	var body AuthZENSubjectResults
	everyone := func() *AuthZENSubjectsContext {
		if body.Context == nil {
			body.Context = &AuthZENSubjectsContext{Everyone: true, Except: []string{}}
		}
		return body.Context
	}
	for _, entry := range entries {
		switch {
		case entry.Subject.ID == tuplestore.Wildcard: // not a subject that can be evaluated
			everyone()
		case entry.Excluded:
			c := everyone()
			c.Except = append(c.Except, entry.Subject.ID)
		default:
			body.Results = append(body.Results, AuthZENSubjectResult{Type: entry.Subject.Type, ID: entry.Subject.ID})
		}
	}
	if body.Page, err = p.next(found.Token, last, len(body.Results)); err != nil {
		return nil, err
	}
	return SearchSubjects200JSONResponse{Body: body}, nil
}

// SearchResources lists the resources on which a subject may perform an action (AuthZEN
// §8.5).
func (h *Handlers) SearchResources(ctx context.Context, request SearchResourcesRequestObject) (SearchResourcesResponseObject, error) {
	e, err := request.Body.entities(parts{subjectID: true, action: true})
	if err != nil {
		return nil, err
	}
	p, err := h.page(ctx, "searchResources", *request.Body)
	if err != nil {
		return nil, err
	}
	found, err := h.Engine.ListResources(ctx, p.info.Tenant.ID, engine.ListResourcesRequest{
		Subject: e.subject, Type: e.resource.Type, Action: e.action, Context: e.values,
		Consistency: p.at, After: p.after, Limit: p.limit + 1,
	})
	if err != nil {
		return nil, err
	}
	ids, last := found.IDs, ""
	if len(ids) > p.limit {
		ids, last = ids[:p.limit], ids[p.limit-1]
	}
	var body AuthZENResourceResults
	for _, id := range ids {
		body.Results = append(body.Results, AuthZENSubjectResult{Type: e.resource.Type, ID: id})
	}
	if body.Page, err = p.next(found.Token, last, len(ids)); err != nil {
		return nil, err
	}
	return SearchResources200JSONResponse{Body: body}, nil
}

// SearchActions lists the actions that a subject may perform on a resource (AuthZEN §8.6).
// A type has few actions, so all are on one page.
func (h *Handlers) SearchActions(ctx context.Context, request SearchActionsRequestObject) (SearchActionsResponseObject, error) {
	e, err := request.Body.entities(parts{subjectID: true, resourceID: true})
	if err != nil {
		return nil, err
	}
	found, err := h.Engine.ListActions(ctx, web.InfoOf(ctx).Tenant.ID, engine.ListActionsRequest{
		Subject: e.subject, Resource: e.resource, Context: e.values,
	})
	if err != nil {
		return nil, err
	}
	var body AuthZENActionResults
	for _, name := range found.Actions {
		body.Results = append(body.Results, AuthZENActionResult{Name: name})
	}
	body.Page.Count = len(found.Actions)
	return SearchActions200JSONResponse{Body: body}, nil
}
