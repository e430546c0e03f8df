package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"stonetown/controlplane"
	"stonetown/engine/authority"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/ratelimit"
	"stonetown/internal/tracing"
	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// Header values that never change are shared between responses.
var (
	noSniff    = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	noStore    = []string{"no-store"}
	transport  = []string{"max-age=31536000"}
)

// Router routes requests to operations.
type Router interface {
	http.Handler
	Paths
}

// Serve is the outermost handler. It begins the request, calls the router, and finishes the
// request also after a panic.
func (s *Server) Serve(router Router) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		res := &response{ResponseWriter: w, operation: "none", encoders: s.encoders}
		res.RequestID = id.OfRequest()
		res.ClientIP = s.clientIP(r)
		res.certificates = s.clientCertificates(r)
		res.UserAgent, res.RawQuery = r.UserAgent(), r.URL.RawQuery
		h := w.Header()
		res.header, res.request = h, r
		h["X-Request-Id"] = []string{res.RequestID}
		h["X-Content-Type-Options"] = noSniff
		h["Referrer-Policy"] = noReferrer
		h["Cache-Control"] = noStore

		ctx, span := s.tracer.Request(r.Context(), r)
		ctx = authority.With(context.WithValue(ctx, infoKey{}, &res.RequestInfo), res.Caller)
		r = r.WithContext(eventlog.WithOrigin(ctx, res.Origin))
		defer s.finish(res, r, span, start)
		defer func() {
			if fault := recover(); fault != nil {
				s.panicked(res, r, fault)
			}
		}()
		if !s.allowOrigin(res, r, router) {
			router.ServeHTTP(res, r)
		}
	})
}

// finish counts a request that has ended, logs it and ends its span.
func (s *Server) finish(res *response, r *http.Request, span tracing.Span, start time.Time) {
	status := res.status
	if status == 0 {
		status = http.StatusOK
	}
	elapsed := time.Since(start)
	s.duration.WithLabelValues(res.operation, strconv.Itoa(status)).Observe(elapsed.Seconds())
	s.logAccess(res, r, status, elapsed)
	if span.IsRecorded() {
		s.describe(res, span, status)
		span.End(nil)
	}
}

// logAccess logs a request, at debug level without an access log. Neither the path nor the
// query is logged: both may hold secrets.
func (s *Server) logAccess(res *response, r *http.Request, status int, elapsed time.Duration) {
	level := slog.LevelDebug
	if s.access {
		level = slog.LevelInfo
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(
		attrs,
		slog.String("method", res.request.Method), slog.String("route", res.route), slog.String("operation", res.operation),
		slog.Int("status", status), slog.Duration("duration", elapsed), slog.Int64("bytes", res.bytes),
		slog.String("request_id", res.RequestID), slog.String("tenant", res.Tenant.ID), slog.String("client_ip", res.ClientIP.String()),
	)
	if res.Principal != nil {
		attrs = append(attrs, slog.String("client_id", res.Principal.ClientID), slog.String("subject", res.Principal.Subject))
	}
	if theirs := res.request.Header.Get("X-Request-Id"); isVisible(theirs) {
		attrs = append(attrs, slog.String("client_request_id", theirs))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// describe sets the attributes of a request's span.
func (s *Server) describe(res *response, span tracing.Span, status int) {
	if res.route != "" {
		span.Name(res.operation)
	}
	span.String("http.route", res.route)
	span.Int("http.response.status_code", status)
	scheme, _, _ := strings.Cut(res.Tenant.BaseURL, ":")
	span.String("url.scheme", scheme)
	span.String("client.address", res.ClientIP.String())
	span.String("stonetown.tenant", res.Tenant.ID)
	span.String("stonetown.request_id", res.RequestID)
	if status >= http.StatusInternalServerError {
		span.Fail(strconv.Itoa(status))
	}
}

// panicked ends a request whose handler panicked.
func (s *Server) panicked(res *response, r *http.Request, fault any) {
	if fault == http.ErrAbortHandler {
		panic(fault)
	}
	s.log.ErrorContext(r.Context(), "panic", "request_id", res.RequestID, "tenant", res.Tenant.ID,
		"operation", res.operation, "fault", fault, "stack", string(debug.Stack()))
	if res.status == 0 {
		s.respond(res, internal())
		return
	}
	panic(http.ErrAbortHandler) // an incomplete response must not look complete
}

// Handle returns the handler of an operation, which checks the requirements of the operation
// and then calls next.
func (s *Server) Handle(op Operation, format ErrorFormat, next http.Handler) http.Handler {
	hasVariables := strings.Contains(op.Path, "{")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res := w.(*response)
		res.operation, res.route, res.format = op.ID, op.Path, format
		maps.Copy(res.Header(), format.Header)
		if theirs := r.Header.Get("X-Request-Id"); format.EchoRequestID && isVisible(theirs) {
			res.Header()["X-Request-Id"] = []string{theirs}
		}
		ctx := withLazyDeadline(r.Context(), s.timeout)
		defer ctx.end()
		as := &ctx.request
		bounded := r.WithContext(ctx)
		err := s.admit(res, bounded, op)
		if err == nil && hasVariables {
			err = unescapeVariables(r)
		}
		as.Caller = callerOf(res)
		if err == nil && op.Effects && res.request.Method == http.MethodHead {
			w.WriteHeader(http.StatusOK)
			return
		}
		switch {
		case err != nil:
		case op.Page:
			if !isSafe(r.Method) && !op.CrossSite {
				err = s.fromHere(r)
			}
		case op.Streaming && res.request.Method == http.MethodHead: // the response has no body
			res.Header()["Content-Type"], res.Header()["X-Accel-Buffering"] = ndjson, unbuffered
			res.WriteHeader(http.StatusOK)
			return
		case op.Streaming || op.MaxUpload > 0:
			var closeStream func()
			if closeStream, err = s.openStream(as.Caller); err == nil {
				defer closeStream()
				ctx, cancel := s.stream(res, r)
				defer cancel()
				bounded = r.WithContext(ctx)
				if op.MaxUpload > 0 {
					if err = as.Enter(ctx, s.uploads); err == nil {
						defer as.Leave()
						bounded.Body, err = upload(res, r, op)
					}
					if err == nil && op.Streaming {
						var end func()
						if end, err = fullDuplex(res, r); err == nil {
							defer end()
						}
					}
				}
			}
		default:
			var leave func()
			if leave, err = s.entrance.enter(bounded, as); err == nil {
				defer leave()
			}
		}
		r = bounded
		switch {
		case err != nil:
		case op.Idempotent && op.Streaming:
			if err = s.repeatable(res, r); err == nil {
				next.ServeHTTP(w, r)
			}
		case op.Idempotent:
			err = s.idempotent(res, r, op, next)
		default:
			next.ServeHTTP(w, r)
		}
		if err != nil {
			s.Fail(w, r, err)
		}
	})
}

// isVisible reports whether text is 1 to 255 visible ASCII characters.
func isVisible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= 255
}

// admit decides whether a request may have its operation at all.
func (s *Server) admit(res *response, r *http.Request, op Operation) error {
	tenant, err := s.tenant(r)
	if err != nil {
		return err
	}
	res.Tenant = tenant
	if strings.HasPrefix(tenant.BaseURL, "https://") {
		res.Header()["Strict-Transport-Security"] = transport
	}
	switch {
	case !s.serves(tenant): // RFC 9110 §15.5.20
		return &Error{Status: http.StatusMisdirectedRequest, Code: "tenant_elsewhere", Message: "this server does not serve the tenant"}
	case tenant.State == controlplane.TenantDecommissioned:
		return &Error{Status: http.StatusGone, Code: "tenant_decommissioned", Message: "the tenant was decommissioned"}
	case tenant.State == controlplane.TenantSuspended && !strings.HasPrefix(op.Path, "/.well-known/"):
		return &Error{Status: http.StatusForbidden, Code: "tenant_suspended", Message: "the tenant is suspended"}
	case tenant.State == controlplane.TenantProvisioning && !strings.HasPrefix(op.Path, "/.well-known/"):
		return Unavailable("the tenant is being set up", time.Second)
	}
	if err := s.limitAddress(res, r, op.RateLimit); err != nil {
		return err
	}
	if op.Scope != "" || op.AnyScope {
		if err := s.authorize(res, r, op); err != nil {
			return err
		}
		if res.Principal == nil {
			return nil
		}
		if err := s.limitCaller(res, r, op.RateLimit); err != nil {
			return err
		}
	}
	if op.MediaType != "" && !(op.BodyOptional && r.ContentLength == 0) && !hasMediaType(r, op.MediaType) {
		return &Error{
			Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Message: "the body must be " + op.MediaType,
		}
	}
	return nil
}

// tenant returns the tenant of the host. Other headers, which a proxy or a client can set, are
// ignored.
func (s *Server) tenant(r *http.Request) (controlplane.Tenant, error) {
	host := Host(r)
	if s.dev && isLoopback(host) {
		tenant, err := s.tenants.FirstTenant(r.Context())
		return tenant, tenantError(err)
	}
	tenant, err := s.tenants.TenantByHost(r.Context(), host)
	return tenant, tenantError(err)
}

// Host returns the host that a request is for, without port.
func Host(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

func tenantError(err error) error {
	if errors.Is(err, controlplane.ErrTenantNotFound) {
		return &Error{Status: http.StatusNotFound, Code: "tenant_not_found", Message: "no tenant has this host"}
	}
	return err
}

func isLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// SessionCookie is the cookie with the token of a browser's session. Its prefix binds it to one
// host (RFC 6265bis §4.1.3.2).
const SessionCookie = "__Host-sid"

// credentials returns the token of a request and its scheme: a bearer token (RFC 6750), in a form
// or the session cookie where the operation accepts them, or a token that is bound to a key (RFC
// 9449), which no form can have; empty if there is none.
func (s *Server) credentials(res *response, r *http.Request, op Operation) (scheme, raw string, err error) {
	header := r.Header["Authorization"]
	if op.FormToken && hasMediaType(r, formType) {
		raw, err := formToken(res, r)
		if err != nil || raw != "" && len(header) == 0 {
			return protocol.TokenTypeBearer, raw, err
		}
		if raw != "" {
			return "", "", res.invalidTokenRequest("the request has a token in the Authorization header and in the form")
		}
	}
	if len(header) == 0 {
		cookie, err := r.Cookie(SessionCookie)
		if err != nil || !op.Cookie {
			return "", "", nil
		}
		return protocol.TokenTypeBearer, cookie.Value, s.fromHere(r)
	}
	named, raw, _ := strings.Cut(header[0], " ")
	scheme = protocol.TokenTypeBearer
	if strings.EqualFold(named, protocol.TokenTypeDPoP) {
		scheme = protocol.TokenTypeDPoP
	}
	if len(header) > 1 || !strings.EqualFold(named, scheme) || raw == "" {
		return "", "", res.invalidToken(scheme, token.Malformed)
	}
	return scheme, raw, nil
}

const (
	formType = "application/x-www-form-urlencoded"
	// maxTokenForm bounds the size of a form with a token, in bytes.
	maxTokenForm = 64 << 10
)

// formToken returns the token in the form of a request; empty if there is none.
func formToken(res *response, r *http.Request) (string, error) {
	body, err := io.ReadAll(http.MaxBytesReader(res, r.Body, maxTokenForm))
	if err != nil {
		return "", BodyError(err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["access_token"]) > 1 {
		return "", res.invalidTokenRequest("the body is not a form with at most one access_token")
	}
	return form.Get("access_token"), nil
}

// fromHere refuses requests that another site made the browser send: cookies are sent with them.
func (s *Server) fromHere(r *http.Request) error {
	if err := s.sameOrigin.Check(r); err != nil {
		return &Error{Status: http.StatusForbidden, Code: "permission_denied", Message: "the request comes from another site", Details: Details{"required_scope": nil}}
	}
	return nil
}

func isSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// authorize verifies the token and the scope in it.
func (s *Server) authorize(res *response, r *http.Request, op Operation) error {
	scope := op.Scope
	scheme, token, err := s.credentials(res, r, op)
	if err != nil || token == "" && op.Anonymous {
		return err
	}
	if token == "" {
		return &Error{
			Status: http.StatusUnauthorized, Code: "unauthenticated", Message: "an access token is required",
			Header: res.challenge(protocol.TokenTypeBearer, ""),
		}
	}
	principal, err := s.verify(res, r, scheme, token)
	if err != nil {
		return err
	}
	if principal.MustEnrol && !op.Enrolling {
		return StepUpRequired(&res.RequestInfo, 0, true)
	}
	// A token that was exchanged for a narrower one has not all the roles of its subject.
	if op.AnyScope && len(principal.Ancestors) > 0 {
		return &Error{Status: http.StatusForbidden, Code: "permission_denied", Message: "exchanged tokens cannot be used for this operation"}
	}
	// A delegated token gives access neither to the subject's own account and ways to sign in nor
	// to its roles.
	if principal.Acting() && (op.Tag == "auth" || op.Tag == "me" && !isSafe(r.Method) || op.AnyScope) {
		return &Error{
			Status: http.StatusForbidden, Code: "permission_denied", Message: "delegated tokens cannot be used for this operation; it requires a token of the user without act",
			Details: Details{"required_scope": nil},
		}
	}
	// A session that was opened from the control plane is for the console. It changes neither the account
	// nor the ways to sign in, and gives no application anything; it can only end.
	if principal.Opened && (op.Tag == "auth" || op.Tag == "me" || op.AnyScope) && !isSafe(r.Method) && op.Path != SignOutPath {
		return OpenedOnly()
	}
	if !op.AnyScope && !op.Related && !principal.Scopes.Has(scope) {
		return res.insufficientScope(scheme, scope)
	}
	res.Principal = principal
	return nil
}

// SignOutPath is the path of the operation that ends the session of a request.
const SignOutPath = "/api/v1/auth/logout"

// OpenedOnly is the error of a request that needs more than a session in the console that was opened
// from the control plane.
func OpenedOnly() *Error {
	return &Error{
		Status: http.StatusForbidden, Code: "permission_denied", Message: "this session was opened from the control plane and is for the console only; sign out to use an account of this tenant",
		Details: Details{"required_scope": nil, "reason": "opened_from_control_plane"},
	}
}

// Authorize requires a token with a scope and counts the request against the limit of its
// caller, as the pipeline does for operations with a scope. It is for an operation that must
// first find out whether it is enabled.
func (s *Server) Authorize(w http.ResponseWriter, r *http.Request, scope string, family ratelimit.Family) error {
	res := w.(*response)
	if err := s.authorize(res, r, Operation{Scope: scope}); err != nil {
		return err
	}
	return s.limitCaller(res, r, family)
}

// verify returns the principal of a token. A proof must name the tenant's own address and the
// path of the request line; headers that a client or a proxy can set are ignored.
func (s *Server) verify(res *response, r *http.Request, scheme, raw string) (principal *token.Principal, err error) {
	tenant := protocol.Tenant{ID: res.Tenant.ID, BaseURL: res.Tenant.BaseURL}
	if scheme == protocol.TokenTypeDPoP {
		principal, err = s.verifier.VerifyBound(r.Context(), tenant, raw, dpop.Request{
			Proofs: r.Header.Values(dpop.Header), Method: res.request.Method, URL: tenant.BaseURL + r.URL.EscapedPath(),
			OfferNonce: func(nonce string) { res.Header().Set(dpop.NonceHeader, nonce) },
		})
	} else if res.certificates != nil {
		principal, err = s.verifier.VerifyCertified(r.Context(), tenant, raw, res.certificateThumbprint)
	} else {
		principal, err = s.verifier.Verify(r.Context(), tenant, raw)
	}
	if err == nil {
		return principal, nil
	}
	if refused, ok := errors.AsType[*token.Error](err); ok {
		return nil, res.invalidToken(scheme, refused.Reason)
	}
	if refused, ok := errors.AsType[*dpop.Error](err); ok {
		return nil, res.invalidProof(refused.Reason)
	}
	return nil, err
}

// StepUpRequired is the error that requires a second factor no older than maxAge, or of any age
// if that is 0 (RFC 9470). enrol means that the user has none and must add one.
func StepUpRequired(info *RequestInfo, maxAge time.Duration, enrol bool) *Error {
	challenge := `, error="insufficient_user_authentication", acr_values="aal2"`
	details := Details{
		"required_aal": 2, "acr_values": "aal2", "max_age": nil, "enrolment_required": enrol, "sign_in_required": false, "step_up_url": info.Tenant.BaseURL + "/api/v1/auth/step-up/begin",
	}
	if maxAge > 0 {
		details["max_age"] = int(maxAge.Seconds())
		challenge += fmt.Sprintf(`, max_age=%d`, int(maxAge.Seconds()))
	}
	return &Error{
		Status: http.StatusUnauthorized, Code: "insufficient_user_authentication", Message: "a recent second factor is required",
		Details: details, Header: info.challenge(info.scheme(), challenge),
	}
}

func hasMediaType(r *http.Request, want string) bool {
	header := r.Header.Get("Content-Type")
	if header == want {
		return true
	}
	got, _, err := mime.ParseMediaType(header)
	if kind, ok := strings.CutSuffix(want, "*"); ok { // a range (RFC 9110 §12.5.1)
		return err == nil && strings.HasPrefix(got, kind)
	}
	return err == nil && got == want
}

// unescapeVariables decodes the variables of a path. The router matches the
// path as it was sent, so that an escaped slash separates nothing.
func unescapeVariables(r *http.Request) error {
	vars := mux.Vars(r)
	for name, value := range vars {
		text, err := url.PathUnescape(value)
		if err != nil {
			return ValidationFailed(FieldError{name, "escape_invalid", name + " is not validly percent-encoded"})
		}
		vars[name] = text
	}
	return nil
}
