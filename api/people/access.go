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

// ResetUserPassword sends a link to a new password.
func (h *Handlers) ResetUserPassword(ctx context.Context, request ResetUserPasswordRequestObject) (ResetUserPasswordResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := h.Access.SendReset(ctx, info.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	body := Sent{Meta: Meta{RequestID: info.RequestID}}
	body.Data.Sent = true
	return ResetUserPassword202JSONResponse{Body: body}, nil
}

// ResetUserFactors removes all second factors of a user.
func (h *Handlers) ResetUserFactors(ctx context.Context, request ResetUserFactorsRequestObject) (ResetUserFactorsResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := h.Directory.MayManage(ctx, info.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	u, err := h.Access.ResetFactors(ctx, info.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	body, err := h.read(ctx, info, u)
	return ResetUserFactors200JSONResponse{Body: body}, err
}

// ListUserSessions lists the sessions of a user.
func (h *Handlers) ListUserSessions(ctx context.Context, request ListUserSessionsRequestObject) (ListUserSessionsResponseObject, error) {
	info := web.InfoOf(ctx)
	if _, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	all, err := h.Access.Sessions(ctx, info.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listUserSessions", request.UserID}, request.Params.Limit, request.Params.Cursor, all, func(one session.Session) string { return one.ID })
	if err != nil {
		return nil, err
	}
	body := SessionList{Data: []Session{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, one := range page {
		body.Data = append(body.Data, Session{
			ID: one.ID, Current: one.ID == info.Principal.SessionID, CreatedAt: document.Timestamp(one.CreatedAt), LastActiveAt: document.Timestamp(one.LastActiveAt),
			IP: one.Device.IP, IPGeo: profile.PlaceOf(h.GeoIP.Find(one.Device.IP)), UserAgent: one.Device.UserAgent,
			Device: Device{Kind: one.Device.Kind(), Fingerprint: one.Device.Fingerprint()},
		})
	}
	return ListUserSessions200JSONResponse{Body: body}, err
}

// EndUserSessions ends all sessions of a user.
func (h *Handlers) EndUserSessions(ctx context.Context, request EndUserSessionsRequestObject) (EndUserSessionsResponseObject, error) {
	info := web.InfoOf(ctx)
	_, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID)
	if err == nil {
		err = h.Access.EndSessions(ctx, info.Tenant.ID, request.UserID, "", session.EndedByAdmin)
	}
	return EndUserSessions204Response{}, err
}

// EndUserSession ends a session of a user.
func (h *Handlers) EndUserSession(ctx context.Context, request EndUserSessionRequestObject) (EndUserSessionResponseObject, error) {
	info := web.InfoOf(ctx)
	_, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID)
	if err == nil {
		err = h.Access.EndSession(ctx, info.Tenant.ID, request.UserID, request.SessionID, session.EndedByAdmin)
	}
	return EndUserSession204Response{}, err
}

// ListUserFactors lists the second factors of a user.
func (h *Handlers) ListUserFactors(ctx context.Context, request ListUserFactorsRequestObject) (ListUserFactorsResponseObject, error) {
	info := web.InfoOf(ctx)
	if _, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	all, err := h.Access.Factors(ctx, info.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listUserFactors", request.UserID}, request.Params.Limit, request.Params.Cursor, all, func(f factor.Factor) string { return f.ID })
	if err != nil {
		return nil, err
	}
	body := FactorList{Data: []Factor{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, f := range page {
		body.Data = append(body.Data, Factor{
			ID: f.ID, Kind: string(f.Kind), Label: f.Label, CreatedAt: document.Timestamp(f.CreatedAt), LastUsedAt: document.TimeOrNull(f.LastUsedAt),
		})
	}
	return ListUserFactors200JSONResponse{Body: body}, err
}

// RemoveUserFactor removes a second factor of a user.
func (h *Handlers) RemoveUserFactor(ctx context.Context, request RemoveUserFactorRequestObject) (RemoveUserFactorResponseObject, error) {
	info := web.InfoOf(ctx)
	_, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID)
	if err == nil {
		err = h.Directory.MayManage(ctx, info.Tenant.ID, request.UserID)
	}
	if err == nil {
		err = h.Access.RemoveFactor(ctx, info.Tenant.ID, request.UserID, request.FactorID)
	}
	return RemoveUserFactor204Response{}, err
}

// ListUserIdentities lists the external identities of a user.
func (h *Handlers) ListUserIdentities(ctx context.Context, request ListUserIdentitiesRequestObject) (ListUserIdentitiesResponseObject, error) {
	info := web.InfoOf(ctx)
	if _, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	all, err := h.Access.Identities(ctx, info.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listUserIdentities", request.UserID}, request.Params.Limit, request.Params.Cursor, all, func(i external.Identity) string { return i.ConnectionID })
	if err != nil {
		return nil, err
	}
	return ListUserIdentities200JSONResponse{Body: ExternalIdentityList{Data: profile.Identities(page), Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}}, nil
}
