package management

import (
	"errors"
	"fmt"
	"time"

	"stonetown/tuplestore"
)

var (
	// ErrOrganizationNotFound is returned for an organisation that does not exist, or that the
	// caller may not read.
	ErrOrganizationNotFound = errors.New("organisation not found")
	// ErrTenantNotFound is returned for a tenant that is not one of the organisation.
	ErrTenantNotFound = errors.New("tenant not found")
	// ErrMemberNotFound is returned for a member that is not one of the organisation.
	ErrMemberNotFound = errors.New("member not found")
	// ErrServiceAccountNotFound is returned for a service account that is not one of the
	// organisation.
	ErrServiceAccountNotFound = errors.New("service account not found")
	// ErrInvitationNotFound is returned for an invitation that is not one of the organisation,
	// and for a token that belongs to no invitation that can be accepted.
	ErrInvitationNotFound = errors.New("invitation not found")
)

// ForbiddenError is returned to a caller whose role does not permit an operation.
type ForbiddenError struct{ Message string }

func (e *ForbiddenError) Error() string { return e.Message }

// ConflictError is returned for a change that the present state does not allow.
type ConflictError struct{ Message string }

func (e *ConflictError) Error() string { return e.Message }

// FieldError is returned for a value that is not valid.
type FieldError struct {
	Field   string
	Code    string // such as required, invalid, too_long, unknown_value
	Message string // without the field
}

func (e *FieldError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Message) }

// Caller is the party that asks for an operation: a user or an application of the system tenant, or
// a command of the operator of the deployment.
type Caller struct {
	Subject tuplestore.Subject
	// CommitID is the same for all attempts of one request, so that it takes effect once; empty
	// for a request that is not repeated.
	CommitID string
	// SessionID is the session of the system tenant in which a person asks; empty: the caller has
	// another kind of token.
	SessionID string
	// Operator has every permission on every organisation, and no subject.
	Operator bool
}

// Position is the place of an item in a list, which is ordered by time and id, newest first.
type Position struct {
	At time.Time `json:"t"`
	ID string    `json:"i"`
}
