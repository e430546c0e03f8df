package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"stonetown/engine/authority"
	"stonetown/internal/fair"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// Error is a failure as a client sees it.
type Error struct {
	Status  int
	Code    string // machine-readable; the only part that clients may branch on
	Message string
	Details Details     // nil is sent as {}
	Header  http.Header // sent with the response
}

// Details are the members of an error that depend on its code.
type Details map[string]any

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// FieldError is an error in one member or parameter.
type FieldError struct {
	Field   string `json:"field"` // a JSON pointer without its leading slash, or a parameter
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ValidationFailed refuses a request whose members or parameters are not valid.
func ValidationFailed(fields ...FieldError) *Error {
	return &Error{
		Status: http.StatusBadRequest, Code: "validation_failed", Message: fields[0].Message,
		Details: Details{"field_errors": fields},
	}
}

// NotFound is the error of an unknown path.
func NotFound() *Error {
	return &Error{Status: http.StatusNotFound, Code: "not_found", Message: "no operation has this path"}
}

// Denied refuses a caller that lacks a scope of the rights that it would give.
func Denied(e *authority.DeniedError) *Error {
	return &Error{Status: http.StatusForbidden, Code: "permission_denied", Message: e.Error(), Details: Details{"required_scope": e.Scope}}
}

// Unavailable is a 503 with Retry-After.
func Unavailable(message string, after time.Duration) *Error {
	seconds := max(1, int((after+time.Second-1)/time.Second))
	return &Error{
		Status: http.StatusServiceUnavailable, Code: "service_unavailable", Message: message,
		Header: http.Header{"Retry-After": {strconv.Itoa(seconds)}},
	}
}

// exhaustedFor is the Retry-After of a database without disk space.
const exhaustedFor = 30 * time.Second

func internal() *Error {
	return &Error{Status: http.StatusInternalServerError, Code: "internal_error", Message: "internal error; report the request id to the operator"}
}

// errorBody is the error of the data plane.
type errorBody struct {
	Error     string  `json:"error"`
	Message   string  `json:"message"`
	Details   Details `json:"details"`
	RequestID string  `json:"request_id"`
}

// Body returns the body of an error of the data plane.
func (e *Error) Body(requestID string) any {
	return errorBody{Error: e.Code, Message: e.Message, Details: e.Details, RequestID: requestID}
}

// Fail answers a request with an error. An error that is not an [*Error] and that the
// operation's [ErrorFormat] does not translate is internal: it is logged, and the response
// contains only the request id.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, err error) {
	res := w.(*response)
	var e *Error
	var busy *tuplestore.BusyError
	var denied *authority.DeniedError
	var tooMany *fair.ExhaustedError
	switch {
	case errors.As(err, &e):
	case errors.As(err, &tooMany):
		e = exhausted(tooMany)
	case res.format.Translate != nil:
		e = res.format.Translate(err)
	}
	switch {
	case e != nil:
	case errors.As(err, &denied):
		e = Denied(denied)
	case errors.As(err, &busy):
		e = Unavailable("too many writes are queued", busy.RetryAfter)
	case errors.Is(err, tuplestore.ErrSchemaChanged):
		e = Unavailable("the resource types changed during the request", time.Second)
	case errors.Is(err, tuplestore.ErrClosed):
		e = Unavailable("the service is shutting down", time.Second)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e = Unavailable("the request exceeded the time limit", time.Second)
	case sqldb.IsUnavailable(err):
		s.log.WarnContext(r.Context(), "database is unreachable", "request_id", res.RequestID, "tenant", res.Tenant.ID, "operation", res.operation, "error", err)
		e = Unavailable("the database is unreachable", time.Second)
	case sqldb.IsExhausted(err):
		s.log.WarnContext(r.Context(), "database is out of disk, memory or connections", "request_id", res.RequestID, "tenant", res.Tenant.ID, "operation", res.operation, "error", err)
		e = Unavailable("the service cannot store data at present", exhaustedFor)
	default:
		s.log.ErrorContext(r.Context(), "request failed", "request_id", res.RequestID, "tenant", res.Tenant.ID,
			"operation", res.operation, "method", r.Method, "path", r.URL.Path, "client_ip", res.ClientIP, "error", err)
		e = internal()
	}
	s.respond(res, e)
}

// LogInternal logs an internal error of a part of a request, whose response is complete otherwise.
func (s *Server) LogInternal(r *http.Request, err error) {
	info := InfoOf(r.Context())
	s.log.ErrorContext(r.Context(), "part of a request failed", "request_id", info.RequestID, "tenant", info.Tenant.ID, "error", err)
}

// FailAs is [Server.Fail] in the format of a group of operations, for a request that has no
// operation.
func (s *Server) FailAs(w http.ResponseWriter, r *http.Request, err error, format ErrorFormat) {
	w.(*response).format = format
	s.Fail(w, r, err)
}

func (s *Server) respond(res *response, e *Error) {
	if res.status != 0 && res.lines != nil {
		// An error means that the client has disconnected.
		if err := res.lines.Write(failedLine{"failed", errorBody{e.Code, e.Message, e.Details, res.RequestID}}); err == nil {
			_ = res.lines.Flush()
		}
		return
	}
	if res.status != 0 {
		panic(http.ErrAbortHandler) // an incomplete response must not look complete
	}
	for name, values := range e.Header {
		res.Header()[name] = values
	}
	if res.format.Render != nil {
		res.format.Render(res, e, &res.RequestInfo)
		return
	}
	status, body := e.Status, e.Body(res.RequestID)
	if res.format.Body != nil {
		status, body = res.format.Body(e, res.RequestID)
	}
	// An error means that the client has disconnected.
	_ = WriteJSON(res, status, body)
}
