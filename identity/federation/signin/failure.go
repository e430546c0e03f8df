package signin

import (
	"errors"

	"stonetown/identity/federation/relyingparty"
	"stonetown/identity/federation/serviceprovider"
)

// Failure is the error of a sign-in that failed at the provider, in the protocol of the connection. Its
// text is safe for a person: it contains nothing that the provider sent. It unwraps to the error of
// the protocol.
type Failure struct {
	// Reason is the class of the error: a [relyingparty.Class] or [serviceprovider.Class], which have
	// the same values for the same meaning.
	Reason string
	// Step is the step of the protocol that failed; empty for SAML.
	Step string
	// Detail is the cause, for logs and for the administrator of the connection.
	Detail string

	err error
}

func (f *Failure) Error() string { return f.err.Error() }

// Unwrap returns the error of the protocol.
func (f *Failure) Unwrap() error { return f.err }

// failing returns the error of a protocol as a [*Failure], and other errors as they are.
func failing(err error) error {
	if e, ok := errors.AsType[*relyingparty.Error](err); ok {
		return &Failure{string(e.Class), string(e.Step), e.Detail, err}
	}
	if e, ok := errors.AsType[*serviceprovider.Error](err); ok {
		return &Failure{string(e.Class), "", e.Detail, err}
	}
	return err
}
