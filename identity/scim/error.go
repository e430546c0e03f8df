package scim

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"stonetown/engine/authority"
	"stonetown/identity"
)

// ErrorType is the scimType of an error (RFC 7644 §3.12, RFC 9865 §2.1).
type ErrorType string

// The types of errors that the package returns.
const (
	InvalidFilter ErrorType = "invalidFilter"
	TooMany       ErrorType = "tooMany"
	Uniqueness    ErrorType = "uniqueness"
	Mutability    ErrorType = "mutability"
	InvalidSyntax ErrorType = "invalidSyntax"
	InvalidPath   ErrorType = "invalidPath"
	NoTarget      ErrorType = "noTarget"
	InvalidValue  ErrorType = "invalidValue"
	InvalidCursor ErrorType = "invalidCursor"
	InvalidCount  ErrorType = "invalidCount"
)

// ErrorTypes are all of them.
var ErrorTypes = []ErrorType{InvalidFilter, TooMany, Uniqueness, Mutability, InvalidSyntax, InvalidPath, NoTarget, InvalidValue, InvalidCursor, InvalidCount}

// Error is a failure as a client sees it.
type Error struct {
	Status int
	Type   ErrorType // may be empty
	Detail string
}

func (e *Error) Error() string { return e.Detail }

// Document returns the body of the error (RFC 7644 §3.12).
func (e *Error) Document() map[string]any {
	d := map[string]any{"schemas": []string{ErrorMessage}, "status": strconv.Itoa(e.Status), "detail": e.Detail}
	if e.Type != "" {
		d["scimType"] = e.Type
	}
	return d
}

func refuse(t ErrorType, format string, args ...any) *Error {
	return &Error{http.StatusBadRequest, t, fmt.Sprintf(format, args...)}
}

// notFound is the error of an unknown resource.
func notFound(t *Type, id string) *Error {
	return &Error{http.StatusNotFound, "", fmt.Sprintf("%s %q not found", t.Name, id)}
}

// Translate returns the response to an error of the operations, or nil for an internal error.
func Translate(err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if denied, ok := errors.AsType[*authority.DeniedError](err); ok {
		return &Error{http.StatusForbidden, "", denied.Error()}
	}
	if unknown, ok := errors.AsType[*identity.UnknownMembersError](err); ok {
		return refuse(InvalidValue, "members: %v", unknown)
	}
	switch {
	case errors.Is(err, identity.ErrUserNotFound):
		return &Error{http.StatusNotFound, "", "user not found"}
	case errors.Is(err, identity.ErrGroupNotFound):
		return &Error{http.StatusNotFound, "", "group not found"}
	case errors.Is(err, identity.ErrUserExists):
		return &Error{http.StatusConflict, Uniqueness, "another user has this userName"}
	case errors.Is(err, identity.ErrEmailInvalid):
		return refuse(InvalidValue, "userName must be an e-mail address")
	case errors.Is(err, identity.ErrLastAdministrator):
		return &Error{http.StatusConflict, "", identity.ErrLastAdministrator.Error()}
	case errors.Is(err, identity.ErrBuiltin):
		return &Error{http.StatusForbidden, Mutability, identity.ErrBuiltin.Error()}
	case errors.Is(err, identity.ErrOrganizationMembers):
		return &Error{http.StatusForbidden, Mutability, identity.ErrOrganizationMembers.Error()}
	case errors.Is(err, identity.ErrManaged):
		return &Error{http.StatusForbidden, Mutability, identity.ErrManaged.Error()}
	}
	return nil
}
