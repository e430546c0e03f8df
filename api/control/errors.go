package control

import (
	"errors"
	"net/http"

	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/controlplane/management"
)

// Errors is the error format of the control plane. The code of an error follows from its status,
// except that failures of the request without a code of their own are BAD_REQUEST.
var Errors = web.ErrorFormat{Translate: translate, Body: body}

func translate(err error) *web.Error {
	for _, known := range []error{
		management.ErrOrganizationNotFound, management.ErrTenantNotFound, management.ErrMemberNotFound,
		management.ErrServiceAccountNotFound, management.ErrInvitationNotFound,
		controlplane.ErrOrganizationNotFound, controlplane.ErrTenantNotFound,
	} {
		if errors.Is(err, known) {
			return &web.Error{Status: http.StatusNotFound, Code: "not_found", Message: known.Error()}
		}
	}
	for _, known := range []struct {
		err   error
		field string
	}{
		{controlplane.ErrSlugInvalid, "slug"},
		{controlplane.ErrNameInvalid, "name"},
		{controlplane.ErrReasonInvalid, "reason"},
	} {
		if errors.Is(err, known.err) {
			return web.ValidationFailed(web.FieldError{Field: known.field, Code: "invalid", Message: known.err.Error()})
		}
	}
	var state *controlplane.StateError
	var conflict *management.ConflictError
	var forbidden *management.ForbiddenError
	var field *management.FieldError
	switch {
	case errors.Is(err, controlplane.ErrSlugTaken):
		return &web.Error{Status: http.StatusConflict, Code: "conflict", Message: controlplane.ErrSlugTaken.Error()}
	case errors.As(err, &state):
		return &web.Error{Status: http.StatusConflict, Code: "conflict", Message: state.Error()}
	case errors.As(err, &conflict):
		return &web.Error{Status: http.StatusConflict, Code: "conflict", Message: conflict.Error()}
	case errors.As(err, &forbidden):
		return &web.Error{Status: http.StatusForbidden, Code: "forbidden", Message: forbidden.Error()}
	case errors.As(err, &field):
		return web.ValidationFailed(web.FieldError{Field: field.Field, Code: field.Code, Message: field.Error()})
	}
	return nil
}

// errorBody is the body of an error.
type errorBody struct {
	Error struct {
		Code        string           `json:"code"`
		Message     string           `json:"message"`
		FieldErrors []web.FieldError `json:"field_errors"`
	} `json:"error"`
	Meta struct {
		RequestID string `json:"request_id"`
	} `json:"meta"`
}

func body(e *web.Error, requestID string) (status int, _ any) {
	var b errorBody
	b.Error.Code, b.Error.Message, b.Error.FieldErrors = codeOf(e.Status), e.Message, fieldErrors(e)
	b.Meta.RequestID = requestID
	return e.Status, b
}

// codeOf returns the code of a status.
func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "FORBIDDEN"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict, http.StatusUnprocessableEntity: // of idempotency keys
		return "CONFLICT"
	case http.StatusTooManyRequests:
		return "RATE_LIMITED"
	}
	if status >= http.StatusInternalServerError {
		return "INTERNAL_ERROR"
	}
	return "BAD_REQUEST"
}

// fieldErrors returns where the request is wrong. Errors of the shared steps that concern one
// field have a code of their own instead of field errors.
func fieldErrors(e *web.Error) []web.FieldError {
	one := func(field string) []web.FieldError {
		return []web.FieldError{{Field: field, Code: e.Code, Message: e.Message}}
	}
	switch e.Code {
	case "validation_failed":
		if list, ok := e.Details["field_errors"].([]web.FieldError); ok {
			return list
		}
	case "immutable_field":
		list := []web.FieldError{}
		names, _ := e.Details["fields"].([]string)
		for _, name := range names {
			list = append(list, web.FieldError{Field: name, Code: e.Code, Message: name + " cannot be changed"})
		}
		return list
	case "invalid_json":
		return one("")
	case "cursor_invalid":
		return one("cursor")
	case "idempotency_key_invalid":
		return one("Idempotency-Key")
	}
	return []web.FieldError{}
}
