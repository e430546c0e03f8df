package account

import (
	"context"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/identity/external"
)

// ListMyIdentities lists the caller's external identities.
func (s *Surface) ListMyIdentities(ctx context.Context, request ListMyIdentitiesRequestObject) (ListMyIdentitiesResponseObject, error) {
	call := web.CallOf(ctx)
	userID, err := self(call)
	if err != nil {
		return nil, err
	}
	all, err := s.Service.Identities(ctx, call.Tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(s.Cursors, call.Tenant.ID, []string{"listMyIdentities", userID}, request.Params.Limit, request.Params.Cursor, all, func(i external.Identity) string { return i.ConnectionID })
	if err != nil {
		return nil, err
	}
	return ListMyIdentities200JSONResponse{Body: ExternalIdentityList{Data: profile.Identities(page), Meta: ListMeta{RequestID: call.RequestID, Limit: limit, NextCursor: next}}}, nil
}

// UnlinkMyIdentity removes one of the caller's external identities.
func (s *Surface) UnlinkMyIdentity(ctx context.Context, request UnlinkMyIdentityRequestObject) (UnlinkMyIdentityResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.steppedUp(ctx, call)
	if err == nil {
		err = s.Service.Unlink(ctx, call.Tenant.ID, current.UserID, request.ConnectionID)
	}
	return UnlinkMyIdentity204Response{}, err
}
