package account

import (
	"context"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/identity/session"
)

// GetProfile reads the caller's profile.
func (h *Handlers) GetProfile(ctx context.Context, _ GetProfileRequestObject) (GetProfileResponseObject, error) {
	info := web.InfoOf(ctx)
	userID, err := self(info)
	if err != nil {
		return nil, err
	}
	u, err := h.Users.User(ctx, info.Tenant.ID, userID)
	return GetProfile200JSONResponse{Body: ProfileRead{Data: wireProfile(u), Meta: meta(info)}}, err
}

// PatchProfile changes the caller's profile.
func (h *Handlers) PatchProfile(ctx context.Context, request PatchProfileRequestObject) (PatchProfileResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	userID, err := self(info)
	if err != nil {
		return nil, err
	}
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: form.ID}, web.Member{Name: "email", Value: form.Email},
		web.Member{Name: "email_verified", Value: form.EmailVerified}, web.Member{Name: "created_at", Value: form.CreatedAt},
	); err != nil {
		return nil, err
	}
	var v profile.Validation
	apply := func(p *identity.Profile) {
		v.Profile(p, form.Name, form.GivenName, form.FamilyName, form.Picture, form.Locale, form.Attributes)
	}
	apply(new(identity.Profile))
	if err := v.Err(); err != nil {
		return nil, err
	}
	u, err := h.Users.Update(ctx, info.Tenant.ID, userID, func(u *identity.User) { apply(&u.Profile) })
	return PatchProfile200JSONResponse{Body: ProfileRead{Data: wireProfile(u), Meta: meta(info)}}, err
}

// ChangePassword changes the caller's password.
func (h *Handlers) ChangePassword(ctx context.Context, request ChangePasswordRequestObject) (ChangePasswordResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := need("current", form.Current, "next", form.Next); err != nil {
		return nil, err
	}
	current, err := h.person(ctx, info)
	if err == nil {
		err = h.Service.ChangePassword(ctx, tenant(info), current, form.Current, form.Next)
	}
	return ChangePassword204Response{}, err
}

// ChangeEmail begins a change of the caller's address.
func (h *Handlers) ChangeEmail(ctx context.Context, request ChangeEmailRequestObject) (ChangeEmailResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := need("new_email", request.Body.NewEmail); err != nil {
		return nil, err
	}
	current, err := h.steppedUp(ctx, info)
	if err != nil {
		return nil, err
	}
	c, err := h.Service.ChangeEmail(ctx, tenant(info), current, request.Body.NewEmail)
	return ChangeEmail200JSONResponse{Body: emailChange(info, c)}, err
}

// GetEmailChange returns a change of address.
func (h *Handlers) GetEmailChange(ctx context.Context, request GetEmailChangeRequestObject) (GetEmailChangeResponseObject, error) {
	info := web.InfoOf(ctx)
	userID, err := self(info)
	if err != nil {
		return nil, err
	}
	c, err := h.Service.EmailChange(ctx, info.Tenant.ID, userID, request.PendingChangeID)
	return GetEmailChange200JSONResponse{Body: emailChange(info, c)}, err
}

func emailChange(info *web.RequestInfo, c authn.EmailChange) EmailChangeRead {
	body := EmailChangeRead{Meta: meta(info)}
	body.Data.PendingChangeID, body.Data.Verified = c.ID, c.Verified
	return body
}

// CancelEmailChange cancels a change of address.
func (h *Handlers) CancelEmailChange(ctx context.Context, request CancelEmailChangeRequestObject) (CancelEmailChangeResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.person(ctx, info)
	if err == nil {
		err = h.Service.CancelEmailChange(ctx, info.Tenant.ID, current.UserID, request.PendingChangeID)
	}
	return CancelEmailChange204Response{}, err
}

// ResendVerification sends the link that verifies the caller's address again.
func (h *Handlers) ResendVerification(ctx context.Context, _ ResendVerificationRequestObject) (ResendVerificationResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.person(ctx, info)
	if err != nil {
		return nil, err
	}
	after, err := h.Service.ResendVerification(ctx, tenant(info), current.UserID)
	body := Resent{Meta: meta(info)}
	body.Data.Sent, body.Data.ResendAfter = true, int(after.Seconds())
	return ResendVerification202JSONResponse{Body: body}, err
}

// ListMySessions lists the caller's sessions.
func (h *Handlers) ListMySessions(ctx context.Context, request ListMySessionsRequestObject) (ListMySessionsResponseObject, error) {
	info := web.InfoOf(ctx)
	userID, err := self(info)
	if err != nil {
		return nil, err
	}
	all, err := h.Service.Sessions(ctx, info.Tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listMySessions", userID}, request.Params.Limit, request.Params.Cursor, all, func(one session.Session) string { return one.ID })
	if err != nil {
		return nil, err
	}
	body := SessionList{Data: []Session{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, one := range page {
		body.Data = append(body.Data, h.wireSession(one, info.Principal.SessionID))
	}
	return ListMySessions200JSONResponse{Body: body}, err
}

// EndMySessions ends the caller's sessions except the current one.
func (h *Handlers) EndMySessions(ctx context.Context, request EndMySessionsRequestObject) (EndMySessionsResponseObject, error) {
	info := web.InfoOf(ctx)
	if request.Params.Except != "current" {
		return nil, web.ValidationFailed(web.FieldError{Field: "except", Code: "unknown_value", Message: "except must be current"})
	}
	current, err := h.person(ctx, info)
	if err == nil {
		err = h.Service.EndSessions(ctx, info.Tenant.ID, current.UserID, current.ID, session.EndedByUser)
	}
	return EndMySessions204Response{}, err
}

// EndMySession ends one of the caller's sessions.
func (h *Handlers) EndMySession(ctx context.Context, request EndMySessionRequestObject) (EndMySessionResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.person(ctx, info)
	if err == nil && current.ID == request.SessionID {
		err = authn.ErrCurrent
	}
	if err == nil {
		err = h.Service.EndSession(ctx, info.Tenant.ID, current.UserID, request.SessionID, session.EndedByUser)
	}
	return EndMySession204Response{}, err
}
