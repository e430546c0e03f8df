package web

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"stonetown/internal/ratelimit"
)

// limitAddress counts a request against the limit of its address.
func (s *Server) limitAddress(res *response, r *http.Request, family ratelimit.Family) error {
	return s.limit(r.Context(), res, ratelimit.Counted{Family: family, By: ratelimit.IP}, addressKey(res.ClientIP))
}

// addressKey returns the address that is counted: of IPv6 the first 64 bits, because a client
// usually has a whole /64 network.
func addressKey(ip netip.Addr) string {
	if ip.Is6() {
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}

// limitCaller counts a request against the limit of its caller.
func (s *Server) limitCaller(res *response, r *http.Request, family ratelimit.Family) error {
	return s.limit(r.Context(), res, ratelimit.Counted{Family: family, By: ratelimit.Caller}, res.Principal.Subject)
}

// LimitClient counts a request of an authenticated client, to an operation without a token,
// against the limit of a user or client. The error is rate_limited.
func (s *Server) LimitClient(ctx context.Context, w http.ResponseWriter, family ratelimit.Family, key string) error {
	return s.limit(ctx, w.(*response), ratelimit.Counted{Family: family, By: ratelimit.Caller}, key)
}

// limit counts a request and sets the fields of draft-ietf-httpapi-ratelimit-headers.
func (s *Server) limit(ctx context.Context, res *response, c ratelimit.Counted, key string) error {
	limit := s.limits.Limit(res.Tenant.RateLimits, c)
	if limit == (ratelimit.Limit{}) {
		return nil
	}
	d, err := s.limits.Take(ctx, ratelimit.Bucket{Tenant: res.Tenant.ID, Counted: c, Key: key}, limit)
	if err != nil {
		if c.Family == ratelimit.Token || c.Family == ratelimit.SignIn {
			return fmt.Errorf("limit %s: %w", c, err) // guesses must stay limited
		}
		// Callers with a token are known. Without the database they are not limited, rather
		// than all refused.
		s.log.WarnContext(ctx, "request not counted", "request_id", res.RequestID, "counted", c, "error", err)
		return nil
	}
	window := int(limit.Window / time.Second)
	name := strconv.Quote(c.String())
	h := res.Header()
	h.Set("RateLimit-Policy", fmt.Sprintf("%s;q=%d;w=%d", name, limit.Requests, window))
	h.Set("RateLimit", fmt.Sprintf("%s;r=%d;t=%d", name, d.Remaining, seconds(d.Reset)))
	if !d.Limited {
		return nil
	}
	return &Error{
		Status: http.StatusTooManyRequests, Code: "rate_limited", Message: fmt.Sprintf("more than %d requests in %d seconds", limit.Requests, window),
		Details: Details{"limit": limit.Requests, "window_s": window, "family": c.Family},
		Header:  http.Header{"Retry-After": {strconv.Itoa(max(1, seconds(d.RetryAfter)))}},
	}
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// SlowDown returns the response to an attempt that exceeds a limit on one account.
func SlowDown(after time.Duration) *Error {
	seconds := max(1, int((after+time.Second-1)/time.Second))
	return &Error{
		Status: http.StatusTooManyRequests, Code: "rate_limited", Message: fmt.Sprintf("too many attempts; try again in %d seconds", seconds),
		Details: Details{"limit": 1, "window_s": seconds, "family": "account"},
		Header:  http.Header{"Retry-After": {strconv.Itoa(seconds)}},
	}
}
