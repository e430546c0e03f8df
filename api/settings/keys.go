package settings

import (
	"context"

	"stonetown/api/web"
	"stonetown/internal/document"
	"stonetown/oauth"
)

// Keys is what the surface needs of [oauth.Service].
type Keys interface {
	SigningKeys(ctx context.Context, tenantID string) ([]oauth.SigningKey, error)
	RotateSigningKeys(ctx context.Context, tenantID string, emergency bool) ([]oauth.SigningKey, error)
}

// ListSigningKeys lists the keys that tokens are signed with.
func (s *Surface) ListSigningKeys(ctx context.Context, request ListSigningKeysRequestObject) (ListSigningKeysResponseObject, error) {
	call := web.CallOf(ctx)
	keys, err := s.Keys.SigningKeys(ctx, call.Tenant.ID)
	if err != nil {
		return nil, err
	}
	list, err := s.keyList(call, keys, request.Params.Limit, request.Params.Cursor)
	return ListSigningKeys200JSONResponse{Body: list}, err
}

// RotateSigningKeys replaces them.
func (s *Surface) RotateSigningKeys(ctx context.Context, request RotateSigningKeysRequestObject) (RotateSigningKeysResponseObject, error) {
	call := web.CallOf(ctx)
	keys, err := s.Keys.RotateSigningKeys(ctx, call.Tenant.ID, request.Body.Emergency)
	if err != nil {
		return nil, err
	}
	list, err := s.keyList(call, keys, nil, "")
	return RotateSigningKeys200JSONResponse{Body: list}, err
}

// keyList is a page of the keys.
func (s *Surface) keyList(call *web.Call, keys []oauth.SigningKey, size *int, cursor string) (SigningKeyList, error) {
	page, limit, next, err := web.Page(s.Cursors, call.Tenant.ID, []string{"listSigningKeys"}, size, cursor, keys, func(k oauth.SigningKey) string { return k.KID })
	list := SigningKeyList{Data: []SigningKey{}, Meta: ListMeta{RequestID: call.RequestID, Limit: limit, NextCursor: next}}
	for _, k := range page {
		created := document.Timestamp(k.CreatedAt)
		list.Data = append(list.Data, SigningKey{
			Kid: k.KID, Alg: string(k.Alg), State: string(k.State), CreatedAt: created, PublishedAt: created,
			ActivatedAt: document.TimeOrNull(k.ActivatedAt), RetiredAt: document.TimeOrNull(k.RetiredAt), RemovedAt: document.TimeOrNull(k.RemovedAt),
		})
	}
	return list, err
}
