// Package notify sends e-mails and text messages.
package notify

import (
	"context"
	"errors"
)

// Mail is an e-mail.
type Mail struct {
	FromName string // the display name of the sender; the address is that of the deployment
	To       string
	Subject  string
	Text     string
	HTML     string
}

// Mailer sends e-mails. An implementation is safe for concurrent use.
type Mailer interface {
	// SendMail sends a mail. An error that wraps [ErrRefused] is final.
	SendMail(ctx context.Context, m Mail) error
}

// Texter sends text messages to phones. An implementation is safe for concurrent use.
type Texter interface {
	// Accepts reports whether messages can be sent to a number (E.164).
	Accepts(number string) bool
	// SendText sends a message. An error that wraps [ErrRefused] is final.
	SendText(ctx context.Context, number, text string) error
}

// ErrRefused is wrapped by errors that a further attempt would repeat.
var ErrRefused = errors.New("rejected permanently")

// ErrNone is returned by [None].
var ErrNone = errors.New("no mail server or text gateway is configured")

// None is the [Mailer] and [Texter] of a deployment without a mail server or a gateway. It
// sends nothing.
type None struct{}

// SendMail implements [Mailer].
func (None) SendMail(context.Context, Mail) error { return errors.Join(ErrNone, ErrRefused) }

// Accepts implements [Texter].
func (None) Accepts(string) bool { return false }

// SendText implements [Texter].
func (None) SendText(context.Context, string, string) error { return errors.Join(ErrNone, ErrRefused) }
