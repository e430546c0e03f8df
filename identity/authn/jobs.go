package authn

import (
	"context"
	"errors"
	"fmt"

	"stonetown/identity"
	"stonetown/internal/notify"
	"stonetown/internal/outbox"
)

// The kinds of jobs. A job does not contain the token of a link: the token is created when the
// mail is sent, and until then no secret is stored, not even encrypted.
const (
	jobSignUp        = "sign_up"
	jobSMS           = "sms"
	jobCheckPassword = "check_password"
	jobVerifyMail    = "mail.verify"
	jobResetMail     = "mail.reset"
	jobChangeMail    = "mail.change"
	jobNotice        = "mail.notice"
	jobSignInMail    = "mail.sign_in"
)

// work runs a job of the outbox.
func (s *Service) work(ctx context.Context, job outbox.Job) error {
	err := s.dispatch(ctx, job)
	if errors.Is(err, notify.ErrRefused) || errors.Is(err, identity.ErrUserNotFound) {
		err = errors.Join(err, outbox.ErrDrop)
	}
	return err
}

func (s *Service) dispatch(ctx context.Context, job outbox.Job) error {
	switch job.Kind {
	case jobSignUp:
		return run(ctx, job, s.createAccount)
	case jobSMS:
		return run(ctx, job, s.sendSMS)
	case jobCheckPassword:
		return run(ctx, job, s.checkPassword)
	case jobVerifyMail:
		return run(ctx, job, s.sendVerification)
	case jobResetMail:
		return run(ctx, job, s.sendReset)
	case jobChangeMail:
		return run(ctx, job, s.sendChange)
	case jobNotice:
		return run(ctx, job, s.sendNotice)
	case jobSignInMail:
		return run(ctx, job, s.sendSignIn)
	}
	if handle := s.handlers[job.Kind]; handle != nil {
		return handle(ctx, job)
	}
	return fmt.Errorf("unknown job %q: %w", job.Kind, outbox.ErrDrop)
}

// run decodes the payload of a job and calls do.
func run[T any](ctx context.Context, job outbox.Job, do func(context.Context, outbox.Job, T) error) error {
	var payload T
	if err := job.Read(&payload); err != nil {
		return err
	}
	return do(ctx, job, payload)
}
