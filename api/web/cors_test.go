package web

import (
	"errors"
	"net/http"
	"testing"
)

// Scripts of registered origins can read responses.
func TestCORS(t *testing.T) {
	var f *fixture
	f = newFixture(t, nil, append([]route{{
		op: Operation{ID: "token", Method: "POST", Path: "/token"},
		do: func(w http.ResponseWriter, r *http.Request) {
			f.server.RestrictOrigin(w, r, r.URL.Query().Get("client_id"))
		},
	}}, things...)...)
	const field = "Access-Control-Allow-Origin"
	preflight := func(target, origin string) answer {
		return f.do("OPTIONS", target, "", "", "Origin", origin, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")
	}
	for name, c := range map[string]struct {
		a     answer
		allow string
	}{
		"preflight":                     {preflight("/things", "https://app.test"), "https://app.test"},
		"preflight of another origin":   {preflight("/things", "https://evil.test"), ""},
		"request":                       {f.do("GET", "/things", "app", "", "Origin", "https://app.test"), "https://app.test"},
		"error":                         {f.do("GET", "/things", "", "", "Origin", "https://app.test"), "https://app.test"},
		"request of another origin":     {f.do("GET", "/things", "app", "", "Origin", "https://evil.test"), ""},
		"request without an origin":     {f.do("GET", "/things", "app", ""), ""},
		"host of no tenant":             {f.do("GET", "http://other.test/things", "app", "", "Origin", "https://app.test"), ""},
		"suspended tenant":              {f.do("GET", "http://suspended.test/things", "app", "", "Origin", "https://app.test"), ""},
		"document with its own policy":  {f.do("GET", "/.well-known/thing", "", "", "Origin", "https://app.test"), ""},
		"client of the origin":          {f.do("POST", "/token?client_id=client_1", "", "", "Origin", "https://app.test"), "https://app.test"},
		"another client":                {f.do("POST", "/token?client_id=client_2", "", "", "Origin", "https://app.test"), ""},
		"another client, no origin set": {f.do("POST", "/token?client_id=client_2", "", ""), ""},
	} {
		if got := c.a.Header().Get(field); got != c.allow {
			t.Errorf("%s: %q, want %q", name, got, c.allow)
		}
		if c.a.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: credentials are allowed", name)
		}
	}
	if a := preflight("/things", "https://app.test"); a.Code != http.StatusNoContent {
		t.Errorf("preflight: %d", a.Code)
	}
	want(t, "preflight of an unknown path", preflight("/nothing", "https://app.test"), 404, "not_found")
	f.failing = errors.New("no database")
	if a := preflight("/things", "https://app.test"); a.Header().Get(field) != "" {
		t.Error("an origin is allowed without the database")
	}
}
