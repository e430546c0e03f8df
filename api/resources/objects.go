package resources

import (
	"cmp"
	"context"
	"net/url"

	"stonetown/api/web"
	"stonetown/engine/resources"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// PutResource registers a resource or replaces its attributes.
func (h *Handlers) PutResource(ctx context.Context, request PutResourceRequestObject) (PutResourceResponseObject, error) {
	info := web.InfoOf(ctx)
	var v validation
	o := v.resource("", request.Body.Type, request.Body.ExternalID)
	attributes := v.attributes(request.Body.Attributes)
	if err := cmp.Or(v.Err(), managed(o, "")); err != nil {
		return nil, err
	}
	stored, created, token, err := h.Store.Put(ctx, info.Tenant.ID,
		resources.Resource{Type: o.Type, ExternalID: o.ID, Attributes: attributes}, origin(info))
	if err != nil {
		return nil, err
	}
	if u := h.uses(info); u.any() {
		u.relation(o.Type, "")
		u.warn(info)
	}
	body := ResourceWritten{Data: stored.Document(), Meta: tokenMeta(info, token)}
	if !created {
		return PutResource200JSONResponse{Body: body}, nil
	}
	return PutResource201JSONResponse{Body: body, Headers: PutResource201ResponseHeaders{
		Location: "/api/v1/resources/" + url.PathEscape(o.Type) + "/" + url.PathEscape(o.ID),
	}}, nil
}

// GetResource reads a resource.
func (h *Handlers) GetResource(ctx context.Context, request GetResourceRequestObject) (GetResourceResponseObject, error) {
	info := web.InfoOf(ctx)
	var v validation
	o := v.resource("", request.Type, request.ExternalID)
	if err := v.Err(); err != nil {
		return nil, err
	}
	r, err := h.Store.Get(ctx, info.Tenant.ID, o.Type, o.ID)
	if err != nil {
		return nil, err
	}
	return GetResource200JSONResponse{Body: ResourceRead{Data: r.Document(), Meta: Meta{RequestID: info.RequestID}}}, nil
}

// PatchResource changes the attributes of a resource: an object replaces them, null clears
// them, and absent attributes stay.
func (h *Handlers) PatchResource(ctx context.Context, request PatchResourceRequestObject) (PatchResourceResponseObject, error) {
	info := web.InfoOf(ctx)
	var v validation
	o := v.resource("", request.Type, request.ExternalID)
	attributes := v.attributes(request.Body.Attributes)
	if err := cmp.Or(v.Err(), managed(o, "")); err != nil {
		return nil, err
	}
	patch := request.Body
	if err := web.RefuseImmutable(
		web.Member{Name: "type", Value: patch.Type}, web.Member{Name: "external_id", Value: patch.ExternalID},
		web.Member{Name: "created_at", Value: patch.CreatedAt}, web.Member{Name: "updated_at", Value: patch.UpdatedAt},
	); err != nil {
		return nil, err
	}
	var (
		r     resources.Resource
		token string
		err   error
	)
	if request.Body.Attributes == nil {
		r, err = h.Store.Get(ctx, info.Tenant.ID, o.Type, o.ID)
	} else {
		r, token, err = h.Store.Patch(ctx, info.Tenant.ID, o.Type, o.ID, attributes, origin(info))
	}
	if err != nil {
		return nil, err
	}
	return PatchResource200JSONResponse{Body: ResourcePatched{
		Data: r.Document(), Meta: ChangeMeta{RequestID: info.RequestID, ConsistencyToken: token},
	}}, nil
}

// DeleteResource deletes a resource and every relation that names it.
func (h *Handlers) DeleteResource(ctx context.Context, request DeleteResourceRequestObject) (DeleteResourceResponseObject, error) {
	info := web.InfoOf(ctx)
	var v validation
	o := v.resource("", request.Type, request.ExternalID)
	if err := cmp.Or(v.Err(), managed(o, ""), exchanged(o)); err != nil {
		return nil, err
	}
	token, err := h.Store.Delete(ctx, info.Tenant.ID, o.Type, o.ID, origin(info))
	if err != nil {
		return nil, err
	}
	return DeleteResource204Response{Headers: DeletedResponseHeaders{XConsistencyToken: token}}, nil
}

// exchanged refuses to delete an audience, whose relations the operations on applications
// maintain.
func exchanged(o tuplestore.Object) error {
	if o.Type != schema.AudienceType {
		return nil
	}
	return managed(o, schema.AudienceExchanger)
}

// resourcePosition is the end of a page of resources.
type resourcePosition struct {
	Revision tuplestore.Revision `json:"r"`
	Type     string              `json:"t"` // as it is stored
	ID       string              `json:"i"`
}

// ListResources lists the resources of a type, newest first.
func (h *Handlers) ListResources(ctx context.Context, request ListResourcesRequestObject) (ListResourcesResponseObject, error) {
	info := web.InfoOf(ctx)
	limit, err := web.Limit(request.Params.Limit)
	if err != nil {
		return nil, err
	}
	typ := request.Params.Type
	var v validation
	v.Text("", "type", typ)
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := []string{"listResources", typ}
	var after *tuplestore.Record
	if request.Params.Cursor != "" {
		var p resourcePosition
		if err := h.Cursors.Resume(info.Tenant.ID, list, request.Params.Cursor, &p); err != nil {
			return nil, err
		}
		after = &tuplestore.Record{Fact: tuplestore.Fact{Tuple: tuplestore.Presence(tuplestore.Object{Type: cmp.Or(p.Type, typ), ID: p.ID})}, CreatedRevision: p.Revision}
	}
	found, last, err := h.Store.List(ctx, info.Tenant.ID, typ, after, limit)
	if err != nil {
		return nil, err
	}
	body := ResourceList{Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, r := range found {
		body.Data = append(body.Data, r.Document())
	}
	if len(found) == limit { // a full page may be the last one
		more, _, err := h.Store.List(ctx, info.Tenant.ID, typ, last, 1)
		if err != nil {
			return nil, err
		}
		if len(more) > 0 {
			if body.Meta.NextCursor, err = h.next(info, list, resourcePosition{last.CreatedRevision, last.Object.Type, last.Object.ID}); err != nil {
				return nil, err
			}
		}
	}
	return ListResources200JSONResponse{Body: body}, nil
}
