package samlprotocol

import (
	"fmt"
)

// Class is the class of an error: what a person can do about it.
type Class string

// The classes of errors.
const (
	Denied              Class = "access_denied"        // the user or the identity provider refused
	InteractionRequired Class = "interaction_required" // the request was passive, and the provider would have to ask
	Stale               Class = "stale"                // the message came too late, or belongs to another exchange
	Invalid             Class = "invalid_response"     // the message violates the protocol; it may be an attack
	Misconfigured       Class = "misconfigured"        // the configuration must be changed, here or at the other side
	Unavailable         Class = "provider_error"       // the identity provider failed
)

// sentences are the messages of the classes, for a person.
var sentences = map[Class]string{
	Denied:              "the identity provider refused the sign-in, or it was canceled there",
	InteractionRequired: "the identity provider requires the user to interact",
	Stale:               "the sign-in has expired or was completed before; start again",
	Invalid:             "the message of the other site is not valid",
	Misconfigured:       "the connection to the other site is not configured correctly",
	Unavailable:         "the identity provider failed; try again later",
}

// Error is a failed operation. Its text is safe for a person: it contains nothing that the
// other side sent.
type Error struct {
	Class Class
	// Detail is the cause, for logs and for an administrator. It may quote
	// identifiers of the message as printable text of limited length, but no attributes and no
	// names of users.
	Detail string
}

func (e *Error) Error() string { return sentences[e.Class] }

// Failed returns an error. The detail must not quote a message, except by [Quote].
func Failed(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Detail: fmt.Sprintf(format, args...)}
}

// Refused returns the error of a message that violates the protocol.
func Refused(format string, args ...any) *Error { return Failed(Invalid, format, args...) }
