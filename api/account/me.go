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
func (s *Surface) GetProfile(ctx context.Context, _ GetProfileRequestObject) (GetProfileResponseObject, error) {
	call := web.CallOf(ctx)
	userID, err := self(call)
	if err != nil {
		return nil, err
	}
	u, err := s.Users.User(ctx, call.Tenant.ID, userID)
	return GetProfile200JSONResponse{Body: ProfileRead{Data: wireProfile(u), Meta: meta(call)}}, err
}

// PatchProfile changes the caller's profile.
func (s *Surface) PatchProfile(ctx context.Context, request PatchProfileRequestObject) (PatchProfileResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	userID, err := self(call)
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
	u, err := s.Users.Update(ctx, call.Tenant.ID, userID, func(u *identity.User) { apply(&u.Profile) })
	return PatchProfile200JSONResponse{Body: ProfileRead{Data: wireProfile(u), Meta: meta(call)}}, err
}

// ChangePassword changes the caller's password.
func (s *Surface) ChangePassword(ctx context.Context, request ChangePasswordRequestObject) (ChangePasswordResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	if err := need("current", form.Current, "next", form.Next); err != nil {
		return nil, err
	}
	current, err := s.person(ctx, call)
	if err == nil {
		err = s.Service.ChangePassword(ctx, tenant(call), current, form.Current, form.Next)
	}
	return ChangePassword204Response{}, err
}

// ChangeEmail begins to change the caller's address.
func (s *Surface) ChangeEmail(ctx context.Context, request ChangeEmailRequestObject) (ChangeEmailResponseObject, error) {
	call := web.CallOf(ctx)
	if err := need("new_email", request.Body.NewEmail); err != nil {
		return nil, err
	}
	current, err := s.steppedUp(ctx, call)
	if err != nil {
		return nil, err
	}
	c, err := s.Service.ChangeEmail(ctx, tenant(call), current, request.Body.NewEmail)
	return ChangeEmail200JSONResponse{Body: emailChange(call, c)}, err
}

// GetEmailChange says whether a change of address is done.
func (s *Surface) GetEmailChange(ctx context.Context, request GetEmailChangeRequestObject) (GetEmailChangeResponseObject, error) {
	call := web.CallOf(ctx)
	userID, err := self(call)
	if err != nil {
		return nil, err
	}
	c, err := s.Service.EmailChange(ctx, call.Tenant.ID, userID, request.PendingChangeID)
	return GetEmailChange200JSONResponse{Body: emailChange(call, c)}, err
}

func emailChange(call *web.Call, c authn.EmailChange) EmailChangeRead {
	body := EmailChangeRead{Meta: meta(call)}
	body.Data.PendingChangeID, body.Data.Verified = c.ID, c.Verified
	return body
}

// CancelEmailChange gives a change of address up.
func (s *Surface) CancelEmailChange(ctx context.Context, request CancelEmailChangeRequestObject) (CancelEmailChangeResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.person(ctx, call)
	if err == nil {
		err = s.Service.CancelEmailChange(ctx, call.Tenant.ID, current.UserID, request.PendingChangeID)
	}
	return CancelEmailChange204Response{}, err
}

// ResendVerification has the letter sent again that verifies the caller's address.
func (s *Surface) ResendVerification(ctx context.Context, _ ResendVerificationRequestObject) (ResendVerificationResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.person(ctx, call)
	if err != nil {
		return nil, err
	}
	after, err := s.Service.ResendVerification(ctx, tenant(call), current.UserID)
	body := Resent{Meta: meta(call)}
	body.Data.Sent, body.Data.ResendAfter = true, int(after.Seconds())
	return ResendVerification202JSONResponse{Body: body}, err
}

// ListMySessions lists the caller's sessions.
func (s *Surface) ListMySessions(ctx context.Context, request ListMySessionsRequestObject) (ListMySessionsResponseObject, error) {
	call := web.CallOf(ctx)
	userID, err := self(call)
	if err != nil {
		return nil, err
	}
	all, err := s.Service.Sessions(ctx, call.Tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(s.Cursors, call.Tenant.ID, []string{"listMySessions", userID}, request.Params.Limit, request.Params.Cursor, all, func(one session.Session) string { return one.ID })
	if err != nil {
		return nil, err
	}
	body := SessionList{Data: []Session{}, Meta: ListMeta{RequestID: call.RequestID, Limit: limit, NextCursor: next}}
	for _, one := range page {
		body.Data = append(body.Data, s.wireSession(one, call.Principal.SessionID))
	}
	return ListMySessions200JSONResponse{Body: body}, err
}

// EndMySessions ends the caller's sessions but the current one.
func (s *Surface) EndMySessions(ctx context.Context, request EndMySessionsRequestObject) (EndMySessionsResponseObject, error) {
	call := web.CallOf(ctx)
	if request.Params.Except != "current" {
		return nil, web.ValidationFailed(web.FieldError{Field: "except", Code: "unknown_value", Message: "except must be current"})
	}
	current, err := s.person(ctx, call)
	if err == nil {
		err = s.Service.EndSessions(ctx, call.Tenant.ID, current.UserID, current.ID, session.EndedByUser)
	}
	return EndMySessions204Response{}, err
}

// EndMySession ends one of the caller's sessions.
func (s *Surface) EndMySession(ctx context.Context, request EndMySessionRequestObject) (EndMySessionResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.person(ctx, call)
	if err == nil && current.ID == request.SessionID {
		err = authn.ErrCurrent
	}
	if err == nil {
		err = s.Service.EndSession(ctx, call.Tenant.ID, current.UserID, request.SessionID, session.EndedByUser)
	}
	return EndMySession204Response{}, err
}
