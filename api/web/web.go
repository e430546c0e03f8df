// Package web is what all HTTP surfaces share, so that none of them can forget
// a step.
//
// A request passes, in this order: its id and the headers of every response;
// which web origins may read it (CORS); the route; the tenant of its host and
// whether that tenant is served; the limit of its address; the bearer token and
// the scope; the limit of its caller; the media type; a place among the requests that are worked on;
// its idempotency key; the handler. What an operation demands ([Operation]) comes from the OpenAPI
// document, so a new one takes its lines there, a call of the domain, and the
// mapping of both. Handlers return errors;
// one function ([Kit.Fail]) turns an error into a response, and logs it if it
// is the service's fault. The body of such a response is opaque: what went
// wrong inside is in the log, under the request id.
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
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/cors"

	"stonetown/controlplane"
	"stonetown/internal/fair"
	"stonetown/internal/idempotency"
	"stonetown/internal/ratelimit"
	"stonetown/internal/tracing"
	"stonetown/oauth"
	"stonetown/oauth/dpop"
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
	// Verify returns whom a token stands for that is good for whoever has it. An
	// [*oauth.TokenError] means that the token is not valid for the tenant, any
	// other error that nobody can tell.
	Verify(ctx context.Context, t oauth.Tenant, bearer string) (*oauth.Principal, error)
	// VerifyBound does so for a token that is bound to a key, of which the request has a
	// proof; a [*dpop.Error] means that it has not.
	VerifyBound(ctx context.Context, t oauth.Tenant, token string, r dpop.Request) (*oauth.Principal, error)
}

// Config is what a [Kit] works with. Tenants, Verifier, Logger and Metrics are
// required.
type Config struct {
	Tenants  Tenants
	Verifier Verifier
	Logger   *slog.Logger
	Metrics  prometheus.Registerer

	// Timeout bounds the work on one request, the reading of its body excluded.
	// Default: 30 seconds.
	Timeout time.Duration
	// MaxWorking is how many requests are worked on at the same time; others wait
	// for as long as Timeout. Default: 256.
	MaxWorking int
	// MaxReceiving is how many bytes of bodies may have arrived that wait for their
	// rest or to be worked on; those who send more are refused. Default: 256 MiB.
	MaxReceiving int64
	// MaxStreams is how many streams may be open; more are refused. Default: 1,000.
	MaxStreams int
	// TenantShare and CallerShare are how much of these three one tenant and one of its
	// callers may hold, in percent. Default: 50 and 25.
	TenantShare, CallerShare int
	// TrustedProxies may say in X-Forwarded-For whom they speak for. The address
	// is logged and decides nothing. Default: none.
	TrustedProxies []netip.Prefix
	// Dev serves the first tenant on localhost and loopback addresses.
	Dev bool
	// Stopping ends when the service is going to stop; streams end with it.
	// Default: never.
	Stopping context.Context

	// Tracer records a span for each request. Default: none.
	Tracer *tracing.Tracer
	// AccessLog logs each request at info level instead of debug.
	AccessLog bool
	// Idempotency keeps what was answered under idempotency keys. Default: keys
	// are ignored.
	Idempotency *idempotency.Store
	// Limits counts requests. Default: there are no limits.
	Limits *ratelimit.Limiter
	// Origins knows which web origins may read responses. Default: none.
	Origins Origins
}

// Kit runs requests. It is safe for concurrent use.
type Kit struct {
	tenants  Tenants
	verifier Verifier
	log      *slog.Logger
	timeout  time.Duration
	trusted  []netip.Prefix
	dev      bool
	stopping context.Context
	duration *prometheus.HistogramVec
	tracer   *tracing.Tracer
	access   bool // requests are logged at info level
	entrance *entrance
	streams  *fair.Shares
	uploads  *fair.Gate

	idempotency *idempotency.Store
	limits      *ratelimit.Limiter
	origins     Origins
	cors        *cors.Cors
	sameOrigin  *http.CrossOriginProtection
}

// New returns a kit and registers its metrics.
func New(c Config) (*Kit, error) {
	if c.Tenants == nil || c.Verifier == nil || c.Logger == nil || c.Metrics == nil {
		return nil, errors.New("web: Config.Tenants, Verifier, Logger and Metrics are required")
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
	k := &Kit{
		tenants: c.Tenants, verifier: c.Verifier, log: c.Logger, timeout: c.Timeout,
		trusted: c.TrustedProxies, dev: c.Dev, stopping: c.Stopping, duration: duration, tracer: c.Tracer, access: c.AccessLog,
		entrance: &entrance{
			working:  fair.NewGate("concurrent requests", c.limits(int64(c.MaxWorking)), fair.Queue{}),
			received: fair.NewShares("bytes of incomplete request bodies", c.limits(c.MaxReceiving)),
		},
		uploads:     newUploads(),
		streams:     fair.NewShares("streams", c.limits(int64(c.MaxStreams))),
		idempotency: c.Idempotency, limits: c.Limits, origins: c.Origins,
	}
	k.cors = newCORS(k)
	k.sameOrigin = http.NewCrossOriginProtection()
	return k, nil
}

// Operation is what the OpenAPI document says of an operation.
type Operation struct {
	ID, Method, Path string
	Tag              string
	// Scope is what the bearer token must carry; empty: no token is asked for.
	Scope string
	// Anonymous: who has no token is let in as well, as nobody.
	Anonymous bool
	// Cookie: the token may come as a cookie, from pages of the tenant's own.
	Cookie bool
	// Page: it is one for people, which asks other operations for what it does and takes
	// no place of its own.
	Page bool
	// Effects: the GET may change something, so HEAD is answered without asking it. Programs that
	// look where links lead send HEAD.
	Effects bool
	// Enrolling: who must add a second factor first may do this.
	Enrolling bool
	// MediaType is that of the request body; empty: there is none.
	MediaType string
	// BodyOptional: a request without a body needs no media type either.
	BodyOptional bool
	// Idempotent: the operation takes an Idempotency-Key.
	Idempotent bool
	// Streaming: the response goes on for as long as its reader likes. Only
	// operations with a scope do that.
	Streaming bool
	// MaxUpload: the body is one to be read as it comes, of at most so many bytes; 0
	// if it is an ordinary one.
	MaxUpload int64
	// RateLimit is the family of limits that requests count against.
	RateLimit ratelimit.Family
}

// Surface is how a family of operations speaks of errors.
type Surface struct {
	// Translate states a domain error as a response; nil if it does not know the
	// error.
	Translate func(error) *Error
	// Body is what is sent for an error; nil means [Error.Body].
	Body func(e *Error, requestID string) (status int, body any)
	// Render, if not nil, sends an error in the place of Body.
	Render func(w http.ResponseWriter, e *Error, call *Call)
	// Header is sent with every response.
	Header http.Header
	// EchoRequestID answers with the X-Request-Id of the request, if it has one,
	// where a protocol demands that. The log knows the request by its own.
	EchoRequestID bool
}

// Call is what is known of a request before its handler runs.
type Call struct {
	RequestID string
	Tenant    controlplane.Tenant
	Principal *oauth.Principal // nil where no token is asked for
	ClientIP  netip.Addr
	// CommitID is the same for all attempts at a request under one
	// Idempotency-Key; empty without one. Work that carries it into its
	// transaction is not done twice ([tuplestore.Write.CommitID]).
	CommitID string
	// UserAgent is what the client calls itself.
	UserAgent string

	header  http.Header // of the response
	request *http.Request
}

// Query is the query of the request, for operations to which it matters what else
// there is than what the document declares.
func (c *Call) Query() url.Values { return c.request.URL.Query() }

// Cookie is the value of a cookie of the request; empty if there is none.
func (c *Call) Cookie(name string) string {
	cookie, err := c.request.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// SetCookie sends a cookie with the response.
func (c *Call) SetCookie(cookie *http.Cookie) { c.header.Add("Set-Cookie", cookie.String()) }

type callKey struct{}

// CallOf returns the call that a handler's context belongs to.
func CallOf(ctx context.Context) *Call { return ctx.Value(callKey{}).(*Call) }

// exchange is the state of one request and the writer of its response.
type exchange struct {
	http.ResponseWriter
	Call
	operation string
	route     string // the template of the path; empty without an operation
	surface   Surface
	status    int   // 0 until the head is written
	bytes     int64 // of the body that were written
	// held takes the body while the response is kept back; the head stays in
	// status and in the header.
	held *bytes.Buffer
}

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	if x.held == nil {
		x.ResponseWriter.WriteHeader(status)
	}
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	if x.held != nil {
		return x.held.Write(b)
	}
	n, err := x.ResponseWriter.Write(b)
	x.bytes += int64(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
