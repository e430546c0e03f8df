package account

import (
	"context"

	"stonetown/api/profile"
	"stonetown/api/web"
)

// ListMyIdentities lists the caller's external identities.
func (s *Surface) ListMyIdentities(ctx context.Context, _ ListMyIdentitiesRequestObject) (ListMyIdentitiesResponseObject, error) {
	call := web.CallOf(ctx)
	userID, err := self(call)
	if err != nil {
		return nil, err
	}
	all, err := s.Service.Identities(ctx, call.Tenant.ID, userID)
	return ListMyIdentities200JSONResponse{Body: ExternalIdentityList{Data: profile.Identities(all), Meta: meta(call)}}, err
}

// UnlinkMyIdentity removes one of the caller's external identities.
func (s *Surface) UnlinkMyIdentity(ctx context.Context, request UnlinkMyIdentityRequestObject) (UnlinkMyIdentityResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.steppedUp(ctx, call)
	if err == nil {
		err = s.Service.Unlink(ctx, call.Tenant.ID, current.UserID, request.ConnectionID, By(call))
	}
	return UnlinkMyIdentity204Response{}, err
}
