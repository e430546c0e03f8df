package post

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

// smtpTimeout bounds the sending of a letter.
const smtpTimeout = 30 * time.Second

// SMTP sends letters through a mail server.
type SMTP struct {
	client *mail.Client
	from   string
}

// NewSMTP returns a sender through the server at smtp://[user@]host[:port], which must
// know STARTTLS unless the host is this machine, or smtps:// for TLS from the start.
func NewSMTP(server, password, from string) (*SMTP, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" {
		return nil, errors.New("mail server is not smtp://[user@]host[:port] or smtps://…")
	}
	options := []mail.Option{mail.WithTimeout(smtpTimeout)}
	switch {
	case u.Scheme == "smtps":
		options = append(options, mail.WithSSLPort(false))
	case u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1":
		options = append(options, mail.WithTLSPortPolicy(mail.TLSOpportunistic))
	default:
		options = append(options, mail.WithTLSPortPolicy(mail.TLSMandatory))
	}
	if u.Port() != "" {
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			return nil, fmt.Errorf("mail server: %w", err)
		}
		options = append(options, mail.WithPort(port))
	}
	if u.User != nil {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(u.User.Username()), mail.WithPassword(password))
	}
	client, err := mail.NewClient(u.Hostname(), options...)
	if err != nil {
		return nil, fmt.Errorf("mail server: %w", err)
	}
	s := &SMTP{client, from}
	if _, err := s.message(Letter{To: from, Subject: "x", Text: "x"}); err != nil {
		return nil, fmt.Errorf("sender's address: %w", err)
	}
	return s, nil
}

// Mail implements [Mailer].
func (s *SMTP) Mail(ctx context.Context, l Letter) error {
	m, err := s.message(l)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrRefused)
	}
	err = s.client.DialAndSendWithContext(ctx, m)
	var refused *mail.SendError
	if errors.As(err, &refused) && !refused.IsTemp() && refused.Reason == mail.ErrSMTPRcptTo {
		return fmt.Errorf("send letter: %w: %w", err, ErrRefused)
	}
	if err != nil {
		return fmt.Errorf("send letter: %w", err)
	}
	return nil
}

// message is a letter as mail servers take it.
func (s *SMTP) message(l Letter) (*mail.Msg, error) { return message(s.from, l) }

func message(from string, l Letter) (*mail.Msg, error) {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := errors.Join(m.From(from), m.To(l.To)); err != nil {
		return nil, err
	}
	m.FromMailAddress(&netmail.Address{Name: oneLine(l.FromName), Address: m.GetFrom()[0].Address})
	m.Subject(oneLine(l.Subject))
	m.SetDate()
	m.SetMessageID()
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no answers from machines
	m.SetBodyString(mail.TypeTextPlain, l.Text)
	if l.HTML != "" {
		m.AddAlternativeString(mail.TypeTextHTML, l.HTML)
	}
	return m, nil
}

// oneLine keeps a text from beginning a header of its own.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
