// Package web runs the HTTP requests of all operations through the same steps, so that no
// operation can omit one.
//
// A request passes, in this order: its id and the headers of every response;
// which web origins may read it (CORS); the route; the tenant of its host and
// whether that tenant is served; the limit of its address; the bearer token and
// the scope; the limit of its caller; the media type; a place among the concurrent requests;
// its idempotency key; the handler. What an operation requires ([Operation]) comes from the
// OpenAPI document, so a new operation needs its lines there and a handler that maps the
// request to a call of the domain. Handlers return errors. One function ([Server.Fail]) turns
// an error into a response, and logs internal errors. The response to an internal error
// contains only the request id, under which the log has the cause.
//
// JSON is read strictly (RFC 8259 and I-JSON, RFC 7493: no repeated names, no
// broken UTF-8) and within limits; see [DecodeJSON].
package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/cors"

	"stonetown/controlplane"
	"stonetown/internal/fair"
	"stonetown/internal/idempotency"
	"stonetown/internal/ratelimit"
	"stonetown/internal/tracing"
	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// Tenants finds the tenant that a request is for.
type Tenants interface {
	// TenantByHost returns the tenant that is served on a host, given without
	// port, or [controlplane.ErrTenantNotFound].
	TenantByHost(ctx context.Context, host string) (controlplane.Tenant, error)
	// FirstTenant returns the oldest tenant, or [controlplane.ErrTenantNotFound].
	FirstTenant(ctx context.Context) (controlplane.Tenant, error)
}

// Verifier accepts or refuses access tokens.
type Verifier interface {
	// Verify returns the principal of a bearer token. A [*token.Error] means that
	// the token is not valid for the tenant; any other error is internal.
	Verify(ctx context.Context, t protocol.Tenant, bearer string) (*token.Principal, error)
	// VerifyBound does so for a token that is bound to a key. A [*dpop.Error] means that
	// the request has no valid proof of the key.
	VerifyBound(ctx context.Context, t protocol.Tenant, token string, r dpop.Request) (*token.Principal, error)
	// VerifyCertified is Verify on a connection with the certificate of a client, whose thumbprint
	// certificate returns; empty if it is not valid.
	VerifyCertified(ctx context.Context, t protocol.Tenant, bearer string, certificate func() string) (*token.Principal, error)
}

// Limits counts requests; [ratelimit.Limiter] implements it.
type Limits interface {
	// Limit returns the limit of a tenant, whose own limits take precedence. The zero Limit
	// admits every request.
	Limit(own ratelimit.Limits, c ratelimit.Counted) ratelimit.Limit
	// Take counts a request.
	Take(ctx context.Context, b ratelimit.Bucket, l ratelimit.Limit) (ratelimit.Decision, error)
}

// Config configures a [Server]. Its first part is required.
type Config struct {
	Tenants  Tenants
	Verifier Verifier
	// Idempotency stores the responses to requests with idempotency keys.
	Idempotency *idempotency.Store
	// Limits counts requests.
	Limits Limits
	// Origins decides which web origins may read responses.
	Origins Origins
	Logger  *slog.Logger
	Metrics prometheus.Registerer

	// Timeout bounds the work on one request, the reading of its body excluded.
	// Default: 30 seconds.
	Timeout time.Duration
	// MaxWorking is the number of concurrent requests; others are queued for at most
	// Timeout. Default: 256.
	MaxWorking int
	// MaxReceiving is the size in bytes of all request bodies that are incomplete or
	// queued; further requests are refused. Default: 256 MiB.
	MaxReceiving int64
	// MaxStreams is the number of open streams; more are refused. Default: 1,000.
	MaxStreams int
	// TenantShare and CallerShare are the shares of these three that one tenant and one
	// of its callers may hold, in percent. Default: 50 and 25.
	TenantShare, CallerShare int
	// TrustedProxies are the proxies whose X-Forwarded-For is accepted. Limits of
	// addresses apply to the address in it. Default: none.
	TrustedProxies []netip.Prefix
	// ClientCertHeader is the header field in which trusted proxies pass the certificate of a client
	// (package mtls). Of other peers it is dropped. Default: certificates are not accepted.
	ClientCertHeader string
	// Serves reports whether this process serves a tenant. Requests for others are refused with
	// 421, so that a proxy that routes by tenant notices its mistake. Default: it serves all.
	Serves func(controlplane.Tenant) bool
	// Dev serves the first tenant on localhost and loopback addresses.
	Dev bool
	// Stopping ends when the server begins to stop; streams end with it.
	// Default: never.
	Stopping context.Context

	// Tracer records a span for each request. Default: none.
	Tracer *tracing.Tracer
	// AccessLog logs each request at info level instead of debug.
	AccessLog bool
}

// Server runs requests. It is safe for concurrent use.
type Server struct {
	tenants  Tenants
	verifier Verifier
	log      *slog.Logger
	timeout  time.Duration
	trusted  []netip.Prefix
	certs    string // header field with the certificate of a client; empty: none
	serves   func(controlplane.Tenant) bool
	dev      bool
	stopping context.Context
	duration *prometheus.HistogramVec
	tracer   *tracing.Tracer
	access   bool // requests are logged at info level
	entrance *entrance
	streams  *fair.Shares
	uploads  *fair.Gate
	encoders *fair.Threads // of long lists

	idempotency *idempotency.Store
	limits      Limits
	origins     Origins
	cors        *cors.Cors
	sameOrigin  *http.CrossOriginProtection
}

// New returns a server and registers its metrics.
func New(c Config) (*Server, error) {
	if c.Tenants == nil || c.Verifier == nil || c.Idempotency == nil || c.Limits == nil || c.Origins == nil || c.Logger == nil || c.Metrics == nil {
		return nil, errors.New("web: Config.Tenants, Verifier, Idempotency, Limits, Origins, Logger and Metrics are required")
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.MaxWorking == 0 {
		c.MaxWorking = 256
	}
	if c.MaxReceiving == 0 {
		c.MaxReceiving = 256 << 20
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 1000
	}
	if c.TenantShare == 0 {
		c.TenantShare = 50
	}
	if c.CallerShare == 0 {
		c.CallerShare = 25
	}
	if c.Serves == nil {
		c.Serves = func(controlplane.Tenant) bool { return true }
	}
	if c.Stopping == nil {
		c.Stopping = context.Background()
	}
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                        "stonetown_http_request_duration_seconds",
		Help:                        "Time from the first byte of a request's head to the end of its response.",
		NativeHistogramBucketFactor: 1.1,
		Buckets:                     []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"operation", "status"})
	if err := c.Metrics.Register(duration); err != nil {
		return nil, err
	}
	s := &Server{
		tenants: c.Tenants, verifier: c.Verifier, log: c.Logger, timeout: c.Timeout,
		trusted: c.TrustedProxies, certs: c.ClientCertHeader, serves: c.Serves, dev: c.Dev, stopping: c.Stopping, duration: duration, tracer: c.Tracer, access: c.AccessLog,
		entrance: &entrance{
			working:  fair.NewGate("concurrent requests", c.limits(int64(c.MaxWorking)), fair.Queue{}),
			received: fair.NewShares("bytes of incomplete request bodies", c.limits(c.MaxReceiving)),
		},
		uploads:     newUploads(),
		streams:     fair.NewShares("streams", c.limits(int64(c.MaxStreams))),
		encoders:    fair.NewThreads(fair.HeavyPlaces(), c.Stopping.Done()),
		idempotency: c.Idempotency, limits: c.Limits, origins: c.Origins,
	}
	s.cors = newCORS(s)
	s.sameOrigin = http.NewCrossOriginProtection()
	return s, nil
}

// Operation describes an operation, as the OpenAPI document does.
type Operation struct {
	ID, Method, Path string
	Tag              string
	// Scope is required of the access token. Empty: the operation is public, or AnyScope.
	Scope string
	// AnyScope operations require an access token and none of its scopes, because the roles of
	// the caller decide. They do not accept delegated tokens.
	AnyScope bool
	// Related operations also accept tokens without the scope: their subject may have a
	// relation to the object of the operation. The handler must decide, and refuse with
	// [InsufficientScope].
	Related bool
	// Anonymous operations also accept requests without a token.
	Anonymous bool
	// Cookie operations accept the session cookie of the tenant's own pages as token.
	Cookie bool
	// FormToken operations accept the token in a form (RFC 6750 §2.2), which they do not read
	// themselves.
	FormToken bool
	// Page marks a hosted page. It calls other operations, so it takes no place among
	// the concurrent requests itself.
	Page bool
	// CrossSite pages accept forms that other sites post. They must not act on the cookies.
	CrossSite bool
	// Effects marks a GET that may change state. HEAD is answered without running the
	// handler, because programs that preview links send HEAD.
	Effects bool
	// Enrolling operations are open to users who must add a second factor first.
	Enrolling bool
	// MediaType is the media type of the request body; empty: there is no body.
	MediaType string
	// BodyOptional operations accept requests without a body and media type.
	BodyOptional bool
	// Idempotent operations accept an Idempotency-Key.
	Idempotent bool
	// Streaming operations have a response without end. They require a scope.
	Streaming bool
	// MaxUpload is the limit of a body that the handler reads as a stream, in bytes; 0:
	// the body is read before the handler runs.
	MaxUpload int64
	// RateLimit is the family of limits that requests count against.
	RateLimit ratelimit.Family
}

// ErrorFormat defines the error responses of a group of operations.
type ErrorFormat struct {
	// Translate returns the response to a domain error, or nil for errors that are not
	// of the domain.
	Translate func(error) *Error
	// Body returns status and body of an error response; nil means [Error.Body].
	Body func(e *Error, requestID string) (status int, body any)
	// Render, if not nil, writes the response instead of Body.
	Render func(w http.ResponseWriter, e *Error, info *RequestInfo)
	// Header is part of every response, also of successful ones.
	Header http.Header
	// EchoRequestID returns the X-Request-Id of the request, if it has one, as
	// AuthZEN requires. The log has the server's own request id.
	EchoRequestID bool
}

// RequestInfo describes a request to its handler.
type RequestInfo struct {
	RequestID string
	Tenant    controlplane.Tenant
	Principal *token.Principal // nil for requests without a token
	ClientIP  netip.Addr
	// CommitID is the same for all attempts of a request with one Idempotency-Key;
	// empty without a key. A transaction that stores it is not executed twice
	// ([tuplestore.Write.CommitID]).
	CommitID string
	// RawQuery is the query of the URL as it was sent, which signatures cover.
	RawQuery string
	// UserAgent is the User-Agent header.
	UserAgent string

	// certificates are the values of the header field with the certificate of the client.
	certificates []string

	header  http.Header // of the response
	request *http.Request
}

// Query returns all parameters of the query, also those that the document does not declare.
func (info *RequestInfo) Query() url.Values { return info.request.URL.Query() }

// Cookie returns the value of a cookie of the request, or an empty string.
func (info *RequestInfo) Cookie(name string) string {
	cookie, err := info.request.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// AcceptLanguage returns the languages that the client prefers (RFC 9110 §12.5.4).
func (info *RequestInfo) AcceptLanguage() string { return info.request.Header.Get("Accept-Language") }

// Accept returns the media types that the client accepts (RFC 9110 §12.5.1).
func (info *RequestInfo) Accept() string {
	return strings.Join(info.request.Header.Values("Accept"), ",")
}

// SetCookie adds a cookie to the response.
func (info *RequestInfo) SetCookie(cookie *http.Cookie) {
	info.header.Add("Set-Cookie", cookie.String())
}

// SetSession sets the cookie with the token of the browser's session, until a time.
func (info *RequestInfo) SetSession(token string, until time.Time) {
	info.SetCookie(sessionCookie(token, int(time.Until(until).Seconds())))
}

// ForgetSession removes the cookie with the token of the browser's session.
func (info *RequestInfo) ForgetSession() { info.SetCookie(sessionCookie("", -1)) }

func sessionCookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: SessionCookie, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: maxAge}
}

// Warn adds a warning to the response, which clients show to their developers (RFC 7234 §5.5).
func (info *RequestInfo) Warn(text string) {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
	info.header.Add("Warning", `299 - "`+strings.Map(visible, quoted)+`"`)
}

// visible replaces control characters, which a quoted-string cannot have (RFC 9110 §5.6.4).
func visible(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

type infoKey struct{}

// InfoOf returns the request info of a handler's context.
func InfoOf(ctx context.Context) *RequestInfo { return ctx.Value(infoKey{}).(*RequestInfo) }

// response is the state of one request and the writer of its response.
type response struct {
	http.ResponseWriter
	RequestInfo
	operation string
	route     string // the template of the path; empty without an operation
	format    ErrorFormat
	status    int   // 0 until the head is written
	bytes     int64 // written of the body
	// held buffers the body of a response that is stored before it is sent; status and
	// header are kept as well.
	held *bytes.Buffer
	// lines is a response whose error is its last line; nil: it ends without one.
	lines    *Lines
	encoders *fair.Threads
}

func (res *response) WriteHeader(status int) {
	if res.status == 0 {
		res.status = status
	}
	if res.held == nil {
		res.ResponseWriter.WriteHeader(status)
	}
}

func (res *response) Write(b []byte) (int, error) {
	if res.status == 0 {
		res.status = http.StatusOK
	}
	if res.held != nil {
		return res.held.Write(b)
	}
	n, err := res.ResponseWriter.Write(b)
	res.bytes += int64(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (res *response) Unwrap() http.ResponseWriter { return res.ResponseWriter }
