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

	// ErrNotApplicable is returned for a secret operation on an application
	// that has none, by its type or because it signs.
	ErrNotApplicable = errors.New("the application has no secret")
)

// InUseError is returned for an application that users are signed in to.
type InUseError struct {
	Sessions int       // that have authorized it, and refresh tokens that outlive theirs
	Latest   time.Time // when the last of them ends, if nobody ends it before
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("users are signed in to the application in %d sessions", e.Sessions)
}
