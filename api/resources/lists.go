package resources

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"

	"stonetown/api/web"
	"stonetown/engine"
)

// listPosition is the end of a page of a list, and the revision that it reflects.
type listPosition struct {
	Token string `json:"t"`
	After string `json:"a"`
}

// resume decodes a cursor to the position after which the list continues. Without a cursor,
// it is the start.
func (h *Handlers) resume(info *web.RequestInfo, list []string, cursor string, c *engine.Consistency) (after string, err error) {
	if cursor == "" {
		return "", nil
	}
	var p listPosition
	if err := h.Cursors.Resume(info.Tenant.ID, list, cursor, &p); err != nil {
		return "", err
	}
	*c = engine.Consistency{Mode: engine.Exactly, Token: p.Token}
	return p.After, nil
}

// pageMeta returns the metadata of a page; last is its last item, empty if the list ends
// with it.
func (h *Handlers) pageMeta(info *web.RequestInfo, list []string, limit int, token, last string) (PageMeta, error) {
	meta := PageMeta{RequestID: info.RequestID, Limit: limit, ConsistencyToken: token}
	if last == "" {
		return meta, nil
	}
	var err error
	meta.NextCursor, err = h.next(info, list, listPosition{token, last})
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

// ListAllowedResources lists a page of the resources on which a subject may perform an
// action.
func (h *Handlers) ListAllowedResources(ctx context.Context, request ListAllowedResourcesRequestObject) (ListAllowedResourcesResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	limit, err := web.Limit(in.Limit)
	if err != nil {
		return nil, err
	}
	req, list, err := resourcesRequest(StreamResourcesInput{
		Action: in.Action, Consistency: in.Consistency, ConsistencyToken: in.ConsistencyToken,
		Context: in.Context, ContextualRelations: in.ContextualRelations, Subject: in.Subject, Type: in.Type,
	})
	if err != nil {
		return nil, err
	}
	if req.After, err = h.resume(info, list, in.Cursor, &req.Consistency); err != nil {
		return nil, err
	}
	req.Limit = limit + 1
	found, err := h.Engine.ListResources(ctx, info.Tenant.ID, req)
	if err != nil {
		return nil, err
	}
	ids, last := found.IDs, ""
	if len(ids) > limit {
		ids, last = ids[:limit], ids[limit-1]
	}
	var body AllowedResourceList
	for _, id := range ids {
		body.Data = append(body.Data, ResourceRef{Type: req.Type, ExternalID: id})
	}
	if body.Meta, err = h.pageMeta(info, list, limit, found.Token, last); err != nil {
		return nil, err
	}
	return ListAllowedResources200JSONResponse{Body: body}, nil
}

// StreamAllowedResources lists all resources on which a subject may perform an action.
func (h *Handlers) StreamAllowedResources(ctx context.Context, request StreamAllowedResourcesRequestObject) (StreamAllowedResourcesResponseObject, error) {
	info := web.InfoOf(ctx)
	req, _, err := resourcesRequest(*request.Body)
	if err != nil {
		return nil, err
	}
	found, err := h.Engine.ListResources(ctx, info.Tenant.ID, req)
	if err != nil {
		return nil, err
	}
	return lines(func(w *web.Lines) error {
		for _, id := range found.IDs {
			if err := w.Write(AllowedResourceLine{Type: req.Type, ExternalID: id}); err != nil {
				return err
			}
		}
		return w.Write(AllowedResourceLine{Meta: streamMeta(info, len(found.IDs), found.Token)})
	}), nil
}

// resourcesRequest converts a request for a list, and returns the filters of its cursors.
func resourcesRequest(in StreamResourcesInput) (engine.ListResourcesRequest, []string, error) {
	var v validation
	req := engine.ListResourcesRequest{
		Subject: v.subject("", in.Subject), Type: in.Type, Action: in.Action, Context: v.context(in.Context),
		Consistency: v.consistency(in.Consistency, in.ConsistencyToken),
	}
	v.Text("", "type", in.Type)
	v.Text("", "action", in.Action)
	var err error
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return req, nil, err
	}
	return req, filters("listAllowedResources", in), v.Err()
}

// ListAllowedSubjects lists a page of the subjects that may perform an action on a
// resource.
func (h *Handlers) ListAllowedSubjects(ctx context.Context, request ListAllowedSubjectsRequestObject) (ListAllowedSubjectsResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	limit, err := web.Limit(in.Limit)
	if err != nil {
		return nil, err
	}
	req, list, err := subjectsRequest(StreamSubjectsInput{
		Action: in.Action, Consistency: in.Consistency, ConsistencyToken: in.ConsistencyToken, Context: in.Context,
		ContextualRelations: in.ContextualRelations, Resource: in.Resource,
		SubjectRelation: in.SubjectRelation, SubjectType: in.SubjectType,
	})
	if err != nil {
		return nil, err
	}
	if req.After, err = h.resume(info, list, in.Cursor, &req.Consistency); err != nil {
		return nil, err
	}
	req.Limit = limit + 1
	found, err := h.Engine.ListSubjects(ctx, info.Tenant.ID, req)
	if err != nil {
		return nil, err
	}
	entries, last := found.Entries, ""
	if len(entries) > limit {
		entries, last = entries[:limit], entries[limit-1].Subject.ID
	}
	var body AllowedSubjectList
	for _, e := range entries {
		named := engine.SubjectDocumentOf(e.Subject)
		body.Data = append(body.Data, AllowedSubject{Type: named.Type, ID: named.ID, Relation: named.Relation, Excluded: e.Excluded})
	}
	if body.Meta, err = h.pageMeta(info, list, limit, found.Token, last); err != nil {
		return nil, err
	}
	return ListAllowedSubjects200JSONResponse{Body: body}, nil
}

// StreamAllowedSubjects lists all subjects that may perform an action on a resource.
func (h *Handlers) StreamAllowedSubjects(ctx context.Context, request StreamAllowedSubjectsRequestObject) (StreamAllowedSubjectsResponseObject, error) {
	info := web.InfoOf(ctx)
	req, _, err := subjectsRequest(*request.Body)
	if err != nil {
		return nil, err
	}
	found, err := h.Engine.ListSubjects(ctx, info.Tenant.ID, req)
	if err != nil {
		return nil, err
	}
	return lines(func(w *web.Lines) error {
		for _, e := range found.Entries {
			named := engine.SubjectDocumentOf(e.Subject)
			line := AllowedSubjectLine{Type: named.Type, ID: named.ID, Relation: named.Relation, Excluded: e.Excluded}
			if err := w.Write(line); err != nil {
				return err
			}
		}
		return w.Write(AllowedSubjectLine{Meta: streamMeta(info, len(found.Entries), found.Token)})
	}), nil
}

func subjectsRequest(in StreamSubjectsInput) (engine.ListSubjectsRequest, []string, error) {
	var v validation
	req := engine.ListSubjectsRequest{
		Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID), Action: in.Action,
		SubjectType: in.SubjectType, SubjectRelation: in.SubjectRelation, Context: v.context(in.Context),
		Consistency: v.consistency(in.Consistency, in.ConsistencyToken),
	}
	v.Text("", "action", in.Action)
	v.Text("", "subject_type", in.SubjectType)
	if in.SubjectRelation != "" {
		v.Text("", "subject_relation", in.SubjectRelation)
	}
	var err error
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
