package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"stonetown/api"
	"stonetown/api/account"
	"stonetown/api/applications"
	"stonetown/api/control"
	"stonetown/api/oauth2"
	"stonetown/controlplane"
	"stonetown/controlplane/management"
	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/oauth/authorization"
	oauthclient "stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
	"stonetown/tuplestore"
)

// failing is an engine and an authorization server with injected faults.
type failing struct {
	api.Engine
	fault     func(context.Context) error // nil: none
	firstLine int64                       // of imports, the lines from here on fail
}

func (f *failing) CheckInto(ctx context.Context, tenant string, req *engine.CheckRequest, res *engine.CheckResponse) error {
	if f.fault == nil {
		return f.Engine.CheckInto(ctx, tenant, req, res)
	}
	return f.fault(ctx)
}

func (f *failing) Check(ctx context.Context, tenant string, req engine.CheckRequest) (*engine.CheckResponse, error) {
	if f.fault == nil {
		return f.Engine.Check(ctx, tenant, req)
	}
	return nil, f.fault(ctx)
}

func (f *failing) PlanTypes(ctx context.Context, tenant string, req engine.PlanRequest) (*engine.TypesPlan, error) {
	if f.fault == nil {
		return f.Engine.PlanTypes(ctx, tenant, req)
	}
	return nil, f.fault(ctx)
}

func (f *failing) Write(ctx context.Context, tenant string, req engine.WriteRequest) (engine.WriteResponse, error) {
	if f.fault == nil {
		return f.Engine.Write(ctx, tenant, req)
	}
	return engine.WriteResponse{}, f.fault(ctx)
}

func (f *failing) WriteRelation(ctx context.Context, tenant string, op engine.WriteOp, origin engine.Origin) (engine.WriteResponse, error) {
	if f.fault == nil {
		return f.Engine.WriteRelation(ctx, tenant, op, origin)
	}
	return engine.WriteResponse{}, f.fault(ctx)
}

func (f *failing) Import(ctx context.Context, tenant string, req engine.WriteRequest, firstLine, lastLine int64) (engine.WriteResponse, error) {
	if f.fault != nil && firstLine >= f.firstLine {
		return engine.WriteResponse{}, f.fault(ctx)
	}
	return f.Engine.Import(ctx, tenant, req, firstLine, lastLine)
}

func (f *failing) ListResources(ctx context.Context, tenant string, req engine.ListResourcesRequest) (*engine.ResourceList, error) {
	return nil, f.fault(ctx)
}

func (f *failing) ListAllowed(ctx context.Context, tenant string, req engine.ListAllowedRequest) (*engine.AllowedList, error) {
	return nil, f.fault(ctx)
}

func (f *failing) ListSubjects(ctx context.Context, tenant string, req engine.ListSubjectsRequest) (*engine.SubjectList, error) {
	return nil, f.fault(ctx)
}

func (f *failing) CheckHistory(ctx context.Context, tenant string, req engine.HistoryRequest) (*engine.DecisionHistory, error) {
	return nil, f.fault(ctx)
}

func (f *failing) Expand(ctx context.Context, tenant string, req engine.ExpandRequest) (*engine.Expansion, error) {
	return nil, f.fault(ctx)
}

func (f *failing) ListActions(ctx context.Context, tenant string, req engine.ListActionsRequest) (*engine.ActionList, error) {
	return nil, f.fault(ctx)
}

func (f *failing) ListProofs(ctx context.Context, tenant string, req engine.ListProofsRequest) (*engine.ProofList, error) {
	return nil, f.fault(ctx)
}

func (f *failing) Watch(ctx context.Context, tenant string, req engine.WatchRequest, emit func(engine.WatchEvent) error) error {
	return f.fault(ctx)
}

// failingGrants, failingTokens, failingRequests and failingClients are the parts of the OAuth
// module that fail in the same way.
type failingGrants struct {
	*failing
	oauth2.Grants
}

func (f failingGrants) Token(ctx context.Context, tenant protocol.Tenant, req grants.Request) (token.Response, error) {
	if f.fault == nil {
		return f.Grants.Token(ctx, tenant, req)
	}
	return token.Response{}, f.fault(ctx)
}

type tokens interface {
	oauth2.Tokens
	account.Tokens
}

type failingTokens struct {
	*failing
	tokens
}

func (f failingTokens) Revoke(ctx context.Context, tenant protocol.Tenant, by oauthclient.Credentials, bearer string) error {
	return f.fault(ctx)
}

func (f failingTokens) Introspect(ctx context.Context, tenant protocol.Tenant, by oauthclient.Credentials, bearer string) (token.Introspection, error) {
	return token.Introspection{}, f.fault(ctx)
}

type requests interface {
	oauth2.Authorization
	account.Requests
}

type failingRequests struct {
	*failing
	requests
}

func (f failingRequests) Push(ctx context.Context, tenant protocol.Tenant, by oauthclient.Credentials, params url.Values) (requestURI string, good time.Duration, err error) {
	return "", 0, f.fault(ctx)
}

func (f failingRequests) AuthorizeDevice(ctx context.Context, tenant protocol.Tenant, req authorization.DeviceAuthorizationRequest) (authorization.DeviceAuthorization, error) {
	return authorization.DeviceAuthorization{}, f.fault(ctx)
}

// failingSignIns are sign-ins at connections that fail in the same way.
type failingSignIns struct {
	*failing
	api.SignIns
}

func (f failingSignIns) EndByToken(ctx context.Context, tenantID, slug, token string) error {
	return f.fault(ctx)
}

// failingOrganizations fails in the same way.
type failingOrganizations struct {
	*failing
	control.Service
}

func (f failingOrganizations) SuspendTenant(ctx context.Context, by management.Caller, orgID, tenantID, reason string) (controlplane.Tenant, error) {
	return controlplane.Tenant{}, f.fault(ctx)
}

func (f failingOrganizations) Organizations(ctx context.Context, by management.Caller, after *management.Position, limit int) ([]controlplane.Organization, error) {
	return nil, f.fault(ctx)
}

type clients interface {
	oauth2.Clients
	account.Clients
	applications.Clients
}

type failingClients struct {
	*failing
	clients
}

func (f failingClients) Settings(ctx context.Context, tenantID string) (oauthclient.Settings, error) {
	if f.fault == nil {
		return f.clients.Settings(ctx, tenantID)
	}
	return oauthclient.Settings{}, f.fault(ctx)
}

// fullDisk fills the disk of a server. It answers 503, and works again when there is space.
func fullDisk(t *testing.T) {
	w := newWorld(t, databases["SQLite"](t), nil)
	c := w.tenant(t, "full")
	define(t, c)
	room := func(pages int) {
		t.Helper()
		err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Small rows fit into existing pages; large ones do not.
	large := object{"text": long(15 << 10)}
	requests := []func(n int) answer{
		func(n int) answer {
			return c.do(t, "POST", "/api/v1/resources", with(resource("document", fmt.Sprint(n)), object{"attributes": large}))
		},
		func(n int) answer {
			return c.do(t, "POST", "/api/v1/users", object{"email": fmt.Sprintf("u%d@example.com", n), "email_verified": true, "attributes": large})
		},
	}
	room(1)
	for i, request := range requests {
		full := false
		for n := 0; n < 100 && !full; n++ {
			a := request(n)
			if a.status == 201 {
				continue
			}
			full = true
			if a.status != 503 || a.code() != "service_unavailable" || a.header.Get("Retry-After") != "30" {
				t.Errorf("%d: %d %s %v", i, a.status, a.text, a.header)
			}
		}
		if !full {
			t.Errorf("%d: there was always room", i)
		}
	}
	c.want(t, 200, "", "GET", "/api/v1/users", nil)
	room(1 << 30)
	for i, request := range requests {
		if a := request(1000); a.status != 201 {
			t.Errorf("%d with room again: %d %s", i, a.status, a.text)
		}
	}
}

// faults tests the responses to internal errors.
func faults(t *testing.T) {
	f := new(failing)
	w := newWorld(t, databases["SQLite"](t), func(c *api.Config) {
		f.Engine = c.Engine
		c.Engine, c.Timeout = f, 2*time.Second
		c.OAuth.Grants, c.OAuth.Tokens = failingGrants{f, c.OAuth.Grants}, failingTokens{f, c.OAuth.Tokens}
		c.OAuth.Authorization, c.OAuth.Clients = failingRequests{f, c.OAuth.Authorization}, failingClients{f, c.OAuth.Clients}
		c.SignIns, c.Organizations = failingSignIns{f, c.SignIns}, failingOrganizations{f, c.Organizations}
	})
	c := w.tenant(t, "faults")
	define(t, c)
	ann, _ := w.console(t, c, "ann")
	is := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"x"}, "client_secret": {"y"}, "token": {"z"}, "logout_token": {"z"}}

	for name, tc := range map[string]struct {
		fault  func(context.Context) error
		status int
		code   string // of the data plane
		oauth  string
	}{
		"unknown":  {is(errors.New("secret detail")), 500, "internal_error", "server_error"},
		"panic":    {func(context.Context) error { panic("secret detail") }, 500, "internal_error", "server_error"},
		"canceled": {is(fmt.Errorf("x: %w", context.Canceled)), 503, "service_unavailable", "temporarily_unavailable"},
		"slow": {func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("check: %w", ctx.Err())
		}, 503, "service_unavailable", "temporarily_unavailable"},
		"unreachable":    {is(fmt.Errorf("check: %w", &pgconn.PgError{Code: "57P01", Message: "secret detail"})), 503, "service_unavailable", "temporarily_unavailable"},
		"cut off":        {is(fmt.Errorf("check: %w", io.ErrUnexpectedEOF)), 503, "service_unavailable", "temporarily_unavailable"},
		"disk is full":   {is(fmt.Errorf("write: %w", &pgconn.PgError{Code: "53100", Message: "secret detail"})), 503, "service_unavailable", "temporarily_unavailable"},
		"busy":           {is(&tuplestore.BusyError{Queue: "resource", Limit: 9, RetryAfter: 1500 * time.Millisecond}), 503, "service_unavailable", ""},
		"closed":         {is(tuplestore.ErrClosed), 503, "service_unavailable", ""},
		"schema changes": {is(fmt.Errorf("write: %w", tuplestore.ErrSchemaChanged)), 503, "service_unavailable", ""},
		"too complex":    {is(&engine.BudgetError{Limit: 10}), 400, "check_too_complex", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f.fault = tc.fault
			defer func() { f.fault = nil }()
			for _, target := range []string{
				"/api/v1/resources/check", "/api/v1/resources/check-batch", path("document", "d") + "/relations",
				"/api/v1/resources/list-resources", "/api/v1/resources/list-resources/stream",
				"/api/v1/resources/list-resources/count", "/api/v1/resources/list-actions", "/api/v1/resources/list-proofs",
				"/api/v1/resources/list-subjects", "/api/v1/resources/list-subjects/stream", "/api/v1/resources/expand", planPath, planPath + "/stream", simulatePath, historyPath,
				"/access/v1/evaluation", "/access/v1/evaluations", "/access/v1/search/subject", "/access/v1/search/resource", "/access/v1/search/action",
			} {
				if tc.code == "check_too_complex" && strings.HasSuffix(target, "/relations") {
					continue // no write says so
				}
				if name == "slow" && !strings.HasSuffix(target, "check") && !strings.HasSuffix(target, "evaluation") {
					continue // two of them take long enough
				}
				before := len(w.log.String())
				in := body
				if strings.HasPrefix(target, "/access/") {
					in = evaluation(user("u"), "view", "document", "d")
				}
				if target == simulatePath {
					in = object{"assume": object{}, "check": check(user("u"), "view", resource("document", "d"))}
				}
				a := c.want(t, tc.status, tc.code, "POST", target, in)
				if strings.Contains(a.text, "secret") {
					t.Errorf("the client is told too much: %s", a.text)
				}
				logged := strings.Count(w.log.String()[before:], `"level":"ERROR"`)
				if want := map[bool]int{true: 1, false: 0}[tc.status == 500]; logged != want {
					t.Errorf("%s: logged %d errors, want %d", target, logged, want)
				}
				if tc.status == 500 && !strings.Contains(w.log.String()[before:], a.header.Get("X-Request-Id")) {
					t.Error("the request id does not lead to the fault")
				}
				if retry := a.header.Get("Retry-After"); (tc.status == 503) != (retry != "") {
					t.Errorf("Retry-After is %q", retry)
				}
				if name == "busy" {
					equal(t, "Retry-After", a.header.Get("Retry-After"), "2")
				}
			}
			if tc.status >= 500 && name != "slow" {
				a := c.load(t, "", "", lineOf("d", "viewer", user("ann")))
				if a.status != tc.status || a.code() != tc.code || strings.Contains(a.text, "secret") {
					t.Errorf("import: %d %s", a.status, a.text)
				}
				if name != "panic" { // which ends the connection
					f.firstLine = 2
					lines := told(t, c.load(t, "?chunk_size=1", "", lineOf("d", "viewer", user("ann")), lineOf("d", "viewer", user("bob"))))
					if last := lines[len(lines)-1]; len(lines) != 2 || !strings.Contains(last, `"error":"`+tc.code+`","event":"failed"`) || strings.Contains(last, "secret") {
						t.Errorf("import: %v", lines)
					}
					f.firstLine = 0
				}
				for method, target := range map[string]string{"GET": orgsPath, "POST": orgsPath + "/org_x/tenants/tnt_x/suspend"} {
					before := len(w.log.String())
					a := ann.want(t, tc.status, "INTERNAL_ERROR", method, target, nil)
					if equal(t, "field errors", faultsOf(t, a), []string(nil)); strings.Contains(a.text, "secret") || (tc.status == 503) != (a.header.Get("Retry-After") != "") {
						t.Errorf("%s: %s %v", target, a.text, a.header)
					}
					if tc.status == 500 && !strings.Contains(w.log.String()[before:], a.meta("request_id").(string)) {
						t.Error("the request id does not lead to the fault")
					}
				}
			}
			if name == "unknown" { // a stream that has not begun can still fail
				c.want(t, tc.status, tc.code, "GET", "/api/v1/resources/watch", nil)
			}
			if tc.oauth != "" {
				for _, target := range []string{"/oauth2/token", "/oauth2/par", "/oauth2/device_authorization", introspectPath, revokePath, "/federation/partner/backchannel-logout"} {
					a := c.present(t, target, nil, form)
					if a.status != tc.status || a.code() != tc.oauth {
						t.Errorf("%s: %d %s, want %d %s", target, a.status, a.text, tc.status, tc.oauth)
					}
				}
				c.want(t, tc.status, tc.oauth, "POST", registerPath, object{})
				for _, method := range []string{"GET", "PUT", "DELETE"} {
					c.want(t, tc.status, tc.oauth, method, registerPath+"/x", object{})
				}
			}
		})
	}
	// The server still works.
	relate(t, c, "document", "d", "viewer", user("u"))
	equal(t, "afterwards", allowed(t, c, user("u"), "view", "document", "d"), true)
}

func TestDevelopmentServesTheFirstTenantOnLoopback(t *testing.T) {
	w := newWorld(t, databases["SQLite"](t), func(c *api.Config) { c.Dev = true })
	first := w.tenant(t, "first")
	w.tenant(t, "second")
	for _, host := range []string{"localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"} {
		c := &client{server: first.server, host: host, token: first.token}
		a := c.want(t, http.StatusOK, "", "GET", "/.well-known/openid-configuration", nil)
		equal(t, host, a.body["issuer"], "https://first.test")
		c.want(t, http.StatusOK, "", "GET", "/api/v1/resource-types", nil)
	}
	c := &client{server: first.server, host: "192.0.2.1", token: first.token}
	c.want(t, http.StatusNotFound, "tenant_not_found", "GET", "/api/v1/resource-types", nil)
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := api.New(api.Config{}); err == nil {
		t.Error("an empty configuration was accepted")
	}
	w := newWorld(t, databases["SQLite"](t), nil)
	for name, change := range map[string]func(*api.Config){
		"no organisations": func(c *api.Config) { c.Organizations = nil },
		"no address":       func(c *api.Config) { c.ControlURL = "://" },
	} {
		config := w.config
		config.Metrics = prometheus.NewRegistry()
		if change(&config); config.ControlURL == "" {
			t.Fatal("there is no control plane")
		}
		if _, err := api.New(config); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
