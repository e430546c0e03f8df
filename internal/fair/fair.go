// Package fair shares the scarce resources of a process among tenants and, within a
// tenant, among callers, so that none of them can use up a resource.
//
// [Shares] counts the use of a resource in total, by tenant and by caller. Each of the
// three has a limit. A request that would exceed one is refused with an
// [*ExhaustedError] that names it.
//
// A [Gate] bounds concurrent work. Requests that cannot be admitted are queued. A free
// place goes to the next tenant in the queue, and within a tenant to its next caller: a
// thousand queued requests of one caller delay another caller by one request, not by a
// thousand. A gate can bound its queue, and refuses a request at once that would wait
// longer than the gate's patience.
//
// A [Request] carries the caller, and the place that its request holds, in a context.
// Work that is queued at another gate releases that place meanwhile, see [Aside].
package fair

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Caller identifies the holder of a share.
type Caller struct {
	Tenant string
	ID     string // within the tenant: the subject of a token, or an address
}

// Share is a part of a resource with a limit of its own.
type Share string

const (
	OfService Share = "service" // all that the process has
	OfTenant  Share = "tenant"
	OfCaller  Share = "caller"
)

// ExhaustedError: a share is used up.
type ExhaustedError struct {
	Of         string // the resource, in the plural: streams
	Share      Share
	Limit      int64
	RetryAfter time.Duration // an estimate; 0: none
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("too many %s: the limit of the %s is %d", e.Of, e.Share, e.Limit)
}

// Limits are how much may be held at the same time; 0 means no limit.
type Limits struct{ Service, Tenant, Caller int64 }

// Shares counts the use of a resource. It is safe for concurrent use.
type Shares struct {
	of     string
	limits Limits

	mu      sync.Mutex
	held    int64
	tenants map[string]int64
	callers map[Caller]int64
}

// NewShares returns shares of something, named in the plural, of which nothing is held.
func NewShares(of string, l Limits) *Shares {
	return &Shares{of: of, limits: l, tenants: map[string]int64{}, callers: map[Caller]int64{}}
}

// Take adds n to the use of a caller, or fails with [*ExhaustedError].
func (s *Shares) Take(c Caller, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if share := s.lacking(c, n); share != "" {
		return s.exhausted(share)
	}
	s.take(c, n)
	return nil
}

// Give subtracts n from the use of a caller.
func (s *Shares) Give(c Caller, n int64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(c, -n)
}

// lacking names a share that does not allow n more, the narrowest first; empty if all
// do. mu is held.
func (s *Shares) lacking(c Caller, n int64) Share {
	l := &s.limits
	switch {
	case l.Caller > 0 && s.callers[c]+n > l.Caller:
		return OfCaller
	case l.Tenant > 0 && s.tenants[c.Tenant]+n > l.Tenant:
		return OfTenant
	case l.Service > 0 && s.held+n > l.Service:
		return OfService
	}
	return ""
}

func (s *Shares) exhausted(share Share) *ExhaustedError {
	limit := map[Share]int64{OfCaller: s.limits.Caller, OfTenant: s.limits.Tenant, OfService: s.limits.Service}[share]
	return &ExhaustedError{Of: s.of, Share: share, Limit: limit}
}

// take adds n, which may be negative. Callers that use nothing have no entry.
func (s *Shares) take(c Caller, n int64) {
	s.held += n
	if s.limits.Tenant > 0 {
		add(s.tenants, c.Tenant, n)
	}
	if s.limits.Caller > 0 {
		add(s.callers, c, n)
	}
}

func add[K comparable](counts map[K]int64, key K, n int64) {
	if n += counts[key]; n == 0 {
		delete(counts, key)
	} else {
		counts[key] = n
	}
}

// Request is the caller of a request and the place that the request holds. It is not safe for
// concurrent use.
type Request struct {
	Caller Caller
	// Patient: it is work in the background, which waits as long as it has to.
	Patient bool

	gate  *Gate
	place Place
}

type contextKey struct{}

// Key is the key of a [*Request] in a context, for contexts with a Value method of
// their own.
var Key any = contextKey{}

// NewContext returns a context that carries a request.
func NewContext(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, Key, r)
}

// From returns the request of a context, or one without a caller.
func From(ctx context.Context) *Request {
	if r, ok := ctx.Value(Key).(*Request); ok {
		return r
	}
	return &Request{}
}

// Enter takes a place at a gate for the request, as [Gate.Enter] does.
func (r *Request) Enter(ctx context.Context, g *Gate) error {
	place, err := r.Wait(ctx, g)
	if err == nil {
		r.gate, r.place = g, place
	}
	return err
}

// Wait waits for a place at another gate than the one that the request has entered. The caller
// must release the place.
func (r *Request) Wait(ctx context.Context, g *Gate) (Place, error) {
	return g.enter(ctx, r.Caller, !r.Patient)
}

// Leave releases the request's place, if it has one.
func (r *Request) Leave() {
	if r.gate != nil {
		r.place.Leave()
		r.gate = nil
	}
}

// Aside runs work while the request of ctx holds no place, and then enters the gate again. It
// fails if that fails.
func Aside(ctx context.Context, work func() error) error {
	r := From(ctx)
	gate := r.gate
	if gate == nil {
		return work()
	}
	r.Leave()
	if err := work(); err != nil {
		return err
	}
	return r.Enter(ctx, gate)
}
