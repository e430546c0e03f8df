package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"stonetown/internal/fair"
)

// Three things are bounded: the requests that are worked on at the same time, and with
// them the memory they take, since a body and what is decoded of it is many times what
// a waiting request takes; the bytes of bodies that have arrived for requests that are
// not worked on yet; and open streams. Of each, a tenant and a caller may hold a share.

// streamsRetryAfter is when to try again to open a stream: they are open for long.
const streamsRetryAfter = 10 * time.Second

// share is so many percent of a number, and not nothing.
func share(percent int, of int64) int64 { return max(1, (of*int64(percent)+99)/100) }

// limits are those of something of which the service has so much.
func (c *Config) limits(service int64) fair.Limits {
	return fair.Limits{Service: service, Tenant: share(c.TenantShare, service), Caller: share(c.CallerShare, service)}
}

// callerOf is on whose behalf a request is made: that of the token's subject, or else
// of the address it comes from.
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

// entrance is where requests take their places, when their bodies have arrived if
// they have one: whoever sends slowly keeps nobody else from being served. What has
// arrived until then is bounded as well.
type entrance struct {
	working  *fair.Gate
	received *fair.Shares // bytes of bodies
}

// enter lets a request wait for its place. leave gives back what it then has.
func (e *entrance) enter(r *http.Request, as *fair.Request) (leave func(), err error) {
	if r.ContentLength == 0 {
		return as.Leave, as.Enter(r.Context(), e.working)
	}
	b := &waitingBody{ReadCloser: r.Body, entrance: e, ctx: r.Context(), as: as}
	r.Body = b
	return b.leave, nil
}

// waitingBody is a body behind whose end a place waits.
type waitingBody struct {
	io.ReadCloser
	entrance *entrance
	ctx      context.Context
	as       *fair.Request
	received int64 // and not yet worked on
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

// newUploads admits uploads. Each keeps a processor busy while it is read, so few of a
// tenant are read at the same time, and the others wait.
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
