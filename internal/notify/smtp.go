package notify

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
)

// smtpTimeout bounds the sending of a mail.
const smtpTimeout = 30 * time.Second

// SMTP sends mails through a mail server.
type SMTP struct {
	client *mail.Client
	from   string
}

// NewSMTP returns a mailer for the server at smtp://[user@]host[:port], which must support
// STARTTLS unless it is on this machine, or at smtps://[user@]host[:port], with implicit TLS.
func NewSMTP(server, password, from string) (*SMTP, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" {
		return nil, errors.New("mail server is not smtp://[user@]host[:port] or smtps://…")
	}
	options := []mail.Option{mail.WithTimeout(smtpTimeout)}
	policy := mail.TLSMandatory
	if u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1" {
		policy = mail.TLSOpportunistic
	}
	switch {
	case u.Port() != "": // and no other one, which the options below may try
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			return nil, fmt.Errorf("mail server: %w", err)
		}
		options = append(options, mail.WithPort(port), mail.WithTLSPolicy(policy))
		if u.Scheme == "smtps" {
			options = append(options, mail.WithSSL())
		}
	case u.Scheme == "smtps":
		options = append(options, mail.WithSSLPort(false))
	default:
		options = append(options, mail.WithTLSPortPolicy(policy))
	}
	if u.User != nil {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(u.User.Username()), mail.WithPassword(password))
	}
	client, err := mail.NewClient(u.Hostname(), options...)
	if err != nil {
		return nil, fmt.Errorf("mail server: %w", err)
	}
	s := &SMTP{client, from}
	if _, err := s.message(Mail{To: from, Subject: "x", Text: "x"}); err != nil {
		return nil, fmt.Errorf("sender's address: %w", err)
	}
	return s, nil
}

// Check connects to the server, as for sending a mail, and sends none.
func (s *SMTP) Check(ctx context.Context) error {
	if err := s.client.DialWithContext(ctx); err != nil {
		return fmt.Errorf("mail server: %w", err)
	}
	return s.client.Close()
}

// SendMail implements [Mailer].
func (s *SMTP) SendMail(ctx context.Context, m Mail) error {
	msg, err := s.message(m)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrRefused)
	}
	err = s.client.DialAndSendWithContext(ctx, msg)
	var refused *mail.SendError
	if errors.As(err, &refused) && !refused.IsTemp() && refused.Reason == mail.ErrSMTPRcptTo {
		return fmt.Errorf("send mail: %w: %w", err, ErrRefused)
	}
	if err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	return nil
}

func (s *SMTP) message(m Mail) (*mail.Msg, error) { return message(s.from, m) }

// message encodes a mail (RFC 5322).
func message(from string, m Mail) (*mail.Msg, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := errors.Join(msg.From(from), msg.To(m.To)); err != nil {
		return nil, err
	}
	msg.FromMailAddress(&netmail.Address{Name: oneLine(m.FromName), Address: msg.GetFrom()[0].Address})
	msg.Subject(oneLine(m.Subject))
	msg.SetDate()
	msg.SetMessageID()
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // no automatic responses (RFC 3834 §5)
	msg.SetBodyString(mail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(mail.TypeTextHTML, m.HTML)
	}
	return msg, nil
}

// oneLine replaces line breaks, which would begin another header field.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
