package account

import (
	"context"

	"stonetown/api/web"
	"stonetown/internal/document"
)

// ForgotPassword has a letter sent that leads to a new password.
func (s *Surface) ForgotPassword(ctx context.Context, request ForgotPasswordRequestObject) (ForgotPasswordResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	then, err := letter(form)
	if err == nil {
		err = s.Service.Forgot(ctx, tenant(call), form.Email, then)
	}
	return ForgotPassword202JSONResponse{Body: sent(call)}, err
}

// letter checks a request for a letter, and returns the path that its link leads on to.
func letter(form *LetterInput) (then string, err error) {
	if err := need("email", form.Email); err != nil {
		return "", err
	}
	var v web.Validation
	then = localPath(&v, form.RedirectTo)
	return then, v.Err()
}

func sent(call *web.Call) Sent {
	body := Sent{Meta: meta(call)}
	body.Data.Sent = true
	return body
}

// ResetPassword sets a new password.
func (s *Surface) ResetPassword(ctx context.Context, request ResetPasswordRequestObject) (ResetPasswordResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	if err := need("token", form.Token, "password", form.Password); err != nil {
		return nil, err
	}
	r, err := s.Service.ResetPassword(ctx, tenant(call), form.Token, form.Password, By(call))
	if err != nil {
		return nil, err
	}
	body, err := s.result(ctx, call, r)
	return ResetPassword200JSONResponse{Body: body}, err
}

// ReadLink says what a mailed link is for.
func (s *Surface) ReadLink(ctx context.Context, request ReadLinkRequestObject) (ReadLinkResponseObject, error) {
	call := web.CallOf(ctx)
	if err := need("token", request.Body.Token); err != nil {
		return nil, err
	}
	link, err := s.Service.ReadLink(ctx, tenant(call), request.Body.Token)
	body := LinkRead{Meta: meta(call)}
	body.Data.Purpose, body.Data.Email, body.Data.ExpiresAt = string(link.Purpose), link.Email, document.Timestamp(link.ExpiresAt)
	return ReadLink200JSONResponse{Body: body}, err
}

// VerifyEmail verifies an address.
func (s *Surface) VerifyEmail(ctx context.Context, request VerifyEmailRequestObject) (VerifyEmailResponseObject, error) {
	call := web.CallOf(ctx)
	if err := need("token", request.Body.Token); err != nil {
		return nil, err
	}
	email, err := s.Service.VerifyEmail(ctx, tenant(call), request.Body.Token)
	return VerifyEmail200JSONResponse{Body: emailVerified(call, email)}, err
}

func emailVerified(call *web.Call, email string) EmailVerified {
	body := EmailVerified{Meta: meta(call)}
	body.Data.Email, body.Data.Verified = email, true
	return body
}

// ResendEmail has the letter sent again that verifies an address.
func (s *Surface) ResendEmail(ctx context.Context, request ResendEmailRequestObject) (ResendEmailResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	then, err := letter(form)
	if err == nil {
		err = s.Service.ResendTo(ctx, tenant(call), form.Email, then)
	}
	return ResendEmail202JSONResponse{Body: sent(call)}, err
}

// RevertEmail takes a change of address back.
func (s *Surface) RevertEmail(ctx context.Context, request RevertEmailRequestObject) (RevertEmailResponseObject, error) {
	call := web.CallOf(ctx)
	if err := need("token", request.Body.Token); err != nil {
		return nil, err
	}
	email, err := s.Service.RevertEmail(ctx, tenant(call), request.Body.Token)
	return RevertEmail200JSONResponse{Body: emailVerified(call, email)}, err
}
