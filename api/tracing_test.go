package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/prometheus/client_golang/prometheus"

	"stonetown/api"
	"stonetown/engine"
	"stonetown/internal/tracing"
	"stonetown/internal/tracing/otlp"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// spans stores the texts of the spans of requests, each once, and the secrets in the requests.
type spans struct {
	tracer *tracing.Tracer

	mu      sync.Mutex
	count   int
	names   map[string]bool
	keys    map[string]bool
	words   map[string]bool
	planted map[string]bool
}

func newSpans(t *testing.T) *spans {
	s := &spans{names: map[string]bool{}, keys: map[string]bool{}, words: map[string]bool{}, planted: map[string]bool{}}
	var err error
	if s.tracer, err = otlp.New(otlp.Config{Exporter: s, Sample: 1}); err != nil {
		t.Fatal(err)
	}
	return s
}

// ExportSpans implements [sdktrace.SpanExporter].
func (s *spans) ExportSpans(_ context.Context, list []sdktrace.ReadOnlySpan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range list {
		s.count++
		s.names[span.Name()], s.words[span.Name()], s.words[span.Status().Description] = true, true, true
		s.words[span.SpanContext().TraceState().String()] = true
		for _, a := range span.Attributes() {
			s.keys[string(a.Key)] = true
			if text := a.Value.String(); a.Key != "stonetown.request_id" || !requestID.MatchString(text) { // there are many of these
				s.words[text] = true
			}
		}
		for _, e := range span.Events() {
			s.words[e.Name], s.words[fmt.Sprint(e.Attributes)] = true, true
		}
	}
	return nil
}

// Shutdown implements [sdktrace.SpanExporter].
func (s *spans) Shutdown(context.Context) error { return nil }

var requestID = regexp.MustCompile(`^req_[A-Za-z0-9]{26}$`)

// plant stores the values of requests that must not be in spans.
func (s *spans) plant(server *httptest.Server) {
	next := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if _, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); len(token) > 8 {
			s.planted[token] = true
		}
		for _, cookie := range r.Cookies() {
			if len(cookie.Value) > 8 {
				s.planted[cookie.Value] = true
			}
		}
		if len(r.URL.RawQuery) > 8 {
			s.planted[r.URL.RawQuery] = true
		}
		for _, values := range r.URL.Query() {
			for _, value := range values {
				if len(value) > 16 && value != schema.WebhookSubscriptionType { // part of the names of tables
					s.planted[value] = true
				}
			}
		}
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// spanKeys are the attributes that a span may have. None may contain a path, a query string, a
// value of a statement, the text of an error, or the name of a user.
var spanKeys = regexp.MustCompile(`^(http\.request\.method|http\.route|http\.response\.status_code|url\.scheme|client\.address|server\.(address|port)|error\.type|` +
	`db\.(system\.name|operation\.name|operation\.batch\.size|collection\.name|query\.summary|response\.status_code)|` +
	`stonetown\.(tenant|request_id|queries|operations|writes|attempts|rolled_back|revision|resident))$`)

// noSecrets fails if the spans of all requests so far have secrets.
func (s *spans) noSecrets(t *testing.T) {
	s.tracer.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d spans with %d names and %d words, %d secrets planted", s.count, len(s.names), len(s.words), len(s.planted))
	for key := range s.keys {
		if !spanKeys.MatchString(key) {
			t.Errorf("spans have an attribute %s", key)
		}
	}
	for word := range s.words {
		if found := secrets.FindString(word); found != "" || strings.ContainsAny(word, "@?'$") {
			t.Errorf("a span has %q", word)
		}
		for secret := range s.planted {
			if strings.Contains(word, secret) {
				t.Errorf("a span has %q, in which a request came with %q", word, secret)
			}
		}
	}
	if !runsAll() {
		return
	}
	for _, name := range []string{"check", "issueToken", "engine.check", "engine.write", "engine.list_resources", "engine.list_subjects", "engine.expand", "tuplestore.commit", "transaction", "BATCH", "COMMIT", "GET"} {
		if !s.names[name] {
			t.Errorf("no span has the name %s", name)
		}
	}
}

// TestAccessLog logs a request once, with its trace and without secrets.
func TestAccessLog(t *testing.T) {
	s := newSpans(t)
	defer s.tracer.Close()
	var out bytes.Buffer
	w := newWorld(t, databases["SQLite"](t), func(c *api.Config) {
		c.Tracer, c.Logger = s.tracer, slog.New(tracing.LogHandler(slog.NewJSONHandler(&out, nil)))
	})
	c := w.tenant(t, "logged")
	for target, route := range map[string]string{
		"/api/v1/resources/document/hunter2?secret=hunter2": "/api/v1/resources/{type}/{external_id}",
		"/hunter2": "",
	} {
		out.Reset()
		header := http.Header{"Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, "X-Request-Id": {"theirs"}, "Authorization": {"Bearer " + c.token}}
		id := c.raw(t, "GET", target, header, "").Get("X-Request-Id")
		got := parse(t, out.String()).(map[string]any)
		for name, want := range (object{
			"msg": "request", "method": "GET", "route": route, "status": 404.0, "request_id": id, "client_request_id": "theirs",
			"client_ip": "127.0.0.1", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
		}) {
			equal(t, name, got[name], want)
		}
		if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), c.token) || got["bytes"].(float64) == 0 || got["duration"].(float64) == 0 {
			t.Error(out.String())
		}
	}
}

// BenchmarkTracing measures the cost of traces and of the access log for a check: in the
// engine, and in the API without the socket.
func BenchmarkTracing(b *testing.B) {
	discarded := func(b *testing.B, sample float64) *tracing.Tracer {
		tracer, err := otlp.New(otlp.Config{Exporter: nowhere{}, Sample: sample})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(tracer.Close)
		return tracer
	}
	w := newWorld(b, "sqlite://"+filepath.Join(b.TempDir(), "test.db"), nil)
	c := w.tenant(b, "traced")
	define(b, c)
	relate(b, c, "document", "d", "viewer", user("ann"))
	tenant, err := w.tenants.TenantByHost(b.Context(), c.host)
	if err != nil {
		b.Fatal(err)
	}
	request := engine.CheckRequest{
		Subject: tuplestore.Subject{Type: "user", ID: "ann"},
		Queries: []engine.Query{{Resource: tuplestore.Object{Type: "document", ID: "d"}, Action: "view"}},
	}
	var response engine.CheckResponse
	inEngine := func(b *testing.B, ctx context.Context) {
		b.ReportAllocs()
		for b.Loop() {
			if err := w.engine.CheckInto(ctx, tenant.ID, &request, &response); err != nil || !response.Decisions[0].Allowed {
				b.Fatal(err)
			}
		}
	}
	b.Run("engine/off", func(b *testing.B) { inEngine(b, b.Context()) })
	b.Run("engine/on", func(b *testing.B) {
		ctx, _ := discarded(b, 1).Request(b.Context(), httptest.NewRequest("GET", "/", nil))
		inEngine(b, ctx)
	})
	file, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	const body = `{"subject":{"type":"user","id":"ann"},"action":"view","resource":{"type":"document","external_id":"d"}}`
	inInterface := func(b *testing.B, change func(*api.Config)) {
		config := w.config
		config.Metrics = prometheus.NewRegistry()
		config.AccessLog, config.Logger = false, slog.New(slog.NewJSONHandler(file, nil))
		if change != nil {
			change(&config)
		}
		h, err := api.New(config)
		if err != nil {
			b.Fatal(err)
		}
		r := httptest.NewRequest("POST", "http://"+c.host+checkPath, nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Content-Type", "application/json")
		b.ReportAllocs()
		out := discard{http.Header{}}
		for b.Loop() {
			r.Body = io.NopCloser(strings.NewReader(body))
			clear(out.header)
			h.ServeHTTP(out, r)
		}
	}
	b.Run("interface/off", func(b *testing.B) { inInterface(b, nil) })
	b.Run("interface/sampled_out", func(b *testing.B) {
		tracer := discarded(b, 0)
		inInterface(b, func(c *api.Config) { c.Tracer = tracer })
	})
	b.Run("interface/on", func(b *testing.B) {
		tracer := discarded(b, 1)
		inInterface(b, func(c *api.Config) { c.Tracer = tracer })
	})
	b.Run("interface/access_log", func(b *testing.B) { inInterface(b, func(c *api.Config) { c.AccessLog = true }) })
}

// nowhere is an exporter of benchmarks.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }
