package account

import (
	"context"

	"stonetown/api/web"
	"stonetown/internal/document"
)

// ForgotPassword sends a link to a new password.
func (h *Handlers) ForgotPassword(ctx context.Context, request ForgotPasswordRequestObject) (ForgotPasswordResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	next, err := mailForm(form)
	if err == nil {
		err = h.Service.Forgot(ctx, tenant(info), form.Email, next)
	}
	return ForgotPassword202JSONResponse{Body: sent(info)}, err
}

// mailForm validates a request for a mail and returns the destination in its link.
func mailForm(form *MailInput) (next string, err error) {
	if err := need("email", form.Email); err != nil {
		return "", err
	}
	var v web.Validation
	next = localPath(&v, form.RedirectTo)
	return next, v.Err()
}

func sent(info *web.RequestInfo) Sent {
	body := Sent{Meta: meta(info)}
	body.Data.Sent = true
	return body
}

// ResetPassword sets a new password.
func (h *Handlers) ResetPassword(ctx context.Context, request ResetPasswordRequestObject) (ResetPasswordResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := need("token", form.Token, "password", form.Password); err != nil {
		return nil, err
	}
	r, err := h.Service.ResetPassword(ctx, tenant(info), form.Token, form.Password, deviceOf(info))
	if err != nil {
		return nil, err
	}
	body, err := h.result(ctx, info, r)
	return ResetPassword200JSONResponse{Body: body}, err
}

// ReadLink describes a mailed link.
func (h *Handlers) ReadLink(ctx context.Context, request ReadLinkRequestObject) (ReadLinkResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := need("token", request.Body.Token); err != nil {
		return nil, err
	}
	link, err := h.Service.ReadLink(ctx, tenant(info), request.Body.Token)
	body := LinkRead{Meta: meta(info)}
	body.Data.Purpose, body.Data.Email, body.Data.ExpiresAt = string(link.Purpose), link.Email, document.Timestamp(link.ExpiresAt)
	return ReadLink200JSONResponse{Body: body}, err
}

// VerifyEmail verifies an address.
func (h *Handlers) VerifyEmail(ctx context.Context, request VerifyEmailRequestObject) (VerifyEmailResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := need("token", request.Body.Token); err != nil {
		return nil, err
	}
	email, err := h.Service.VerifyEmail(ctx, tenant(info), request.Body.Token)
	return VerifyEmail200JSONResponse{Body: emailVerified(info, email)}, err
}

func emailVerified(info *web.RequestInfo, email string) EmailVerified {
	body := EmailVerified{Meta: meta(info)}
	body.Data.Email, body.Data.Verified = email, true
	return body
}

// ResendEmail sends the link that verifies an address again.
func (h *Handlers) ResendEmail(ctx context.Context, request ResendEmailRequestObject) (ResendEmailResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	next, err := mailForm(form)
	if err == nil {
		err = h.Service.ResendTo(ctx, tenant(info), form.Email, next)
	}
	return ResendEmail202JSONResponse{Body: sent(info)}, err
}

// RevertEmail reverts a change of address.
func (h *Handlers) RevertEmail(ctx context.Context, request RevertEmailRequestObject) (RevertEmailResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := need("token", request.Body.Token); err != nil {
		return nil, err
	}
	email, err := h.Service.RevertEmail(ctx, tenant(info), request.Body.Token)
	return RevertEmail200JSONResponse{Body: emailVerified(info, email)}, err
}
