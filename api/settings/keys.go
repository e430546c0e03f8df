package settings

import (
	"context"
	"time"

	"stonetown/api/web"
	"stonetown/internal/eventlog"
	"stonetown/oauth"
)

// Keys is what the surface needs of [oauth.Service].
type Keys interface {
	SigningKeys(ctx context.Context, tenantID string) ([]oauth.SigningKey, error)
	RotateSigningKeys(ctx context.Context, tenantID string, emergency bool, o eventlog.Origin) ([]oauth.SigningKey, error)
}

// ListSigningKeys lists the keys that tokens are signed with.
func (s *Surface) ListSigningKeys(ctx context.Context, _ ListSigningKeysRequestObject) (ListSigningKeysResponseObject, error) {
	call := web.CallOf(ctx)
	keys, err := s.Keys.SigningKeys(ctx, call.Tenant.ID)
	return ListSigningKeys200JSONResponse{Body: keyList(call, keys)}, err
}

// RotateSigningKeys replaces them.
func (s *Surface) RotateSigningKeys(ctx context.Context, request RotateSigningKeysRequestObject) (RotateSigningKeysResponseObject, error) {
	call := web.CallOf(ctx)
	keys, err := s.Keys.RotateSigningKeys(ctx, call.Tenant.ID, request.Body.Emergency, call.Origin())
	return RotateSigningKeys200JSONResponse{Body: keyList(call, keys)}, err
}

func keyList(call *web.Call, keys []oauth.SigningKey) SigningKeyList {
	list := SigningKeyList{Data: []SigningKey{}, Meta: Meta{RequestID: call.RequestID}}
	for _, k := range keys {
		created := web.Timestamp(k.CreatedAt)
		list.Data = append(list.Data, SigningKey{
			Kid: k.KID, Alg: string(k.Alg), State: string(k.State), CreatedAt: created, PublishedAt: created,
			ActivatedAt: known(k.ActivatedAt), RetiredAt: known(k.RetiredAt), RemovedAt: known(k.RemovedAt),
		})
	}
	return list
}

// known is nil for the zero time.
func known(t time.Time) *web.Timestamp {
	if t.IsZero() {
		return nil
	}
	at := web.Timestamp(t)
	return &at
}
