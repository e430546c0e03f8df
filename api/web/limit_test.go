package web

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"stonetown/internal/ratelimit"
)

// Requests count against the limit of their address, then against that of their caller.
func TestLimits(t *testing.T) {
	f := newFixture(t, nil, things...)
	byIP, byCaller := ratelimit.Counted{Family: ratelimit.Admin, By: ratelimit.IP}, ratelimit.Counted{Family: ratelimit.Admin, By: ratelimit.Caller}
	f.limit[byIP] = ratelimit.Limit{Requests: 10, Window: time.Minute}
	f.limit[byCaller] = ratelimit.Limit{Requests: 5, Window: time.Minute}
	var taken []ratelimit.Bucket
	limited := map[ratelimit.Counted]bool{}
	f.take = func(b ratelimit.Bucket) (ratelimit.Decision, error) {
		taken = append(taken, b)
		return ratelimit.Decision{Limited: limited[b.Counted], Remaining: 3, Reset: 90 * time.Second, RetryAfter: 1100 * time.Millisecond}, nil
	}
	a := f.do("GET", "/things", "app", "")
	want(t, "admitted", a, 200, "")
	if len(taken) != 2 || taken[0].Counted != byIP || taken[0].Key != "192.0.2.1" || taken[1].Counted != byCaller || taken[1].Key != "client_1" || taken[1].Tenant != "tnt_a" {
		t.Errorf("counted %+v", taken)
	}
	if h := a.Header(); h.Get("RateLimit-Policy") != `"admin.caller";q=5;w=60` || h.Get("RateLimit") != `"admin.caller";r=3;t=90` {
		t.Errorf("fields %v", h)
	}
	limited[byCaller] = true
	a = f.do("GET", "/things", "app", "")
	want(t, "caller", a, 429, "rate_limited")
	if a.Header().Get("Retry-After") != "2" || a.detail("limit") != 5.0 || a.detail("family") != "admin" {
		t.Errorf("%v %s", a.Header(), a.Body)
	}
	limited[byIP] = true
	taken = nil
	want(t, "address", f.do("GET", "/things", "other", ""), 429, "rate_limited")
	if len(taken) != 1 {
		t.Errorf("the token of a refused address was counted: %+v", taken)
	}
	// A tenant's own limits take precedence.
	tenant := f.tenants["a.test"]
	tenant.RateLimits = ratelimit.Limits{byIP: {}, byCaller: {}}
	f.tenants["a.test"] = tenant
	want(t, "unlimited tenant", f.do("GET", "/things", "app", ""), 200, "")
}

// Without the database, requests with a token are admitted, and guesses are not.
func TestLimitsWithoutDatabase(t *testing.T) {
	guess := route{op: Operation{ID: "guess", Method: "POST", Path: "/guess", RateLimit: ratelimit.SignIn}, do: ok}
	f := newFixture(t, nil, append([]route{guess}, things...)...)
	f.limit[ratelimit.Counted{Family: ratelimit.Admin, By: ratelimit.Caller}] = ratelimit.Limit{Requests: 1, Window: time.Minute}
	f.limit[ratelimit.Counted{Family: ratelimit.SignIn, By: ratelimit.IP}] = ratelimit.Limit{Requests: 1, Window: time.Minute}
	f.take = func(ratelimit.Bucket) (ratelimit.Decision, error) {
		return ratelimit.Decision{}, errors.New("no database")
	}
	want(t, "with a token", f.do("GET", "/things", "app", ""), 200, "")
	want(t, "guess", f.do("POST", "/guess", "", ""), 500, "internal_error")
	if !strings.Contains(f.log.String(), "request not counted") {
		t.Error("that the request was not counted is not logged")
	}
}

// Operations without a token can count a client that they authenticate themselves.
func TestLimitClient(t *testing.T) {
	var f *fixture
	f = newFixture(t, nil, route{op: Operation{ID: "token", Method: "POST", Path: "/token"}, do: func(w http.ResponseWriter, r *http.Request) {
		if err := f.server.LimitClient(r.Context(), w, ratelimit.Token, "client_1"); err != nil {
			f.server.Fail(w, r, err)
		}
	}}, route{op: Operation{ID: "late", Method: "POST", Path: "/late"}, do: func(w http.ResponseWriter, r *http.Request) {
		if err := f.server.Authorize(w, r, "things:write", ratelimit.Admin); err != nil {
			f.server.Fail(w, r, err)
		}
	}})
	var key string
	f.limit[ratelimit.Counted{Family: ratelimit.Token, By: ratelimit.Caller}] = ratelimit.Limit{Requests: 1, Window: time.Minute}
	f.take = func(b ratelimit.Bucket) (ratelimit.Decision, error) {
		key = b.Key
		return ratelimit.Decision{Limited: true}, nil
	}
	a := f.do("POST", "/token", "", "")
	want(t, "client", a, 429, "rate_limited")
	if key != "client_1" || a.Header().Get("Retry-After") != "1" {
		t.Errorf("counted %q, %v", key, a.Header())
	}
	want(t, "authorized late", f.do("POST", "/late", "app", ""), 200, "")
	want(t, "refused late", f.do("POST", "/late", "user", ""), 403, "insufficient_scope")
}
