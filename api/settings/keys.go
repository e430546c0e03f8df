package settings

import (
	"context"

	"stonetown/api/web"
	"stonetown/internal/document"
	"stonetown/oauth/keys"
)

// Keys is the part of [keys.Service] that the operations use.
type Keys interface {
	List(ctx context.Context, tenantID string) ([]keys.Key, error)
	Rotate(ctx context.Context, tenantID string, emergency bool) ([]keys.Key, error)
}

// ListSigningKeys lists the keys that tokens are signed with.
func (h *Handlers) ListSigningKeys(ctx context.Context, request ListSigningKeysRequestObject) (ListSigningKeysResponseObject, error) {
	info := web.InfoOf(ctx)
	found, err := h.Keys.List(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	list, err := h.keyList(info, found, request.Params.Limit, request.Params.Cursor)
	return ListSigningKeys200JSONResponse{Body: list}, err
}

// RotateSigningKeys replaces them.
func (h *Handlers) RotateSigningKeys(ctx context.Context, request RotateSigningKeysRequestObject) (RotateSigningKeysResponseObject, error) {
	info := web.InfoOf(ctx)
	rotated, err := h.Keys.Rotate(ctx, info.Tenant.ID, request.Body.Emergency)
	if err != nil {
		return nil, err
	}
	list, err := h.keyList(info, rotated, nil, "")
	return RotateSigningKeys200JSONResponse{Body: list}, err
}

// keyList is a page of the keys.
func (h *Handlers) keyList(info *web.RequestInfo, all []keys.Key, size *int, cursor string) (SigningKeyList, error) {
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listSigningKeys"}, size, cursor, all, func(k keys.Key) string { return k.KID })
	list := SigningKeyList{Data: []SigningKey{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, k := range page {
		created := document.Timestamp(k.CreatedAt)
		list.Data = append(list.Data, SigningKey{
			Kid: k.KID, Alg: string(k.Alg), State: string(k.State), CreatedAt: created, PublishedAt: created,
			ActivatedAt: document.TimeOrNull(k.ActivatedAt), RetiredAt: document.TimeOrNull(k.RetiredAt), RemovedAt: document.TimeOrNull(k.RemovedAt),
		})
	}
	return list, err
}
