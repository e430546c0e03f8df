package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"code.dny.dev/ssrf"
)

// Class is the class of an error, which may be shown to the tenant that set the URL. It
// reveals nothing about the network of the server.
type Class string

// The classes of errors.
const (
	Invalid        Class = "invalid"         // the URL is none that is fetched
	BlockedAddress Class = "blocked_address" // the host is not of the public Internet
	DNS            Class = "dns"             // the name of the host could not be looked up
	Connection     Class = "connection"      // no connection, or it broke
	TLS            Class = "tls"             // no trusted, encrypted connection
	Timeout        Class = "timeout"         // it took too long
	Status         Class = "status"          // an answer other than 2xx; redirects are not followed
	TooLarge       Class = "too_large"       // a body longer than the caller takes
)

// Error is a failed request. Its text is the class. The wrapped error may contain internal
// addresses and is for logs.
type Error struct {
	Class  Class
	Status int    // of the answer, for the classes Status and TooLarge
	Part   string // of the URL, for the class Invalid: scheme, host, port, or url for another
	err    error
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s (%d)", e.Class, e.Status)
	}
	return string(e.Class)
}

// Unwrap returns the cause, which may be nil.
func (e *Error) Unwrap() error { return e.err }

// classify returns the class of an error.
func classify(err error) *Error {
	var known *Error
	var lookup *net.DNSError
	var op *net.OpError
	var slow interface{ Timeout() bool }
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork):
		return &Error{Class: BlockedAddress, err: err}
	case errors.As(err, &lookup):
		return &Error{Class: DNS, err: err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return &Error{Class: Timeout, err: err}
	case errors.As(err, &op) && op.Op == "remote error":
		return &Error{Class: TLS, err: err} // an alert: in TLS 1.3 the server may refuse after the client's handshake
	}
	return &Error{Class: Connection, err: err}
}
