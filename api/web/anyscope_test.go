package web

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"stonetown/controlplane"
	"stonetown/oauth/token"
)

// Operations without a scope take every token of a subject, and none that stands for less than its
// subject.
func TestAnyScope(t *testing.T) {
	op := Operation{ID: "manage", Method: "POST", Path: "/things", AnyScope: true, Idempotent: true}
	runs := 0
	f := newFixture(t, nil, route{op: op, do: func(w http.ResponseWriter, r *http.Request) {
		runs++
		fmt.Fprint(w, InfoOf(r.Context()).Principal.Subject, runs)
	}})
	later := time.Now().Add(time.Hour)
	f.principals["weak"] = &token.Principal{Subject: "client_1", ClientID: "client_1", ExpiresAt: later}
	f.principals["exchanged"] = &token.Principal{Subject: "usr_1", ClientID: "client_1", Ancestors: make([]token.Ancestor, 1), ExpiresAt: later}

	want(t, "no token", f.do("POST", "/things", "", ""), 401, "unauthenticated")
	want(t, "no valid token", f.do("POST", "/things", "x", ""), 401, "invalid_token")
	want(t, "must enrol", f.do("POST", "/things", "enrol", ""), 401, "insufficient_user_authentication")
	want(t, "delegated", f.do("POST", "/things", "act", ""), 403, "permission_denied")
	want(t, "exchanged", f.do("POST", "/things", "exchanged", ""), 403, "permission_denied")
	if runs != 0 {
		t.Fatalf("the handler ran %d times", runs)
	}
	for i, bearer := range []string{"weak", "user"} {
		if a := f.do("POST", "/things", bearer, ""); a.Code != 200 || a.Body.String() != fmt.Sprint(f.principals[bearer].Subject, i+1) {
			t.Errorf("%s: %d %s", bearer, a.Code, a.Body)
		}
	}
	first, again := f.do("POST", "/things", "weak", "", "Idempotency-Key", "k"), f.do("POST", "/things", "weak", "", "Idempotency-Key", "k")
	if first.Body.String() != again.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s, again %s", first.Body, again.Body)
	}
}

// A tenant is served when it is complete; its metadata before.
func TestProvisioning(t *testing.T) {
	serve := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	f := newFixture(t, nil, route{op: Operation{ID: "read", Method: "GET", Path: "/things"}, do: serve}, route{op: Operation{ID: "keys", Method: "GET", Path: "/.well-known/keys"}, do: serve})
	tenant := f.tenants["a.test"]
	tenant.State = controlplane.TenantProvisioning
	f.tenants["a.test"] = tenant
	refused := f.do("GET", "/things", "", "")
	want(t, "an operation", refused, 503, "service_unavailable")
	if after := refused.Header().Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After is %q", after)
	}
	if a := f.do("GET", "/.well-known/keys", "", ""); a.Code != 200 {
		t.Errorf("metadata: %d %s", a.Code, a.Body)
	}
}
