// Package post sends e-mails and text messages.
package post

import (
	"context"
	"errors"
)

// Letter is an e-mail.
type Letter struct {
	FromName string // beside the deployment's address
	To       string
	Subject  string
	Text     string
	HTML     string
}

// Mailer sends letters. An implementation is safe for concurrent use.
type Mailer interface {
	// Mail hands a letter over. An error that wraps [ErrRefused] is final.
	Mail(ctx context.Context, l Letter) error
}

// Texter sends texts to telephones. An implementation is safe for concurrent use.
type Texter interface {
	// Accepts reports whether texts are sent to a number (E.164) at all.
	Accepts(number string) bool
	// Text hands a text over. An error that wraps [ErrRefused] is final.
	Text(ctx context.Context, number, text string) error
}

// ErrRefused is wrapped by errors that another attempt would only repeat.
var ErrRefused = errors.New("rejected permanently")

// ErrNone is returned where nothing was configured to send with.
var ErrNone = errors.New("no mail server or text gateway is configured")

// None sends nothing.
type None struct{}

// Mail implements [Mailer].
func (None) Mail(context.Context, Letter) error { return errors.Join(ErrNone, ErrRefused) }

// Accepts implements [Texter].
func (None) Accepts(string) bool { return false }

// Text implements [Texter].
func (None) Text(context.Context, string, string) error { return errors.Join(ErrNone, ErrRefused) }
