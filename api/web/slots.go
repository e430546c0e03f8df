package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"stonetown/internal/fair"
)

// Three resources are bounded: concurrent requests, and so their memory, because a decoded
// body takes many times the memory of a queued request; the bytes of bodies of requests that
// are incomplete or queued; and open streams. A tenant and a caller have a share of each.

// streamsRetryAfter is the Retry-After of a stream that was refused. Streams are open for a
// long time.
const streamsRetryAfter = 10 * time.Second

// share returns a percentage of a number, at least 1.
func share(percent int, of int64) int64 { return max(1, (of*int64(percent)+99)/100) }

// limits returns the limits of a resource, given the limit of the whole service.
func (c *Config) limits(service int64) fair.Limits {
	return fair.Limits{Service: service, Tenant: share(c.TenantShare, service), Caller: share(c.CallerShare, service)}
}

// callerOf returns the caller of a request: the subject of the token, or else the address.
func callerOf(res *response) fair.Caller {
	if res.Principal != nil {
		return fair.Caller{Tenant: res.Tenant.ID, ID: res.Principal.Subject}
	}
	return fair.Caller{Tenant: res.Tenant.ID, ID: addressKey(res.ClientIP)}
}

// exhausted is the response when a share is used up. Its details name the share, which
// is that of the service or of the tenant or caller itself.
func exhausted(e *fair.ExhaustedError) *Error {
	u := Unavailable(e.Error(), e.RetryAfter)
	u.Details = Details{"resource": e.Of, "share": e.Share, "limit": e.Limit}
	return u
}

// entrance admits requests when their bodies have arrived, so slow clients take no places. The
// bytes that have arrived until then are bounded as well.
type entrance struct {
	working  *fair.Gate
	received *fair.Shares // bytes of bodies
}

// enter waits for the place of a request. leave releases it.
func (e *entrance) enter(r *http.Request, as *fair.Request) (leave func(), err error) {
	if r.ContentLength == 0 {
		return as.Leave, as.Enter(r.Context(), e.working)
	}
	b := &waitingBody{ReadCloser: r.Body, entrance: e, ctx: r.Context(), as: as}
	r.Body = b
	return b.leave, nil
}

// waitingBody is a body that takes a place when it has been read to its end.
type waitingBody struct {
	io.ReadCloser
	entrance *entrance
	ctx      context.Context
	as       *fair.Request
	received int64 // bytes that count while the request has no place
	entered  bool
}

func (b *waitingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.entered {
		return n, err
	}
	if err := b.entrance.received.Take(b.as.Caller, int64(n)); err != nil {
		return n, err
	}
	b.received += int64(n)
	if err == io.EOF {
		if err := b.as.Enter(b.ctx, b.entrance.working); err != nil {
			return n, err
		}
		b.entered = true
		b.forget()
	}
	return n, err
}

func (b *waitingBody) forget() {
	b.entrance.received.Give(b.as.Caller, b.received)
	b.received = 0
}

func (b *waitingBody) leave() {
	b.forget()
	b.as.Leave()
}

// newUploads returns the gate of uploads. Reading one keeps a processor busy, so few of a tenant
// are read at the same time, and others are queued.
func newUploads() *fair.Gate {
	return fair.NewGate("uploads", fair.Limits{Service: 64, Tenant: int64(fair.HeavyPlaces())}, fair.Queue{})
}

// openStream counts a stream until close is called. It never waits.
func (s *Server) openStream(c fair.Caller) (closeStream func(), err error) {
	if err := s.streams.Take(c, 1); err != nil {
		if e, ok := errors.AsType[*fair.ExhaustedError](err); ok {
			e.RetryAfter = streamsRetryAfter
		}
		return nil, err
	}
	return func() { s.streams.Give(c, 1) }, nil
}
