package resources

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/tuplestore"
)

// Limits of the parts of lists.
const (
	maxListQueries = 20
	maxListIDs     = 1000
	maxCount       = 10_000
)

// listPosition is the end of a page of a list, and the revision that it reflects.
type listPosition struct {
	Token string `json:"t"`
	After string `json:"a"`
	// Type is the type of the resource After, in a list of several types.
	Type string `json:"k,omitempty"`
}

// resume decodes a cursor to the position after which the list continues. Without a cursor,
// it is the start.
func (h *Handlers) resume(info *web.RequestInfo, list []string, cursor string, c *engine.Consistency) (after listPosition, err error) {
	if cursor == "" {
		return after, nil
	}
	if err := h.Cursors.Resume(info.Tenant.ID, list, cursor, &after); err != nil {
		return after, err
	}
	*c = c.Following(after.Token)
	return after, nil
}

// pageMeta returns the metadata of a page; last is its last item, zero if the list ends
// with it.
func (h *Handlers) pageMeta(info *web.RequestInfo, list []string, limit int, token string, last listPosition) (PageMeta, error) {
	meta := PageMeta{RequestID: info.RequestID, Limit: limit, ConsistencyToken: token}
	if last.After == "" {
		return meta, nil
	}
	last.Token = token
	var err error
	meta.NextCursor, err = h.next(info, list, last)
	return meta, err
}

// filters are the parts of a request that its cursor is bound to: all but the page.
func filters(list string, in any) []string {
	text, err := json.Marshal(in, json.Deterministic(true))
	if err != nil {
		panic("a request that was decoded does not encode: " + err.Error())
	}
	return []string{list, string(text)}
}

// ListAllowedResources lists a page of the resources that a subject is allowed.
func (h *Handlers) ListAllowedResources(ctx context.Context, request ListAllowedResourcesRequestObject) (ListAllowedResourcesResponseObject, error) {
	body, err := h.allowedResources(ctx, request.Body, premise{})
	return ListAllowedResources200JSONResponse{Body: body}, err
}

func (h *Handlers) allowedResources(ctx context.Context, in *ListResourcesInput, p premise) (body AllowedResourceList, err error) {
	info := web.InfoOf(ctx)
	limit, err := web.Limit(in.Limit)
	if err != nil {
		return body, err
	}
	req, list, err := resourcesRequest(StreamResourcesInput{
		Action: in.Action, At: in.At, Consistency: in.Consistency, ConsistencyToken: in.ConsistencyToken,
		Context: in.Context, ContextualRelations: in.ContextualRelations, IDPrefix: in.IDPrefix, IDs: in.IDs,
		Queries: in.Queries, Subject: in.Subject, Type: in.Type,
	})
	if err != nil {
		return body, err
	}
	list = append(list, p.filters...)
	after, err := h.resume(info, list, in.Cursor, &req.Consistency)
	if err != nil {
		return body, err
	}
	req.Consistency.Assume = p.assume
	if after.After != "" {
		req.After = tuplestore.Object{Type: cmp.Or(after.Type, in.Type), ID: after.After}
	}
	req.Limit = limit + 1
	found, err := h.listAllowed(ctx, info, req)
	if err != nil {
		return body, err
	}
	defer found.Release()
	var last listPosition
	if found.Len() > limit {
		end := found.At(limit - 1)
		last.After = end.ID
		if in.Queries != nil {
			last.Type = end.Type
		}
	}
	for i := range min(limit, found.Len()) {
		body.Data = append(body.Data, allowedResource(found.At(i), in.Queries))
	}
	body.Meta, err = h.pageMeta(info, list, limit, found.Token, last)
	return body, err
}

// StreamAllowedResources lists all resources that a subject is allowed.
func (h *Handlers) StreamAllowedResources(ctx context.Context, request StreamAllowedResourcesRequestObject) (StreamAllowedResourcesResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	req, _, err := resourcesRequest(*in)
	if err != nil {
		return nil, err
	}
	found, err := h.listAllowed(ctx, info, req)
	if err != nil {
		return nil, err
	}
	return lines(func(w *web.Lines) error {
		defer found.Release()
		var line AllowedResourceLine
		err := w.WriteAll(found.Len(), func(i int) any {
			item := allowedResource(found.At(i), in.Queries)
			line = AllowedResourceLine{Actions: item.Actions, Type: item.Type, ExternalID: item.ExternalID}
			return &line
		})
		if err != nil {
			return err
		}
		return w.Write(AllowedResourceLine{Meta: streamMeta(info, found.Len(), found.Token)})
	}), nil
}

// CountAllowedResources counts the resources that a subject is allowed, up to a limit.
func (h *Handlers) CountAllowedResources(ctx context.Context, request CountAllowedResourcesRequestObject) (CountAllowedResourcesResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	limit := maxCount
	if in.Limit != nil {
		if limit = *in.Limit; limit < 1 || limit > maxCount {
			var v web.Validation
			v.Add("limit", "out_of_range", fmt.Sprintf("must be between 1 and %d", maxCount))
			return nil, v.Err()
		}
	}
	req, _, err := resourcesRequest(StreamResourcesInput{
		Action: in.Action, At: in.At, Consistency: in.Consistency, ConsistencyToken: in.ConsistencyToken,
		Context: in.Context, ContextualRelations: in.ContextualRelations, IDPrefix: in.IDPrefix, IDs: in.IDs,
		Queries: in.Queries, Subject: in.Subject, Type: in.Type,
	})
	if err != nil {
		return nil, err
	}
	req.Limit = limit + 1
	found, err := h.listAllowed(ctx, info, req)
	if err != nil {
		return nil, err
	}
	defer found.Release()
	body := AllowedResourceCount{Meta: tokenMeta(info, found.Token)}
	body.Data.Count = min(found.Len(), limit)
	body.Data.Exact = found.Len() <= limit
	return CountAllowedResources200JSONResponse{Body: body}, nil
}

func (h *Handlers) listAllowed(ctx context.Context, info *web.RequestInfo, req engine.ListAllowedRequest) (*engine.AllowedList, error) {
	found, err := h.Engine.ListAllowed(ctx, info.Tenant.ID, req)
	if u := h.uses(info); err == nil && u.any() {
		u.subject(req.Subject)
		for _, q := range req.Queries {
			u.action(q.Type, q.Action)
		}
		u.relations(req.Contextual)
		u.warn(info)
	}
	return found, err
}

// allowedResource represents a resource, with its actions if the request has queries.
func allowedResource(r engine.AllowedResource, queries ResourceQueries) AllowedResource {
	out := AllowedResource{Type: r.Type, ExternalID: r.ID}
	if queries != nil {
		out.Actions = r.Actions
	}
	return out
}

// resourcesRequest converts a request for a list, and returns the filters of its cursors.
func resourcesRequest(in StreamResourcesInput) (engine.ListAllowedRequest, []string, error) {
	var v validation
	req := engine.ListAllowedRequest{
		Subject: v.subject("", in.Subject), Context: v.context(in.Context),
		Consistency: v.consistency(in.Consistency, in.ConsistencyToken, in.At),
	}
	switch {
	case len(in.Queries) > maxListQueries:
		return req, nil, tooMany("queries", maxListQueries)
	case in.Queries == nil:
		v.Text("", "type", in.Type)
		v.Text("", "action", in.Action)
		req.Queries = []engine.ResourceQuery{{Type: in.Type, Action: in.Action}}
	case in.Type != "" || in.Action != "":
		v.Add("queries", "conflict", "cannot be combined with type and action")
	case len(in.Queries) == 0:
		v.Add("queries", "required", "must have at least one item")
	}
	for i, item := range in.Queries {
		path := "queries/" + strconv.Itoa(i) + "/"
		v.Text(path, "type", item.Type)
		v.Text(path, "action", item.Action)
		q := engine.ResourceQuery{Type: item.Type, Action: item.Action}
		if slices.Contains(req.Queries, q) {
			v.Add("queries/"+strconv.Itoa(i), "duplicate", "is an item that the list has already")
		}
		req.Queries = append(req.Queries, q)
	}
	var err error
	if req.Filter.IDPrefix, req.Filter.IDs, err = v.ids(in.IDPrefix, in.IDs); err != nil {
		return req, nil, err
	}
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return req, nil, err
	}
	return req, filters("listAllowedResources", in), v.Err()
}

// ids reads the ids that a list is restricted to.
func (v *validation) ids(prefix string, ids []string) (string, []string, error) {
	if len(ids) > maxListIDs {
		return "", nil, tooMany("ids", maxListIDs)
	}
	if prefix != "" && v.Text("", "id_prefix", prefix) && len(prefix) > engine.MaxID {
		v.Add("id_prefix", "too_long", fmt.Sprintf("must have at most %d bytes", engine.MaxID))
	}
	if ids != nil && len(ids) == 0 {
		v.Add("ids", "required", "must have at least one item")
	}
	for i, id := range ids {
		if field := strconv.Itoa(i); v.Text("ids/", field, id) && len(id) > engine.MaxID {
			v.Add("ids/"+field, "too_long", fmt.Sprintf("must have at most %d bytes", engine.MaxID))
		}
	}
	return prefix, ids, nil
}

// ListAllowedActions lists the actions that a subject may perform on a resource.
func (h *Handlers) ListAllowedActions(ctx context.Context, request ListAllowedActionsRequestObject) (ListAllowedActionsResponseObject, error) {
	body, err := h.allowedActions(ctx, request.Body, premise{})
	return ListAllowedActions200JSONResponse{Body: body}, err
}

func (h *Handlers) allowedActions(ctx context.Context, in *ListActionsInput, p premise) (body AllowedActionList, err error) {
	info := web.InfoOf(ctx)
	var v validation
	req := engine.ListActionsRequest{
		Subject: v.subject("", in.Subject), Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID),
		Context: v.context(in.Context), Consistency: v.consistency(in.Consistency, in.ConsistencyToken, in.At),
	}
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return body, err
	}
	if err := v.Err(); err != nil {
		return body, err
	}
	req.Consistency.Assume = p.assume
	found, err := h.Engine.ListActions(ctx, info.Tenant.ID, req)
	if err != nil {
		return body, err
	}
	if u := h.uses(info); u.any() {
		u.subject(req.Subject)
		u.relation(req.Resource.Type, "")
		u.relations(req.Contextual)
		u.warn(info)
	}
	body.Meta, body.Data.Actions = tokenMeta(info, found.Token), found.Actions
	return body, nil
}

// ListAllowedSubjects lists a page of the subjects that may perform an action on a
// resource.
func (h *Handlers) ListAllowedSubjects(ctx context.Context, request ListAllowedSubjectsRequestObject) (ListAllowedSubjectsResponseObject, error) {
	body, err := h.allowedSubjects(ctx, request.Body, premise{})
	return ListAllowedSubjects200JSONResponse{Body: body}, err
}

func (h *Handlers) allowedSubjects(ctx context.Context, in *ListSubjectsInput, p premise) (body AllowedSubjectList, err error) {
	info := web.InfoOf(ctx)
	limit, err := web.Limit(in.Limit)
	if err != nil {
		return body, err
	}
	req, list, err := subjectsRequest(StreamSubjectsInput{
		Action: in.Action, At: in.At, Consistency: in.Consistency, ConsistencyToken: in.ConsistencyToken, Context: in.Context,
		ContextualRelations: in.ContextualRelations, IDPrefix: in.IDPrefix, IDs: in.IDs, Resource: in.Resource,
		SubjectRelation: in.SubjectRelation, SubjectType: in.SubjectType,
	})
	if err != nil {
		return body, err
	}
	list = append(list, p.filters...)
	after, err := h.resume(info, list, in.Cursor, &req.Consistency)
	if err != nil {
		return body, err
	}
	req.Consistency.Assume = p.assume
	req.After = after.After
	req.Limit = limit + 1
	found, err := h.listSubjects(ctx, info, req)
	if err != nil {
		return body, err
	}
	entries, last := found.Entries, listPosition{}
	if len(entries) > limit {
		entries, last.After = entries[:limit], entries[limit-1].Subject.ID
	}
	for _, e := range entries {
		named := engine.SubjectDocumentOf(e.Subject)
		body.Data = append(body.Data, AllowedSubject{Type: named.Type, ID: named.ID, Relation: named.Relation, Excluded: e.Excluded})
	}
	body.Meta, err = h.pageMeta(info, list, limit, found.Token, last)
	return body, err
}

// StreamAllowedSubjects lists all subjects that may perform an action on a resource.
func (h *Handlers) StreamAllowedSubjects(ctx context.Context, request StreamAllowedSubjectsRequestObject) (StreamAllowedSubjectsResponseObject, error) {
	info := web.InfoOf(ctx)
	req, _, err := subjectsRequest(*request.Body)
	if err != nil {
		return nil, err
	}
	found, err := h.listSubjects(ctx, info, req)
	if err != nil {
		return nil, err
	}
	return lines(func(w *web.Lines) error {
		var line AllowedSubjectLine
		err := w.WriteAll(len(found.Entries), func(i int) any {
			e := found.Entries[i]
			named := engine.SubjectDocumentOf(e.Subject)
			line = AllowedSubjectLine{Type: named.Type, ID: named.ID, Relation: named.Relation, Excluded: e.Excluded}
			return &line
		})
		if err != nil {
			return err
		}
		return w.Write(AllowedSubjectLine{Meta: streamMeta(info, len(found.Entries), found.Token)})
	}), nil
}

func (h *Handlers) listSubjects(ctx context.Context, info *web.RequestInfo, req engine.ListSubjectsRequest) (*engine.SubjectList, error) {
	found, err := h.Engine.ListSubjects(ctx, info.Tenant.ID, req)
	if u := h.uses(info); err == nil && u.any() {
		u.action(req.Resource.Type, req.Action)
		u.relation(req.SubjectType, req.SubjectRelation)
		u.relations(req.Contextual)
		u.warn(info)
	}
	return found, err
}

func subjectsRequest(in StreamSubjectsInput) (engine.ListSubjectsRequest, []string, error) {
	var v validation
	req := engine.ListSubjectsRequest{
		Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID), Action: in.Action,
		SubjectType: in.SubjectType, SubjectRelation: in.SubjectRelation, Context: v.context(in.Context),
		Consistency: v.consistency(in.Consistency, in.ConsistencyToken, in.At),
	}
	v.Text("", "action", in.Action)
	v.Text("", "subject_type", in.SubjectType)
	if in.SubjectRelation != "" {
		v.Text("", "subject_relation", in.SubjectRelation)
	}
	var err error
	if req.IDPrefix, req.IDs, err = v.ids(in.IDPrefix, in.IDs); err != nil {
		return req, nil, err
	}
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return req, nil, err
	}
	return req, filters("listAllowedSubjects", in), v.Err()
}

func streamMeta(info *web.RequestInfo, count int, token string) StreamMeta {
	return StreamMeta{RequestID: info.RequestID, Count: count, ConsistencyToken: token}
}

// lines is a response that is written line by line.
type lines func(w *web.Lines) error

func (write lines) visit(w http.ResponseWriter) error {
	to := web.NewLines(w)
	if err := write(to); err != nil {
		return err
	}
	return to.Flush()
}

// VisitStreamAllowedResourcesResponse implements
// [StreamAllowedResourcesResponseObject].
func (write lines) VisitStreamAllowedResourcesResponse(w http.ResponseWriter) error {
	return write.visit(w)
}

// VisitStreamAllowedSubjectsResponse implements
// [StreamAllowedSubjectsResponseObject].
func (write lines) VisitStreamAllowedSubjectsResponse(w http.ResponseWriter) error {
	return write.visit(w)
}
