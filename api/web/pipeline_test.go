package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"

	"stonetown/controlplane"
	"stonetown/engine/authority"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/idempotency"
	"stonetown/internal/ratelimit"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
	"stonetown/tuplestore"
)

// fakes are the dependencies of a server: tenants by host, principals by token, limits and
// origins.
type fakes struct {
	tenants    map[string]controlplane.Tenant
	principals map[string]*token.Principal
	limit      map[ratelimit.Counted]ratelimit.Limit
	take       func(ratelimit.Bucket) (ratelimit.Decision, error)
	origins    map[string]string // origin -> client id
	failing    error             // of tenants and origins

	log   safeBuffer
	proof dpop.Request // of the last bound token
}

func (f *fakes) TenantByHost(_ context.Context, host string) (controlplane.Tenant, error) {
	if f.failing != nil {
		return controlplane.Tenant{}, f.failing
	}
	t, ok := f.tenants[host]
	if !ok {
		return t, controlplane.ErrTenantNotFound
	}
	return t, nil
}

func (f *fakes) FirstTenant(ctx context.Context) (controlplane.Tenant, error) {
	return f.TenantByHost(ctx, "a.test")
}

func (f *fakes) Verify(_ context.Context, _ protocol.Tenant, bearer string) (*token.Principal, error) {
	if bearer == "broken" {
		return nil, errors.New("no database")
	}
	p, ok := f.principals[bearer]
	if !ok {
		return nil, &token.Error{Reason: token.Malformed}
	}
	return p, nil
}

func (f *fakes) VerifyBound(ctx context.Context, t protocol.Tenant, bearer string, r dpop.Request) (*token.Principal, error) {
	f.proof = r
	if len(r.Proofs) == 0 {
		return nil, &dpop.Error{Reason: "missing"}
	}
	return f.Verify(ctx, t, bearer)
}

func (f *fakes) VerifyCertified(ctx context.Context, t protocol.Tenant, bearer string, _ func() string) (*token.Principal, error) {
	return f.Verify(ctx, t, bearer)
}

func (f *fakes) Limit(own ratelimit.Limits, c ratelimit.Counted) ratelimit.Limit {
	if l, ok := own[c]; ok {
		return l
	}
	return f.limit[c]
}

func (f *fakes) Take(_ context.Context, b ratelimit.Bucket, _ ratelimit.Limit) (ratelimit.Decision, error) {
	return f.take(b)
}

func (f *fakes) OriginAllowed(_ context.Context, _, clientID, origin string) (bool, error) {
	if f.failing != nil {
		return false, f.failing
	}
	owner, ok := f.origins[origin]
	return ok && (clientID == "" || clientID == owner), nil
}

// safeBuffer is a log that handlers write at the same time.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// route is an operation with its handler.
type route struct {
	op     Operation
	format ErrorFormat
	do     http.HandlerFunc
}

// router is a [Router] of routes.
type router struct{ *mux.Router }

func (r router) Has(req *http.Request) bool {
	var m mux.RouteMatch
	return r.Match(req, &m) && m.Route != nil || errors.Is(m.MatchErr, mux.ErrMethodMismatch)
}

// fixture is a server with some operations.
type fixture struct {
	*fakes
	server  *Server
	handler http.Handler
}

func newFixture(t testing.TB, change func(*Config), routes ...route) *fixture {
	t.Helper()
	f := &fakes{
		tenants: map[string]controlplane.Tenant{
			"a.test":         {ID: "tnt_a", BaseURL: "https://a.test", State: controlplane.TenantActive},
			"plain.test":     {ID: "tnt_p", BaseURL: "http://plain.test", State: controlplane.TenantActive},
			"suspended.test": {ID: "tnt_s", BaseURL: "https://suspended.test", State: controlplane.TenantSuspended},
			"gone.test":      {ID: "tnt_g", BaseURL: "https://gone.test", State: controlplane.TenantDecommissioned},
		},
		principals: map[string]*token.Principal{
			"app":   {Subject: "client_1", ClientID: "client_1", Scopes: scope.Set{"things:read": {}, "things:write": {}}, ExpiresAt: time.Now().Add(time.Hour)},
			"user":  {Subject: "usr_1", ClientID: "client_1", SessionID: "ses_1", Scopes: scope.Set{"things:read": {}}, ExpiresAt: time.Now().Add(time.Hour)},
			"enrol": {Subject: "usr_2", SessionID: "ses_2", MustEnrol: true, Scopes: scope.Set{"things:read": {}, "things:write": {}}, ExpiresAt: time.Now().Add(time.Hour)},
			"act": {
				Subject: "usr_1", ClientID: "client_2", Actor: eventlog.Actor{Type: "application", ID: "app_2"},
				Scopes: scope.Set{"things:read": {}, "things:write": {}}, ExpiresAt: time.Now().Add(time.Hour),
			},
		},
		limit:   map[ratelimit.Counted]ratelimit.Limit{},
		origins: map[string]string{"https://app.test": "client_1"},
	}
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), idempotency.Migrations()); err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := idempotency.New(idempotency.Config{DB: db, Seal: key})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Tenants: f, Verifier: f, Idempotency: keys, Limits: f, Origins: f,
		Logger: slog.New(slog.NewJSONHandler(&f.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: prometheus.NewRegistry(),
	}
	if change != nil {
		change(&c)
	}
	server, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	paths := router{mux.NewRouter().UseEncodedPath()}
	for _, r := range routes {
		h := paths.Handle(r.op.Path, server.Handle(r.op, r.format, r.do))
		if r.op.Method == "GET" {
			h.Methods("GET", "HEAD")
		} else {
			h.Methods(r.op.Method)
		}
	}
	paths.NotFoundHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { server.Fail(w, r, NotFound()) })
	return &fixture{f, server, server.Serve(paths)}
}

// answer is the response to a request.
type answer struct {
	*httptest.ResponseRecorder
}

// code returns the code of an error.
func (a answer) code() string {
	var body struct{ Error string }
	_ = json.Unmarshal(a.Body.Bytes(), &body)
	return body.Error
}

// details returns a detail of an error.
func (a answer) detail(name string) any {
	var body struct{ Details map[string]any }
	_ = json.Unmarshal(a.Body.Bytes(), &body)
	return body.Details[name]
}

// do sends a request to a.test; header is a list of names and values.
func (f *fixture) do(method, target, bearer, body string, header ...string) answer {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if !strings.Contains(target, "://") {
		r.Host = "a.test"
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return answer{w}
}

func ok(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }

func want(t testing.TB, what string, a answer, status int, code string) {
	t.Helper()
	if a.Code != status || a.code() != code {
		t.Errorf("%s: %d %s, want %d %s", what, a.Code, a.Body, status, code)
	}
}

// things are operations of all kinds.
var things = []route{
	{op: Operation{ID: "list", Method: "GET", Path: "/things", Scope: "things:read", Cookie: true, RateLimit: ratelimit.Admin}, do: ok},
	{op: Operation{ID: "create", Method: "POST", Path: "/things", Scope: "things:write", Cookie: true, MediaType: "application/json", RateLimit: ratelimit.Admin}, do: ok},
	{op: Operation{ID: "read", Method: "GET", Path: "/things/{id}", Scope: "things:read"}, do: func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, mux.Vars(r)["id"])
	}},
	{op: Operation{ID: "me", Method: "POST", Path: "/me", Tag: "me", Scope: "things:write"}, do: ok},
	{op: Operation{ID: "me_read", Method: "GET", Path: "/me", Tag: "me", Scope: "things:read", Enrolling: true}, do: ok},
	{op: Operation{ID: "public", Method: "GET", Path: "/public"}, do: ok},
	{op: Operation{ID: "optional", Method: "GET", Path: "/optional", Scope: "things:read", Anonymous: true}, do: func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, InfoOf(r.Context()).Principal != nil)
	}},
	{op: Operation{ID: "body", Method: "POST", Path: "/body", MediaType: "application/json", BodyOptional: true}, do: ok},
	{op: Operation{ID: "known", Method: "GET", Path: "/.well-known/thing"}, do: ok},
	{op: Operation{ID: "effects", Method: "GET", Path: "/effects", Effects: true}, do: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }},
	{op: Operation{ID: "page", Method: "POST", Path: "/page", Page: true}, do: ok},
	{op: Operation{ID: "page_read", Method: "GET", Path: "/page", Page: true}, do: ok},
}

// Each requirement of an operation is checked before its handler runs.
func TestRequirements(t *testing.T) {
	f := newFixture(t, nil, things...)
	cookie := []string{"Cookie", SessionCookie + "=user"}
	sameSite, otherSite := []string{"Sec-Fetch-Site", "same-origin"}, []string{"Sec-Fetch-Site", "cross-site"}
	for name, c := range map[string]struct {
		method, target, bearer, body string
		header                       []string
		status                       int
		code                         string
	}{
		"ok":                          {"GET", "/things", "app", "", nil, 200, ""},
		"unknown host":                {"GET", "http://other.test/things", "app", "", nil, 404, "tenant_not_found"},
		"host with a port":            {"GET", "http://a.test:8443/things", "app", "", nil, 200, ""},
		"suspended":                   {"GET", "http://suspended.test/things", "app", "", nil, 403, "tenant_suspended"},
		"suspended, public document":  {"GET", "http://suspended.test/.well-known/thing", "", "", nil, 200, ""},
		"decommissioned":              {"GET", "http://gone.test/.well-known/thing", "", "", nil, 410, "tenant_decommissioned"},
		"unknown path":                {"GET", "/nothing", "app", "", nil, 404, "not_found"},
		"no token":                    {"GET", "/things", "", "", nil, 401, "unauthenticated"},
		"public":                      {"GET", "/public", "", "", nil, 200, ""},
		"unknown token":               {"GET", "/things", "other", "", nil, 401, "invalid_token"},
		"two headers":                 {"GET", "/things", "app", "", []string{"Authorization", "Bearer app"}, 401, "invalid_token"},
		"another scheme":              {"GET", "/things", "", "", []string{"Authorization", "Basic YTpi"}, 401, "invalid_token"},
		"scheme without a token":      {"GET", "/things", "", "", []string{"Authorization", "Bearer "}, 401, "invalid_token"},
		"internal error":              {"GET", "/things", "broken", "", nil, 500, "internal_error"},
		"token without the scope":     {"POST", "/things", "user", "{}", []string{"Content-Type", "application/json"}, 403, "insufficient_scope"},
		"bound token":                 {"GET", "/things", "", "", []string{"Authorization", "DPoP app", "DPoP", "proof"}, 200, ""},
		"bound token without a proof": {"GET", "/things", "", "", []string{"Authorization", "dpop app"}, 401, "invalid_dpop_proof"},
		"user must enrol":             {"GET", "/things", "enrol", "", nil, 401, "insufficient_user_authentication"},
		"enrolment":                   {"GET", "/me", "enrol", "", nil, 200, ""},
		"delegated":                   {"GET", "/things", "act", "", nil, 200, ""},
		"delegated, own account":      {"POST", "/me", "act", "", nil, 403, "permission_denied"},
		"delegated, reads account":    {"GET", "/me", "act", "", nil, 200, ""},
		"optional token, none":        {"GET", "/optional", "", "", nil, 200, ""},
		"optional token, wrong":       {"GET", "/optional", "other", "", nil, 401, "invalid_token"},
		"cookie":                      {"GET", "/things", "", "", append(cookie, sameSite...), 200, ""},
		"cookie, other operation":     {"GET", "/things/x", "", "", append(cookie, sameSite...), 401, "unauthenticated"},
		"cookie, another site":        {"POST", "/things", "", "{}", append(append([]string{"Content-Type", "application/json"}, cookie...), otherSite...), 403, "permission_denied"},
		"media type":                  {"POST", "/things", "app", "{}", []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type"},
		"media type with parameters":  {"POST", "/things", "app", "{}", []string{"Content-Type", "application/json; charset=utf-8"}, 200, ""},
		"no media type":               {"POST", "/body", "", "{}", nil, 415, "unsupported_media_type"},
		"no body":                     {"POST", "/body", "", "", nil, 200, ""},
		"HEAD of an effect":           {"HEAD", "/effects", "", "", nil, 200, ""},
		"GET of an effect":            {"GET", "/effects", "", "", nil, 418, ""},
		"page":                        {"GET", "/page", "", "", otherSite, 200, ""},
		"form of a page":              {"POST", "/page", "", "", sameSite, 200, ""},
		"form of another site":        {"POST", "/page", "", "", otherSite, 403, "permission_denied"},
		"escaped variable":            {"GET", "/things/a%2Fb", "app", "", nil, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, name, f.do(c.method, c.target, c.bearer, c.body, c.header...), c.status, c.code)
		})
	}
	if a := f.do("GET", "/things/a%2Fb", "app", ""); a.Body.String() != "a/b" {
		t.Errorf("the handler reads the variable %q", a.Body)
	}
	if a := f.do("GET", "/optional", "app", ""); a.Body.String() != "true" {
		t.Errorf("a token that is optional is ignored: %s", a.Body)
	}
}

// A proof is verified against the tenant's address, whatever the headers of the request say.
func TestProofsNameTheTenantsAddress(t *testing.T) {
	f := newFixture(t, nil, things...)
	want(t, "proof", f.do("GET", "http://a.test:8080/things/a%2Fb?q=1", "", "", "Authorization", "DPoP app", "DPoP", "proof", "X-Forwarded-Host", "b.test"), 200, "")
	if f.proof.URL != "https://a.test/things/a%2Fb" || f.proof.Method != "GET" || len(f.proof.Proofs) != 1 {
		t.Errorf("verified for %+v", f.proof)
	}
}

func TestHeadersOfEveryResponse(t *testing.T) {
	f := newFixture(t, nil, things...)
	for _, target := range []string{"/things", "/nothing", "http://other.test/", "/public"} {
		h := f.do("GET", target, "", "").Header()
		if !strings.HasPrefix(h.Get("X-Request-Id"), "req_") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", target, h)
		}
	}
	if h := f.do("GET", "/public", "", "").Header(); h.Get("Strict-Transport-Security") == "" {
		t.Error("a tenant with https has no Strict-Transport-Security")
	}
	if h := f.do("GET", "http://plain.test/public", "", "").Header(); h.Get("Strict-Transport-Security") != "" {
		t.Error("a tenant with http has Strict-Transport-Security")
	}
	challenge := f.do("GET", "/things", "", "").Header().Values("WWW-Authenticate")
	if len(challenge) != 2 || !strings.HasPrefix(challenge[0], `Bearer realm="https://a.test"`) || !strings.HasPrefix(challenge[1], "DPoP ") {
		t.Errorf("challenges %q", challenge)
	}
}

// The access log has the ids of a request and neither its path nor its query.
func TestAccessLogHasNoPath(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.AccessLog = true }, things...)
	f.do("GET", "/things/hunter2?q=hunter3", "user", "", "X-Request-Id", "theirs")
	log := f.log.String()
	for _, part := range []string{`"level":"INFO"`, `"route":"/things/{id}"`, `"operation":"read"`, `"status":200`, `"tenant":"tnt_a"`, `"subject":"usr_1"`, `"client_request_id":"theirs"`} {
		if !strings.Contains(log, part) {
			t.Errorf("the log lacks %s: %s", part, log)
		}
	}
	if strings.Contains(log, "hunter") {
		t.Errorf("the log has the path: %s", log)
	}
}

func TestPanics(t *testing.T) {
	head := route{op: Operation{ID: "late", Method: "GET", Path: "/late"}, do: func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		panic("late")
	}}
	early := route{op: Operation{ID: "early", Method: "GET", Path: "/early"}, do: func(http.ResponseWriter, *http.Request) { panic("hunter2") }}
	abort := route{op: Operation{ID: "abort", Method: "GET", Path: "/abort"}, do: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
	var f *fixture
	failed := route{op: Operation{ID: "failed", Method: "GET", Path: "/failed"}, do: func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		f.server.Fail(w, r, errors.New("late"))
	}}
	f = newFixture(t, nil, head, early, abort, failed)
	a := f.do("GET", "/early", "", "")
	want(t, "early", a, 500, "internal_error")
	if strings.Contains(a.Body.String(), "hunter2") || !strings.Contains(f.log.String(), "hunter2") {
		t.Errorf("the cause is in the response or not in the log: %s", a.Body)
	}
	for _, target := range []string{"/late", "/abort", "/failed"} {
		func() {
			defer func() {
				if fault := recover(); fault != http.ErrAbortHandler {
					t.Errorf("%s: the connection is not aborted: %v", target, fault)
				}
			}()
			f.do("GET", target, "", "")
		}()
	}
}

// Errors of the layers below have a status and a code; all others are internal and are logged.
func TestErrorsBecomeResponses(t *testing.T) {
	var fault error
	f := newFixture(t, nil, route{
		op: Operation{ID: "fail", Method: "GET", Path: "/fail"},
		format: ErrorFormat{Translate: func(err error) *Error {
			if err.Error() == "domain" {
				return &Error{Status: 418, Code: "teapot"}
			}
			return nil
		}},
	})
	paths := router{mux.NewRouter()}
	paths.Handle("/fail", f.server.Handle(Operation{ID: "fail", Path: "/fail"}, ErrorFormat{Translate: func(err error) *Error {
		if err.Error() == "domain" {
			return &Error{Status: 418, Code: "teapot"}
		}
		return nil
	}}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.server.Fail(w, r, fault) })))
	f.handler = f.server.Serve(paths)
	for _, c := range []struct {
		err        error
		status     int
		code       string
		retryAfter string
	}{
		{NotFound(), 404, "not_found", ""},
		{errors.New("domain"), 418, "teapot", ""},
		{fmt.Errorf("list: %w", ValidationFailed(FieldError{"a", "required", "a is required"})), 400, "validation_failed", ""},
		{&fair.ExhaustedError{Of: "streams", Share: fair.OfTenant, Limit: 2, RetryAfter: 1500 * time.Millisecond}, 503, "service_unavailable", "2"},
		{&authority.DeniedError{Scope: "things:write"}, 403, "permission_denied", ""},
		{&tuplestore.BusyError{RetryAfter: 3 * time.Second}, 503, "service_unavailable", "3"},
		{tuplestore.ErrSchemaChanged, 503, "service_unavailable", "1"},
		{tuplestore.ErrClosed, 503, "service_unavailable", "1"},
		{context.DeadlineExceeded, 503, "service_unavailable", "1"},
		{errors.New("hunter2"), 500, "internal_error", ""},
	} {
		fault = c.err
		a := f.do("GET", "/fail", "", "")
		want(t, c.err.Error(), a, c.status, c.code)
		if got := a.Header().Get("Retry-After"); got != c.retryAfter {
			t.Errorf("%v: Retry-After %q, want %q", c.err, got, c.retryAfter)
		}
		if strings.Contains(a.Body.String(), "hunter2") {
			t.Errorf("an internal error is in the response: %s", a.Body)
		}
	}
	if !strings.Contains(f.log.String(), "hunter2") {
		t.Error("an internal error is not logged")
	}
}

// A group of operations can have errors of its own form.
func TestErrorFormats(t *testing.T) {
	fail := func(f **fixture) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { (*f).server.Fail(w, r, NotFound()) }
	}
	var f *fixture
	f = newFixture(
		t, nil,
		route{Operation{ID: "body", Method: "GET", Path: "/body"}, ErrorFormat{
			Body:   func(e *Error, requestID string) (int, any) { return 422, map[string]string{"error": "own_" + e.Code} },
			Header: http.Header{"X-Own": {"1"}}, EchoRequestID: true,
		}, fail(&f)},
		route{Operation{ID: "page", Method: "GET", Path: "/page"}, ErrorFormat{
			Render: func(w http.ResponseWriter, e *Error, info *RequestInfo) {
				w.WriteHeader(e.Status)
				io.WriteString(w, "<p>"+info.Tenant.ID)
			},
		}, fail(&f)},
	)
	a := f.do("GET", "/body", "", "", "X-Request-Id", "theirs")
	want(t, "body", a, 422, "own_not_found")
	if a.Header().Get("X-Own") != "1" || a.Header().Get("X-Request-Id") != "theirs" {
		t.Errorf("headers %v", a.Header())
	}
	if a := f.do("GET", "/page", "", ""); a.Code != 404 || a.Body.String() != "<p>tnt_a" {
		t.Errorf("rendered %d %s", a.Code, a.Body)
	}
}

// A request ends when its time is over.
func TestTimeout(t *testing.T) {
	var f *fixture
	f = newFixture(t, func(c *Config) { c.Timeout = 20 * time.Millisecond }, route{
		op: Operation{ID: "slow", Method: "GET", Path: "/slow"},
		do: func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			f.server.Fail(w, r, r.Context().Err())
		},
	})
	want(t, "slow", f.do("GET", "/slow", "", ""), 503, "service_unavailable")
}

func TestDevelopmentHosts(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Dev = true }, things...)
	for _, host := range []string{"localhost", "localhost:8080", "127.0.0.1", "[::1]:80"} {
		want(t, host, f.do("GET", "http://"+host+"/public", "", ""), 200, "")
	}
	want(t, "another address", f.do("GET", "http://192.0.2.1/public", "", ""), 404, "tenant_not_found")
	f = newFixture(t, nil, things...)
	want(t, "not in development", f.do("GET", "http://localhost/public", "", ""), 404, "tenant_not_found")
	f.failing = errors.New("no database")
	want(t, "no database", f.do("GET", "/public", "", ""), 500, "internal_error")
}

// Only trusted proxies can name the address of a client.
func TestClientAddress(t *testing.T) {
	var got netip.Addr
	f := newFixture(t, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	}, route{op: Operation{ID: "ip", Method: "GET", Path: "/ip"}, do: func(_ http.ResponseWriter, r *http.Request) {
		got = InfoOf(r.Context()).ClientIP
	}})
	for _, c := range []struct{ peer, forwarded, want string }{
		{"192.0.2.1:1", "", "192.0.2.1"},
		{"198.51.100.1:1", "203.0.113.9", "198.51.100.1"},
		{"192.0.2.1:1", "203.0.113.9", "203.0.113.9"},
		{"192.0.2.1:1", "10.0.0.1, 203.0.113.9, 192.0.2.7", "203.0.113.9"},
		{"192.0.2.1:1", "nonsense", "192.0.2.1"},
		{"[::ffff:198.51.100.1]:1", "", "198.51.100.1"},
		{"nonsense", "", "invalid IP"},
	} {
		r := httptest.NewRequest("GET", "http://a.test/ip", nil)
		r.RemoteAddr = c.peer
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		f.handler.ServeHTTP(httptest.NewRecorder(), r)
		if got.String() != c.want {
			t.Errorf("%s, %q: %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}

// The origin of changes and the caller of a request follow from its token.
func TestOriginAndCaller(t *testing.T) {
	var origin eventlog.Origin
	var caller authority.Caller
	f := newFixture(t, nil, route{op: Operation{ID: "x", Method: "GET", Path: "/x", Scope: "things:read", Anonymous: true}, do: func(_ http.ResponseWriter, r *http.Request) {
		origin = eventlog.OriginOf(r.Context())
		caller, _ = authority.Of(r.Context())
	}})
	for bearer, c := range map[string]struct {
		actor  eventlog.Actor
		caller string
		scopes int
	}{
		"":     {eventlog.Actor{}, "", 0},
		"app":  {eventlog.Actor{Type: "application", ID: "client_1"}, "application:client_1", 2},
		"user": {eventlog.Actor{Type: "user", ID: "usr_1"}, "user:usr_1", 1},
		"act":  {eventlog.Actor{Type: "application", ID: "app_2"}, "user:usr_1", 2},
	} {
		f.do("GET", "/x", bearer, "")
		got := strings.TrimSuffix(caller.Type+":"+caller.ID, ":")
		if origin.Actor != c.actor || origin.RequestID == "" || got != c.caller || len(caller.Scopes) != c.scopes {
			t.Errorf("%q: actor %+v, caller %q with %d scopes", bearer, origin.Actor, got, len(caller.Scopes))
		}
	}
}

// A server without one of its dependencies is refused.
func TestDependenciesAreRequired(t *testing.T) {
	f := &fakes{}
	whole := Config{Tenants: f, Verifier: f, Idempotency: new(idempotency.Store), Limits: f, Origins: f, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()}
	if _, err := New(whole); err != nil {
		t.Fatal(err)
	}
	for name, without := range map[string]func(*Config){
		"Tenants": func(c *Config) { c.Tenants = nil }, "Verifier": func(c *Config) { c.Verifier = nil }, "Idempotency": func(c *Config) { c.Idempotency = nil },
		"Limits": func(c *Config) { c.Limits = nil }, "Origins": func(c *Config) { c.Origins = nil }, "Logger": func(c *Config) { c.Logger = nil }, "Metrics": func(c *Config) { c.Metrics = nil },
	} {
		c := whole
		c.Metrics = prometheus.NewRegistry()
		without(&c)
		if _, err := New(c); err == nil {
			t.Errorf("a server without %s was made", name)
		}
	}
}
