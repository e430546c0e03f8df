package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"stonetown/api"
	apiaudit "stonetown/api/audit"
	"stonetown/api/branding"
	"stonetown/api/federation"
	"stonetown/api/flows"
	"stonetown/api/incidents"
	"stonetown/api/oauth2"
	"stonetown/api/people"
	apireports "stonetown/api/reports"
	apiresources "stonetown/api/resources"
	"stonetown/api/scim"
	"stonetown/api/settings"
	"stonetown/api/threatfeeds"
	"stonetown/api/web"
	"stonetown/api/webhooks"
	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/engine/assertions"
	"stonetown/engine/audit"
	"stonetown/engine/resources"
	"stonetown/internal/geo"
	"stonetown/internal/idempotency"
	"stonetown/internal/ratelimit"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
	"stonetown/server"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

var cursorKey = bytes.Repeat([]byte{7}, 32)

// everything implements all services below the API: it has one tenant, accepts every token,
// allows everything and stores the last request.
type everything struct {
	api.Engine
	apiresources.Store
	tokens
	web.Verifier

	asked tuplestore.Object
}

// noUsers, noAuthn and noScopes are never called.
type (
	users   = api.Users // a name that does not hide its method
	noUsers struct{ users }
	noAuthn struct{ api.Authn }
)

type noImporter struct{ people.Importer }

type noScopes struct{ api.Scopes }

type noSettings struct{ settings.Service }

type noWebhooks struct{ webhooks.Service }

type noConnections struct{ federation.Registry }

type noSignIns struct{ api.SignIns }

type noSAMLKeys struct{ settings.SAMLKeys }

type noSCIM struct{ scim.Service }

type noAudit struct{ apiaudit.Log }

type noIncidents struct{ incidents.Registry }

type noFlows struct{ flows.Registry }

type noThreats struct{ threatfeeds.Feeds }

type noReports struct{ apireports.Registry }

type noBranding struct{ api.Branding }

type noMails struct{ branding.Mails }

type noSAML struct{ oauth2.SAML }

func (noScopes) UnknownScopes(context.Context, *sqldb.Tx, string, []string) ([]string, error) {
	return nil, nil
}

func (*everything) TenantByHost(context.Context, string) (controlplane.Tenant, error) {
	return controlplane.Tenant{ID: "tnt_a", BaseURL: "https://a.test", State: controlplane.TenantActive}, nil
}

func (e *everything) FirstTenant(ctx context.Context) (controlplane.Tenant, error) {
	return e.TenantByHost(ctx, "")
}

func (*everything) Verify(context.Context, protocol.Tenant, string) (*token.Principal, error) {
	return &token.Principal{Subject: "app", Scopes: scope.Set{"resources:read": {}, "resources:write": {}}}, nil
}

func (e *everything) Get(_ context.Context, _, typ, id string) (resources.Resource, error) {
	e.asked = tuplestore.Object{Type: typ, ID: id}
	return resources.Resource{Type: typ, ExternalID: id}, nil
}

func (*everything) CheckInto(_ context.Context, _ string, req *engine.CheckRequest, res *engine.CheckResponse) error {
	res.Token = "token"
	for range req.Queries {
		res.Decisions = append(res.Decisions, engine.Decision{Allowed: true})
	}
	return nil
}

// pipeline returns the configuration of a pipeline without limits.
func pipeline(t testing.TB, e *everything) web.Config {
	t.Helper()
	ctx := context.Background()
	db, err := sqldb.Open(ctx, sqldb.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "keys.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(ctx, idempotency.Migrations(), ratelimit.Migrations()); err != nil {
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
	return web.Config{
		Tenants: e, Verifier: e, Idempotency: keys, Limits: unlimited{}, Origins: noOrigins{},
		Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	}
}

type noAssertions struct{ apiresources.Assertions }

func (noAssertions) List(context.Context, string) ([]assertions.Stored, error) { return nil, nil }

type unlimited struct{}

func (unlimited) Limit(ratelimit.Limits, ratelimit.Counted) ratelimit.Limit { return ratelimit.Limit{} }

func (unlimited) Take(context.Context, ratelimit.Bucket, ratelimit.Limit) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, nil
}

type noOrigins struct{}

func (noOrigins) OriginAllowed(context.Context, string, string, string) (bool, error) {
	return false, nil
}

func newHandler(t testing.TB) (http.Handler, *everything) {
	t.Helper()
	e := new(everything)
	h, err := api.New(api.Config{Engine: e, Resources: e, Assertions: noAssertions{}, Config: pipeline(t, e), Users: noUsers{}, Authn: noAuthn{}, Importer: noImporter{}, Scopes: noScopes{}, OAuth: api.OAuth{Tokens: e}, Settings: noSettings{}, Connections: noConnections{}, SignIns: noSignIns{}, SAMLKeys: noSAMLKeys{}, SAML: noSAML{}, SCIM: noSCIM{}, Audit: noAudit{}, Incidents: noIncidents{}, Flows: noFlows{}, Threats: noThreats{}, Reports: noReports{}, Branding: noBranding{}, Mails: noMails{}, Webhooks: noWebhooks{}, GeoIP: geo.None{}, CursorKey: cursorKey})
	if err != nil {
		t.Fatal(err)
	}
	return h, e
}

// FuzzExternalID sends ids in paths: valid ids arrive unchanged, others are refused.
func FuzzExternalID(f *testing.F) {
	for _, id := range []string{"a", "a/b", "%2F", "..", ".", "a b", "*", "\x00", "\xff", "", "/", "//", "ü", "?", "#", ";", "check", long(512), long(513)} {
		f.Add(id)
	}
	h, e := newHandler(f)
	f.Fuzz(func(t *testing.T, id string) {
		e.asked = tuplestore.Object{}
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://a.test/api/v1/resources/document/"+url.PathEscape(id), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		want := http.StatusOK
		switch {
		case id == "":
			want = http.StatusNotFound
		case len(id) > 512, !utf8.ValidString(id), strings.Contains(id, "\x00"), id == "*":
			want = http.StatusBadRequest
		}
		if w.Code != want {
			t.Fatalf("id %q: %d %s, want %d", id, w.Code, w.Body, want)
		}
		if w.Code == http.StatusOK && (e.asked != tuplestore.Object{Type: "document", ID: id}) {
			t.Fatalf("id %q arrived as %v", id, e.asked)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("id %q: the answer is not JSON: %s", id, w.Body)
		}
	})
}

// FuzzRequestBody sends bodies to an operation. The response has the form of the API and is
// never an internal error. The engine is real, so hostile types, conditions and contexts
// reach it.
func FuzzRequestBody(f *testing.F) {
	add := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	asked := with(check(user("ann"), "visitor", resource("area", "a")), object{
		"checks": []object{{"action": "visitor", "resource": resource("area", "a")}}, "context": object{"distance": 3, "ip": "10.0.0.1"},
		"contextual_relations": []object{contextualRelation("area", "a", "visitor", user("bob"))},
		"type":                 "area", "subject_type": "user", "relation": "visitor", "depth": 3, "limit": 2, "cursor": "x", "debug": true,
		"condition": condition("nearby", object{"limit": 5}), "expires_at": "2901-01-01T00:00:00Z",
		"operations": []object{op("create", "area", "a", "visitor", user("cid")), op("delete", "area", "a", "visitor", user("dan"))},
		"on_missing": "ok", "on_existing": "fail",
		"preconditions": []object{
			{"must_exist": object{"resource_type": "area", "external_id": "a", "relation": "visitor", "subject_type": "user", "subject_id": "ann"}},
			{"must_not_exist": object{"subject_type": "user", "subject_id": "cid", "resource_type": "area"}},
		},
	})
	add(asked)
	add(object{
		"subject": user("ann"), "queries": []object{{"type": "area", "action": "visitor"}, {"type": "area", "action": "entrant"}}, "limit": 2, "id_prefix": "a",
		"checks": []object{{"subject": user("bob"), "action": "visitor", "resource": resource("area", "a")}}, "ids": []string{"a", "b"}, "context": object{"distance": 3},
	})
	add(evaluation(user("ann"), "visitor", "area", "a"))
	add(object{"evaluations": []object{evaluation(user("ann"), "visitor", "area", "a")}, "page": object{"token": "x", "limit": 1}})
	add([]int{1})
	add("text")
	f.Add([]byte(conditionalType))
	f.Add([]byte(`{"name":"x","relations":[{"name":"r","rewrites":[{"kind":"exclusion","base":{"kind":"this"},"subtract":{"kind":"computed","relation":"r"}}]}]}`))

	f.Add([]byte(`{"types":[{"name":"x","relations":[{"name":"r"}]}],"delete":["area"],"questions":[{"subject":{"type":"user","id":"a"},"action":"visitor","resource":{"type":"area","external_id":"a"}}]}`))

	h := newRealHandler(f)
	targets := []string{
		"/api/v1/resource-types", planPath, applyPath, path("area", "a") + "/relations", "/api/v1/resources/relations/bulk",
		checkPath, batchPath, resourcesPath, resourcesPath + "/stream", countPath, actionsPath, proofsPath, subjectsPath, subjectsPath + "/stream", expandPath,
		"/access/v1/evaluation", "/access/v1/evaluations",
		"/access/v1/search/subject", "/access/v1/search/resource", "/access/v1/search/action",
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, target := range targets {
			r := httptest.NewRequest("POST", "http://a.test"+target, bytes.NewReader(text))
			r.Header.Set("Authorization", "Bearer x")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= 500 {
				t.Fatalf("%s %q: %d %s", target, text, w.Code, w.Body)
			}
			for line := range strings.Lines(w.Body.String()) {
				if !json.Valid([]byte(line)) {
					t.Fatalf("%s %q: %d %s", target, text, w.Code, w.Body)
				}
			}
		}
	})
}

// FuzzControlBody sends bodies to the operations of the control plane, as FuzzRequestBody does to
// others.
func FuzzControlBody(f *testing.F) {
	w := newWorldOn(f, sqldb.Config{URL: databases["SQLite"](f)}, nil, func(c *server.Config) {
		c.RateLimits[ratelimit.Counted{Family: ratelimit.Admin, By: ratelimit.Caller}] = ratelimit.Limit{}
	})
	ann, _ := w.console(f, w.tenant(f, "fuzz"), "ann")
	org := organization(f, ann, "fuzz")
	tenant := ann.want(f, 201, "", "POST", org+"/tenants", object{"slug": "fuzz-1", "name": "One"}).header.Get("Location")
	targets := map[string]string{}
	for path, item := range controlDocument().doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			text, err := json.Marshal(exampleOf(f, op.RequestBody.Value.Content["application/json"]))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
			path := strings.Replace(path, orgsPath+"/{org_id}/tenants/{tenant_id}", tenant, 1)
			targets[method+" "+strings.NewReplacer(orgsPath+"/{org_id}", org, "{", "", "}", "").Replace(path)] = method
		}
	}
	f.Add([]byte(`{"id":null,"slug":"a","name":"","role":"owner","email":"a@b.c","reason":1,"confirm":"fuzz-1"}`))
	config := w.config
	config.Metrics = prometheus.NewRegistry()
	h, err := api.New(config)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for target, method := range targets {
			r := httptest.NewRequest(method, "https://"+controlHost+strings.TrimPrefix(target, method+" "), bytes.NewReader(text))
			r.Header.Set("Authorization", "Bearer "+ann.token)
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var refused struct {
				Error struct {
					Code   string
					Fields []object `json:"field_errors"`
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &refused); err != nil || w.Code >= 500 || w.Code >= 400 && (refused.Error.Code == "" || refused.Error.Fields == nil) {
				t.Fatalf("%s %q: %d %s", target, text, w.Code, w.Body)
			}
		}
	})
}

// newRealHandler serves a real engine in memory.
func newRealHandler(t testing.TB) http.Handler {
	t.Helper()
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { store.Close() })
	real, err := engine.New(engine.Config{Store: store, MaxVisits: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(real.Close)
	e := new(everything)
	h, err := api.New(api.Config{Engine: audit.Engine{Engine: real}, Resources: e, Assertions: noAssertions{}, Config: pipeline(t, e), Users: noUsers{}, Authn: noAuthn{}, Importer: noImporter{}, Scopes: noScopes{}, OAuth: api.OAuth{Tokens: e}, Settings: noSettings{}, Connections: noConnections{}, SignIns: noSignIns{}, SAMLKeys: noSAMLKeys{}, SAML: noSAML{}, SCIM: noSCIM{}, Audit: noAudit{}, Incidents: noIncidents{}, Flows: noFlows{}, Threats: noThreats{}, Reports: noReports{}, Branding: noBranding{}, Mails: noMails{}, Webhooks: noWebhooks{}, GeoIP: geo.None{}, CursorKey: cursorKey})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range [][2]string{
		{"/api/v1/resource-types", conditionalType},
		{path("area", "a") + "/relations", `{"relation":"visitor","subject":{"type":"user","id":"ann"},"condition":{"name":"nearby","context":{"limit":5}}}`},
	} {
		r := httptest.NewRequest("POST", "http://a.test"+in[0], strings.NewReader(in[1]))
		r.Header.Set("Authorization", "Bearer x")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	return h
}

// discard is a response writer that keeps nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkCheckBatch measures the API's part of checks: all but the socket and the engine.
func BenchmarkCheckBatch(b *testing.B) {
	for _, n := range []int{1, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			items := make([]object, n)
			for i := range items {
				items[i] = object{"action": "view", "resource": resource("document", fmt.Sprintf("d%d", i))}
			}
			text, err := json.Marshal(object{"subject": user("u4711"), "checks": items})
			if err != nil {
				b.Fatal(err)
			}
			h, _ := newHandler(b)
			r := httptest.NewRequest("POST", "http://a.test/api/v1/resources/check-batch", nil)
			r.Header.Set("Authorization", "Bearer x")
			r.Header.Set("Content-Type", "application/json")
			r.Body = io.NopCloser(bytes.NewReader(text))
			first := httptest.NewRecorder()
			if h.ServeHTTP(first, r); first.Code != http.StatusOK {
				b.Fatal(first.Body)
			}
			w := discard{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader(text))
				clear(w.header)
				h.ServeHTTP(w, r)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "checks/s")
		})
	}
}
