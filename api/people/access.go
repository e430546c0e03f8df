package people

import (
	"context"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/document"
)

// ResetUserPassword has a letter sent that leads to a new password.
func (s *Surface) ResetUserPassword(ctx context.Context, request ResetUserPasswordRequestObject) (ResetUserPasswordResponseObject, error) {
	call := web.CallOf(ctx)
	if err := s.Access.SendReset(ctx, call.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	body := Sent{Meta: Meta{RequestID: call.RequestID}}
	body.Data.Sent = true
	return ResetUserPassword202JSONResponse{Body: body}, nil
}

// ResetUserFactors takes all second factors from a user.
func (s *Surface) ResetUserFactors(ctx context.Context, request ResetUserFactorsRequestObject) (ResetUserFactorsResponseObject, error) {
	call := web.CallOf(ctx)
	if err := s.Directory.MayManage(ctx, call.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	u, err := s.Access.ResetFactors(ctx, call.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	body, err := s.read(ctx, call, u)
	return ResetUserFactors200JSONResponse{Body: body}, err
}

// ListUserSessions lists the sessions of a user.
func (s *Surface) ListUserSessions(ctx context.Context, request ListUserSessionsRequestObject) (ListUserSessionsResponseObject, error) {
	call := web.CallOf(ctx)
	if _, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	all, err := s.Access.Sessions(ctx, call.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(s.Cursors, call.Tenant.ID, []string{"listUserSessions", request.UserID}, request.Params.Limit, request.Params.Cursor, all, func(one session.Session) string { return one.ID })
	if err != nil {
		return nil, err
	}
	body := SessionList{Data: []Session{}, Meta: ListMeta{RequestID: call.RequestID, Limit: limit, NextCursor: next}}
	for _, one := range page {
		body.Data = append(body.Data, Session{
			ID: one.ID, Current: one.ID == call.Principal.SessionID, CreatedAt: document.Timestamp(one.CreatedAt), LastActiveAt: document.Timestamp(one.LastActiveAt),
			IP: one.Device.IP, IPGeo: profile.PlaceOf(s.Places.Find(one.Device.IP)), UserAgent: one.Device.UserAgent,
			Device: Device{Kind: one.Device.Kind(), Fingerprint: one.Device.Fingerprint()},
		})
	}
	return ListUserSessions200JSONResponse{Body: body}, err
}

// EndUserSessions ends all sessions of a user.
func (s *Surface) EndUserSessions(ctx context.Context, request EndUserSessionsRequestObject) (EndUserSessionsResponseObject, error) {
	call := web.CallOf(ctx)
	_, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID)
	if err == nil {
		err = s.Access.EndSessions(ctx, call.Tenant.ID, request.UserID, "", session.EndedByAdmin)
	}
	return EndUserSessions204Response{}, err
}

// EndUserSession ends a session of a user.
func (s *Surface) EndUserSession(ctx context.Context, request EndUserSessionRequestObject) (EndUserSessionResponseObject, error) {
	call := web.CallOf(ctx)
	_, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID)
	if err == nil {
		err = s.Access.EndSession(ctx, call.Tenant.ID, request.UserID, request.SessionID, session.EndedByAdmin)
	}
	return EndUserSession204Response{}, err
}

// ListUserFactors lists the second factors of a user.
func (s *Surface) ListUserFactors(ctx context.Context, request ListUserFactorsRequestObject) (ListUserFactorsResponseObject, error) {
	call := web.CallOf(ctx)
	if _, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	all, err := s.Access.Factors(ctx, call.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(s.Cursors, call.Tenant.ID, []string{"listUserFactors", request.UserID}, request.Params.Limit, request.Params.Cursor, all, func(f factor.Factor) string { return f.ID })
	if err != nil {
		return nil, err
	}
	body := FactorList{Data: []Factor{}, Meta: ListMeta{RequestID: call.RequestID, Limit: limit, NextCursor: next}}
	for _, f := range page {
		body.Data = append(body.Data, Factor{
			ID: f.ID, Kind: string(f.Kind), Label: f.Label, CreatedAt: document.Timestamp(f.CreatedAt), LastUsedAt: document.TimeOrNull(f.LastUsedAt),
		})
	}
	return ListUserFactors200JSONResponse{Body: body}, err
}

// RemoveUserFactor takes a second factor from a user.
func (s *Surface) RemoveUserFactor(ctx context.Context, request RemoveUserFactorRequestObject) (RemoveUserFactorResponseObject, error) {
	call := web.CallOf(ctx)
	_, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID)
	if err == nil {
		err = s.Directory.MayManage(ctx, call.Tenant.ID, request.UserID)
	}
	if err == nil {
		err = s.Access.RemoveFactor(ctx, call.Tenant.ID, request.UserID, request.FactorID)
	}
	return RemoveUserFactor204Response{}, err
}

// ListUserIdentities lists the external identities of a user.
func (s *Surface) ListUserIdentities(ctx context.Context, request ListUserIdentitiesRequestObject) (ListUserIdentitiesResponseObject, error) {
	call := web.CallOf(ctx)
	if _, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	all, err := s.Access.Identities(ctx, call.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(s.Cursors, call.Tenant.ID, []string{"listUserIdentities", request.UserID}, request.Params.Limit, request.Params.Cursor, all, func(i external.Identity) string { return i.ConnectionID })
	if err != nil {
		return nil, err
	}
	return ListUserIdentities200JSONResponse{Body: ExternalIdentityList{Data: profile.Identities(page), Meta: ListMeta{RequestID: call.RequestID, Limit: limit, NextCursor: next}}}, nil
}
