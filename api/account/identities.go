package account

import (
	"context"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/identity/external"
)

// ListMyIdentities lists the caller's external identities.
func (h *Handlers) ListMyIdentities(ctx context.Context, request ListMyIdentitiesRequestObject) (ListMyIdentitiesResponseObject, error) {
	info := web.InfoOf(ctx)
	userID, err := self(info)
	if err != nil {
		return nil, err
	}
	all, err := h.Service.Identities(ctx, info.Tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listMyIdentities", userID}, request.Params.Limit, request.Params.Cursor, all, func(i external.Identity) string { return i.ConnectionID })
	if err != nil {
		return nil, err
	}
	return ListMyIdentities200JSONResponse{Body: ExternalIdentityList{Data: profile.Identities(page), Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}}, nil
}

// UnlinkMyIdentity removes one of the caller's external identities.
func (h *Handlers) UnlinkMyIdentity(ctx context.Context, request UnlinkMyIdentityRequestObject) (UnlinkMyIdentityResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.person(ctx, info)
	if err == nil {
		// As for adding one: a user without a second factor must have signed in recently.
		err = h.adding(ctx, info, current, h.Service.MayAddFactor(ctx, current))
	}
	if err == nil {
		err = h.Service.Unlink(ctx, info.Tenant.ID, current.UserID, request.ConnectionID)
	}
	return UnlinkMyIdentity204Response{}, err
}
