package authn

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"stonetown/identity"
	"stonetown/identity/mails"
	"stonetown/identity/onetime"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
)

type (
	// verifyMail and resetMail are sent to a user or, where a client named an address, to
	// the user with that address, if there is one.
	verifyMail struct {
		UserID string `json:"user_id,omitzero"`
		Email  string `json:"email,omitzero"`
		Next   string `json:"next,omitzero"` // the path that the link leads to in the end
	}
	resetMail struct {
		UserID string          `json:"user_id,omitzero"`
		Email  string          `json:"email,omitzero"`
		Next   string          `json:"next,omitzero"`
		Origin eventlog.Origin `json:"origin,omitzero"` // of the request
	}
	changeMail struct {
		UserID string `json:"user_id"`
		Change string `json:"change"`
		Email  string `json:"email"`
	}
	// notice notifies a user of an event.
	notice struct {
		UserID string `json:"user_id"`
		What   string `json:"what"`
	}
	// signInMail notifies a user of a sign-in on a new device.
	signInMail struct {
		UserID     string    `json:"user_id"`
		DeviceKind string    `json:"device_kind"`
		IP         string    `json:"ip"`
		At         time.Time `json:"at"`
	}
	// testMail is a mail with sample values, for an administrator.
	testMail struct {
		UserID   string `json:"user_id"`
		Mail     string `json:"mail"`
		Language string `json:"language"`
	}
	sms struct {
		UserID string `json:"user_id"`
		Number string `json:"number"`
		Code   string `json:"code"`
	}
)

// The events of notices, which are also the names of their templates.
const (
	passwordChanged  = "password_changed"
	passwordBreached = "password_breached"
	factorAdded      = "factor_added"
	factorRemoved    = "factor_removed"
	identityAdded    = "identity_added"
	identityRemoved  = "identity_removed"
)

// notify queues a notice.
func (s *Service) notify(b *sqldb.Batch, tenantID, userID, what string) {
	s.jobs.Enqueue(b, tenantID, jobNotice, notice{UserID: userID, What: what})
}

// recipient returns a user by id or by address; the zero user if there is none with the
// address.
func (s *Service) recipient(ctx context.Context, tenantID, userID, email string) (u identity.User, err error) {
	if userID != "" {
		return s.users.User(ctx, tenantID, userID)
	}
	if u, err = s.users.UserByEmail(ctx, tenantID, email); errors.Is(err, identity.ErrUserNotFound) {
		return identity.User{}, nil
	}
	return u, err
}

// sendVerification sends the link that verifies an address.
func (s *Service) sendVerification(ctx context.Context, job jobs.Job, m verifyMail) error {
	u, err := s.recipient(ctx, job.TenantID, m.UserID, m.Email)
	if err != nil || u.ID == "" || u.EmailVerified {
		return err
	}
	return s.sendLink(ctx, u, u.Email, "verify_email", "/auth/verify-email", m.Next, onetime.New{Kind: kindVerify, Payload: addressed{Email: u.Email}, For: verifyFor})
}

// sendReset sends the link to a new password.
func (s *Service) sendReset(ctx context.Context, job jobs.Job, m resetMail) error {
	u, err := s.recipient(ctx, job.TenantID, m.UserID, m.Email)
	if err != nil || u.ID == "" || u.State == identity.Disabled {
		return err
	}
	if m.Email != "" {
		if err := s.record(ctx, u.TenantID, passwordResetRequested(from(ctx, m.Origin), u)); err != nil {
			return err
		}
	}
	return s.sendLink(ctx, u, u.Email, "reset_password", "/auth/reset-password", m.Next, onetime.New{Kind: kindReset, Payload: proof{}, For: resetFor})
}

// sendChange sends the two mails of a change of address: to the new address the link that
// completes it, and to the old address the link that reverts it.
func (s *Service) sendChange(ctx context.Context, job jobs.Job, m changeMail) error {
	u, err := s.users.User(ctx, job.TenantID, m.UserID)
	if err != nil {
		return err
	}
	change, _, err := s.selectChange(ctx, s.db, job.TenantID, u.ID, m.Change)
	if err != nil {
		return errors.Join(err, jobs.ErrDrop)
	}
	owner, err := s.users.UserByEmail(ctx, job.TenantID, m.Email)
	switch {
	case err == nil && owner.ID != u.ID:
		return s.send(ctx, job.TenantID, owner, "address_wanted", mails.Data{Link: "/account"})
	case err != nil && !errors.Is(err, identity.ErrUserNotFound):
		return err
	}
	err = s.sendLink(ctx, u, u.Email, "email_changing", "/auth/revert-email", "",
		onetime.New{Kind: kindRevert, Payload: addressed{Email: u.Email, Change: m.Change, Since: change.since}, For: revertFor})
	if err != nil {
		return err
	}
	return s.sendLink(ctx, u, m.Email, "change_email", "/auth/verify-email", "",
		onetime.New{Kind: kindChange, Payload: addressed{Email: m.Email, Change: m.Change}, For: verifyFor})
}

// sendNotice sends a notice.
func (s *Service) sendNotice(ctx context.Context, job jobs.Job, n notice) error {
	u, err := s.users.User(ctx, job.TenantID, n.UserID)
	if err != nil {
		return err
	}
	link := "/account"
	if n.What == passwordBreached {
		link = "/account/password"
	}
	return s.send(ctx, job.TenantID, u, n.What, mails.Data{Link: link})
}

// signInMailLimit bounds the mails about new devices to one user. A client can send a
// different user agent with each sign-in.
var signInMailLimit = ratelimit.Limit{Requests: 10, Window: time.Hour}

// sendSignIn notifies a user of a sign-in on a new device. The mail does not quote the user
// agent, which can be any text.
func (s *Service) sendSignIn(ctx context.Context, job jobs.Job, m signInMail) error {
	u, err := s.users.User(ctx, job.TenantID, m.UserID)
	if err != nil {
		return err
	}
	if job.Attempt == 1 {
		if err := s.limit(ctx, job.TenantID, "sign_in_mail", u.ID, signInMailLimit); err != nil {
			return errors.Join(err, jobs.ErrDrop)
		}
	}
	place := s.geoIP.Find(m.IP)
	return s.send(ctx, job.TenantID, u, "new_sign_in", mails.Data{
		Link: "/account/sessions", Device: m.DeviceKind, IP: m.IP, At: m.At.UTC().Format("2006-01-02 15:04 UTC"),
		Place: strings.Join(slices.DeleteFunc([]string{place.City, place.Country}, func(s string) bool { return s == "" }), ", "),
	})
}

// sendLink sends a mail with a link that contains a new one-time token of the user and, unless
// it is empty, the path next. Managed users get none, as no other mail.
func (s *Service) sendLink(ctx context.Context, u identity.User, to, name, path, next string, n onetime.New) error {
	if u.ManagedBy != "" {
		return nil
	}
	n.TenantID, n.UserID = u.TenantID, u.ID
	token, _, err := s.tokens.Create(ctx, n)
	if err != nil {
		return err
	}
	u.Email, u.EmailVerified = to, u.EmailVerified && to == u.Email
	link := path + "?token=" + url.QueryEscape(token)
	if next != "" {
		link += "&next=" + url.QueryEscape(next)
	}
	return s.send(ctx, u.TenantID, u, name, mails.Data{Link: link, Count: int(n.For / time.Hour)})
}

// send sends a mail to a user. The name of a user is used only if the mail goes to an address that is
// verified: anybody can sign up with the address of another and a name of their choice. Nothing is sent
// to a managed user, whose address is a name and no mailbox.
func (s *Service) send(ctx context.Context, tenantID string, u identity.User, name string, data mails.Data) error {
	if u.ManagedBy != "" {
		return nil
	}
	t, err := s.tenants.AuthnTenant(ctx, tenantID)
	if err != nil {
		return err
	}
	data.Email, data.Link = u.Email, t.BaseURL+data.Link
	if u.EmailVerified {
		data.Name = u.Name
	}
	mail, err := s.composer.Mail(ctx, t.mails(), u.Locale, name, data)
	if err != nil {
		return err
	}
	return s.mail.SendMail(ctx, mail)
}

// SendAnnouncement sends a text of an administrator to a user: paragraphs, separated by blank lines.
// It fails with [identity.ErrUserNotFound].
func (s *Service) SendAnnouncement(ctx context.Context, tenantID, userID, subject, message string) error {
	u, err := s.users.User(ctx, tenantID, userID)
	if err != nil {
		return err
	}
	return s.send(ctx, tenantID, u, mails.Announcement, mails.Data{Link: "/account", Subject: subject, Message: message})
}

// SendReport notifies a user of a run of a report at some time, with figures, one in each line. It fails
// with [identity.ErrUserNotFound].
func (s *Service) SendReport(ctx context.Context, tenantID, userID, report string, at time.Time, figures []string, path string) error {
	u, err := s.users.User(ctx, tenantID, userID)
	if err != nil {
		return err
	}
	return s.send(ctx, tenantID, u, "report", mails.Data{
		Link: path, Report: report, At: at.UTC().Format("2006-01-02 15:04 UTC"), Message: strings.Join(figures, "\n\n"),
	})
}

// SendInvitation sends an invitation to an organisation, with a link to a page of a tenant that works
// for some time.
func (s *Service) SendInvitation(ctx context.Context, tenantID, email, organization, inviter, link string, valid time.Duration) error {
	days := int((valid + 12*time.Hour) / (24 * time.Hour))
	return s.send(ctx, tenantID, identity.User{Email: email}, "invitation", mails.Data{Organization: organization, Inviter: inviter, Link: link, Count: max(1, days)})
}

// sendSMS sends a code to a phone, unless the code has expired.
func (s *Service) sendSMS(ctx context.Context, job jobs.Job, m sms) error {
	if s.now().Sub(job.CreatedAt) > smsFor {
		return jobs.ErrDrop
	}
	t, err := s.tenants.AuthnTenant(ctx, job.TenantID)
	if err != nil {
		return err
	}
	var u identity.User
	if m.UserID != "" { // of this version
		if u, err = s.users.User(ctx, job.TenantID, m.UserID); err != nil {
			return err
		}
	}
	text, err := s.composer.Code(ctx, t.mails(), u.Locale, mails.Data{Code: m.Code})
	if err != nil {
		return err
	}
	return s.texts.SendText(ctx, m.Number, text)
}
