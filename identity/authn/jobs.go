package authn

import (
	"context"
	"errors"

	"stonetown/identity"
	"stonetown/internal/jobs"
	"stonetown/internal/notify"
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
	jobTestMail      = "mail.test"
)

// register registers the handlers of the jobs.
func (s *Service) register(q *jobs.Queue) {
	for name, handle := range map[string]func(context.Context, jobs.Job) error{
		jobSignUp:        handler(s.createAccount),
		jobSMS:           handler(s.sendSMS),
		jobCheckPassword: handler(s.checkPassword),
		jobVerifyMail:    handler(s.sendVerification),
		jobResetMail:     handler(s.sendReset),
		jobChangeMail:    handler(s.sendChange),
		jobNotice:        handler(s.sendNotice),
		jobSignInMail:    handler(s.sendSignIn),
		jobTestMail:      handler(s.sendTest),
	} {
		q.Register(jobs.Kind{Name: name, Handle: handle})
	}
}

// handler decodes the payload of a job and calls do. A job whose user does not exist, or whose
// recipient is refused, can never succeed.
func handler[T any](do func(context.Context, jobs.Job, T) error) func(context.Context, jobs.Job) error {
	return func(ctx context.Context, job jobs.Job) error {
		var payload T
		if err := job.Read(&payload); err != nil {
			return err
		}
		err := do(ctx, job, payload)
		if errors.Is(err, notify.ErrRefused) || errors.Is(err, identity.ErrUserNotFound) {
			err = errors.Join(err, jobs.ErrDrop)
		}
		return err
	}
}
