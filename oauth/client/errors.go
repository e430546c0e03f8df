package client

import (
	"errors"
	"fmt"
	"time"
)

func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

var (
	// ErrNotFound is returned by lookups that match no application.
	ErrNotFound = errors.New("application not found")

	// ErrInvalid is wrapped by every refusal to create an application.
	ErrInvalid = errors.New("invalid application")

	// ErrNotApplicable is returned for the rotation of a secret of an application that has none,
	// because of its type or because it signs.
	ErrNotApplicable = errors.New("the application has no secret")
)

// InUseError is returned for an application to which users are signed in.
type InUseError struct {
	Sessions int       // that authorized it, and refresh tokens that outlive their session
	Latest   time.Time // the latest of their expiries
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("users are signed in to the application in %d sessions", e.Sessions)
}
