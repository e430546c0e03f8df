package resources

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/schema"
)

// PutResourceType defines a type or replaces its definition.
func (h *Handlers) PutResourceType(ctx context.Context, request PutResourceTypeRequestObject) (PutResourceTypeResponseObject, error) {
	info := web.InfoOf(ctx)
	stored, created, token, err := h.Engine.PutType(ctx, info.Tenant.ID, TypeOf(*request.Body), origin(info))
	if err != nil {
		return nil, err
	}
	body := ResourceTypeWritten{Data: engine.TypeDocumentOf(stored), Meta: tokenMeta(info, token)}
	if !created {
		return PutResourceType200JSONResponse{Body: body}, nil
	}
	return PutResourceType201JSONResponse{Body: body, Headers: PutResourceType201ResponseHeaders{
		Location: "/api/v1/resource-types/" + url.PathEscape(stored.Name),
	}}, nil
}

// GetResourceType reads a type.
func (h *Handlers) GetResourceType(ctx context.Context, request GetResourceTypeRequestObject) (GetResourceTypeResponseObject, error) {
	info := web.InfoOf(ctx)
	t, err := h.Engine.Type(ctx, info.Tenant.ID, request.Name)
	if err != nil {
		return nil, err
	}
	return GetResourceType200JSONResponse{Body: ResourceTypeRead{Data: engine.TypeDocumentOf(t), Meta: Meta{RequestID: info.RequestID}}}, nil
}

// DeleteResourceType deletes a type without tuples.
func (h *Handlers) DeleteResourceType(ctx context.Context, request DeleteResourceTypeRequestObject) (DeleteResourceTypeResponseObject, error) {
	info := web.InfoOf(ctx)
	token, err := h.Engine.DeleteType(ctx, info.Tenant.ID, request.Name, origin(info))
	if err != nil {
		return nil, err
	}
	return DeleteResourceType204Response{Headers: DeletedResponseHeaders{XConsistencyToken: token}}, nil
}

// typePosition is the end of a page of types.
type typePosition struct {
	CreatedAt time.Time `json:"t"`
	Name      string    `json:"n"`
}

// ListResourceTypes lists types, newest first. A tenant has at most a thousand, which are
// in memory, so a page is a part of the whole list.
func (h *Handlers) ListResourceTypes(ctx context.Context, request ListResourceTypesRequestObject) (ListResourceTypesResponseObject, error) {
	info := web.InfoOf(ctx)
	limit, err := web.Limit(request.Params.Limit)
	if err != nil {
		return nil, err
	}
	list := []string{"listResourceTypes"}
	var after *typePosition
	if request.Params.Cursor != "" {
		after = new(typePosition)
		if err := h.Cursors.Resume(info.Tenant.ID, list, request.Params.Cursor, after); err != nil {
			return nil, err
		}
	}
	types, err := h.Engine.Types(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	if after != nil {
		types = slices.DeleteFunc(types, func(t schema.Type) bool {
			return cmp.Or(after.CreatedAt.Compare(t.CreatedAt), cmp.Compare(after.Name, t.Name)) <= 0
		})
	}
	body := ResourceTypeList{Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	if len(types) > limit {
		types = types[:limit]
		last := types[limit-1]
		if body.Meta.NextCursor, err = h.next(info, list, typePosition{last.CreatedAt, last.Name}); err != nil {
			return nil, err
		}
	}
	for _, t := range types {
		body.Data = append(body.Data, engine.TypeDocumentOf(t))
	}
	return ListResourceTypes200JSONResponse{Body: body}, nil
}

// next returns the cursor of a page that is not the last.
func (h *Handlers) next(info *web.RequestInfo, list []string, position any) (*string, error) {
	cursor, err := h.Cursors.Next(info.Tenant.ID, list, position)
	return &cursor, err
}

func tokenMeta(info *web.RequestInfo, token string) TokenMeta {
	return TokenMeta{RequestID: info.RequestID, ConsistencyToken: token}
}

// TypeOf is the type that a body defines.
func TypeOf(in ResourceTypeInput) schema.Type {
	d := engine.TypeDocument{Name: in.Name, Description: in.Description, Deprecated: in.Deprecated, Actions: in.Actions, Conditions: in.Conditions}
	for _, r := range in.Relations {
		d.Relations = append(d.Relations, engine.RelationDefinitionDocument(r))
	}
	return engine.TypeOf(d)
}

// Definition is the body that defines a type.
func Definition(t schema.Type) ResourceTypeInput {
	d := ResourceTypeInput{Name: t.Name, Description: t.Description, Deprecated: t.Deprecated, Actions: t.Actions, Conditions: engine.ConditionDefinitionsOf(t)}
	for _, r := range engine.RelationDefinitionsOf(t) {
		d.Relations = append(d.Relations, RelationDefinitionInput(r))
	}
	return d
}
