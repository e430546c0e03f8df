package authn

import (
	"context"
	"time"

	"stonetown/internal/jobs"
	"stonetown/internal/ratelimit"
)

// testMailLimit bounds the test mails to one user.
var testMailLimit = ratelimit.Limit{Requests: 10, Window: time.Hour}

// SendTest queues a mail with sample values in a language to the verified address of a user. It fails with
// [identity.ErrUserNotFound], [ErrUnverified] or a [*SlowDownError].
func (s *Service) SendTest(ctx context.Context, tenantID, userID, mail, language string) error {
	u, err := s.users.User(ctx, tenantID, userID)
	if err != nil {
		return err
	}
	if !u.EmailVerified {
		return ErrUnverified
	}
	if err := s.limit(ctx, tenantID, "test_mail", u.ID, testMailLimit); err != nil {
		return err
	}
	return s.jobs.Put(ctx, tenantID, jobTestMail, testMail{UserID: u.ID, Mail: mail, Language: language})
}

// sendTest sends a test mail.
func (s *Service) sendTest(ctx context.Context, job jobs.Job, m testMail) error {
	u, err := s.users.User(ctx, job.TenantID, m.UserID)
	if err != nil {
		return err
	}
	if !u.EmailVerified { // the address was changed meanwhile
		return jobs.ErrDrop
	}
	t, err := s.tenants.AuthnTenant(ctx, job.TenantID)
	if err != nil {
		return err
	}
	mail, err := s.composer.Test(ctx, t.mails(), m.Mail, m.Language, u.Email)
	if err != nil {
		return err
	}
	return s.mail.SendMail(ctx, mail)
}
