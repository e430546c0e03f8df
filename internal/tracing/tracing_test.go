package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"stonetown/internal/tracing"
	"stonetown/internal/tracing/otlp"
)

// recorder keeps the spans that were exported.
type recorder struct {
	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
}

func (r *recorder) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, spans...)
	return nil
}

func (r *recorder) Shutdown(context.Context) error { return nil }

// span returns the only span of a name.
func (r *recorder) span(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range r.spans {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans have the name %s", len(found), name)
	}
	return found[0]
}

func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	m := map[string]string{}
	for _, a := range s.Attributes() {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

// record runs f with a tracer and returns the spans.
func record(t *testing.T, sample float64, f func(*tracing.Tracer)) *recorder {
	t.Helper()
	r := new(recorder)
	tracer, err := otlp.New(otlp.Config{Exporter: r, Sample: sample})
	if err != nil {
		t.Fatal(err)
	}
	f(tracer)
	tracer.Close()
	return r
}

func request(traceparents ...string) *http.Request {
	r := httptest.NewRequest("GET", "http://a.test/path?token=secret", nil)
	for _, value := range traceparents {
		r.Header.Add("traceparent", value)
	}
	return r
}

func TestOffDoesNothing(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	var tracer *tracing.Tracer
	got, span := tracer.Request(ctx, request())
	if got != ctx || span.IsRecorded() {
		t.Error("a nil tracer has recorded a request")
	}
	allocs := testing.AllocsPerRun(100, func() {
		ctx, span := tracing.Start(ctx, "name")
		span.Int("queries", 1000)
		span.String("name", "value")
		tracing.Current(ctx).Bool("resident", true)
		span.End(io.EOF)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	tracer.Close()
}

func TestSpans(t *testing.T) {
	secret := errors.New("password hunter2 is wrong")
	r := record(t, 1, func(tracer *tracing.Tracer) {
		ctx, span := tracer.Request(t.Context(), request())
		span.Name("list")
		child, below := tracing.Start(ctx, "engine")
		below.Int("queries", 3)
		_, deepest := tracing.StartClient(child, "SELECT")
		deepest.End(fmt.Errorf("select: %w", secret))
		below.End(context.DeadlineExceeded)
		below.End(secret) // has no effect
		span.Fail("500")
		span.End(nil)
		if late, s := tracing.Start(ctx, "late"); s.IsRecorded() || late != ctx {
			t.Error("a span was started below one that has ended")
		}
	})
	root, engine, sql := r.span(t, "list"), r.span(t, "engine"), r.span(t, "SELECT")
	if root.Parent().IsValid() || engine.Parent().SpanID() != root.SpanContext().SpanID() || sql.Parent().SpanID() != engine.SpanContext().SpanID() {
		t.Error("a span has another parent")
	}
	if root.SpanKind() != trace.SpanKindServer || engine.SpanKind() != trace.SpanKindInternal || sql.SpanKind() != trace.SpanKindClient {
		t.Error("a span is of another kind")
	}
	for s, want := range map[sdktrace.ReadOnlySpan]string{root: "500", engine: "timeout", sql: "*errors.errorString"} {
		if got := attributes(s)["error.type"]; got != want {
			t.Errorf("%s: error.type is %q, want %q", s.Name(), got, want)
		}
	}
	if text := fmt.Sprint(root, engine, sql, root.Attributes(), sql.Attributes(), sql.Status(), sql.Events()); strings.Contains(text, "hunter2") || strings.Contains(text, "secret") {
		t.Error(text)
	}
	if !slices.Contains(r.spans[0].Resource().Attributes(), attribute.String("service.name", "stonetown")) {
		t.Error(r.spans[0].Resource())
	}
}

const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentID = "00f067aa0ba902b7"
)

// W3C Trace Context, §3.2 and §4.
func TestIncomingContext(t *testing.T) {
	for parent, recorded := range map[string]bool{"00-" + traceID + "-" + parentID + "-01": true, "00-" + traceID + "-" + parentID + "-00": false} {
		for _, sample := range []float64{0, 1} { // the caller decides
			r := record(t, sample, func(tracer *tracing.Tracer) {
				in := request(parent)
				in.Header.Set("tracestate", "vendor=1")
				ctx, span := tracer.Request(t.Context(), in)
				at := trace.SpanContextFromContext(ctx)
				if at.TraceID().String() != traceID || at.SpanID().String() == parentID || at.TraceState().String() != "vendor=1" || at.IsSampled() != recorded || span.IsRecorded() != recorded {
					t.Errorf("%s: %v", parent, at)
				}
				span.End(nil)
			})
			if want := map[bool]int{true: 1}[recorded]; len(r.spans) != want {
				t.Errorf("%s: %d spans", parent, len(r.spans))
			}
		}
	}
	for _, bad := range [][]string{
		{""},
		{"x"},
		{"00-" + traceID + "-" + parentID},
		{"ff-" + traceID + "-" + parentID + "-01"},
		{"00-" + strings.ToUpper(traceID) + "-" + parentID + "-01"},
		{"00-" + strings.Repeat("0", 32) + "-" + parentID + "-01"},
		{"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01"},
		{"00-" + traceID + "-" + parentID + "-01-more"},
		{"00-" + traceID + "-" + parentID + "-01", "00-" + traceID + "-" + parentID + "-01"},
		{strings.Repeat("a", 10000)},
	} {
		r := record(t, 1, func(tracer *tracing.Tracer) {
			_, span := tracer.Request(t.Context(), request(bad...))
			span.End(nil)
		})
		if s := r.span(t, "GET"); s.Parent().IsValid() || s.SpanContext().TraceID().String() == traceID {
			t.Errorf("%q: parent %v", bad, s.Parent())
		}
	}
}

func TestSampling(t *testing.T) {
	none := record(t, 0, func(tracer *tracing.Tracer) {
		ctx, span := tracer.Request(t.Context(), request())
		_, child := tracing.Start(ctx, "child")
		if span.IsRecorded() || child.IsRecorded() || tracing.Current(ctx).IsRecorded() {
			t.Error("recorded")
		}
		span.End(nil)
	})
	half := record(t, 0.5, func(tracer *tracing.Tracer) {
		for range 1000 {
			_, span := tracer.Request(t.Context(), request())
			span.End(nil)
		}
	})
	if len(none.spans) != 0 || len(half.spans) < 400 || len(half.spans) > 600 {
		t.Errorf("%d and %d spans", len(none.spans), len(half.spans))
	}
}

func TestSharedWork(t *testing.T) {
	var second trace.SpanContext
	r := record(t, 1, func(tracer *tracing.Tracer) {
		a, spanA := tracer.Request(t.Context(), request())
		b, spanB := tracer.Request(t.Context(), request())
		second = trace.SpanContextFromContext(b)
		spanA.Name("a")
		_, shared := tracing.StartShared(t.Context(), "commit", slices.Values([]context.Context{t.Context(), a, b}))
		shared.End(nil)
		spanA.End(nil)
		spanB.End(nil)
	})
	commit := r.span(t, "commit")
	if commit.Parent().SpanID() != r.span(t, "a").SpanContext().SpanID() || len(commit.Links()) != 1 || !commit.Links()[0].SpanContext.Equal(second) {
		t.Errorf("parent %v, links %v", commit.Parent(), commit.Links())
	}
}

func TestTransport(t *testing.T) {
	var got []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	client := http.Client{Transport: tracing.Transport(http.DefaultTransport)}
	defer client.CloseIdleConnections()
	get := func(ctx context.Context, url string) error {
		req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err == nil {
			res.Body.Close()
		}
		if req.Header.Get("traceparent") != "" {
			t.Error("the caller's request was changed")
		}
		return err
	}
	r := record(t, 1, func(tracer *tracing.Tracer) {
		in := request("00-" + traceID + "-" + parentID + "-01")
		in.Header.Set("tracestate", "vendor=1")
		ctx, span := tracer.Request(t.Context(), in)
		if err := get(ctx, server.URL+"/keys/hunter2?token=hunter2"); err != nil {
			t.Fatal(err)
		}
		if err := get(ctx, "http://127.0.0.1:1/hunter2"); err == nil {
			t.Error("no error")
		}
		span.Name("request")
		span.End(nil)
		// Without a trace there is no context, and in one that is not recorded there is.
		if err := get(t.Context(), server.URL); err != nil {
			t.Fatal(err)
		}
		ctx, _ = tracer.Request(t.Context(), request("00-"+traceID+"-"+parentID+"-00"))
		if err := get(ctx, server.URL); err != nil {
			t.Fatal(err)
		}
	})
	var sent []sdktrace.ReadOnlySpan
	for _, s := range r.spans {
		if s.Name() == "GET" {
			sent = append(sent, s)
		}
		if text := fmt.Sprint(s.Attributes(), s.Events(), s.Status()); strings.Contains(text, "hunter2") {
			t.Error(text)
		}
	}
	if len(sent) != 2 {
		t.Fatalf("%d spans of requests", len(sent))
	}
	a := attributes(sent[0])
	if a["server.address"] != "127.0.0.1" || a["server.port"] == "" || a["http.response.status_code"] != "418" || a["error.type"] != "418" || a["http.request.method"] != "GET" {
		t.Errorf("%v", a)
	}
	if a := attributes(sent[1]); a["error.type"] != "syscall.Errno" {
		t.Errorf("%v", a)
	}
	if want := "00-" + traceID + "-" + sent[0].SpanContext().SpanID().String() + "-01"; got[0].Get("traceparent") != want || got[0].Get("tracestate") != "vendor=1" {
		t.Errorf("%v, want %s", got[0], want)
	}
	if got[1].Get("traceparent") != "" || !strings.HasPrefix(got[2].Get("traceparent"), "00-"+traceID) || !strings.HasSuffix(got[2].Get("traceparent"), "-00") {
		t.Errorf("%v, %v", got[1], got[2])
	}
}

func TestLogHandler(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(tracing.LogHandler(slog.NewJSONHandler(&out, nil))).With("a", 1)
	record(t, 0, func(tracer *tracing.Tracer) {
		ctx, _ := tracer.Request(t.Context(), request("00-"+traceID+"-"+parentID+"-00"))
		log.InfoContext(ctx, "with")
		log.InfoContext(t.Context(), "without")
	})
	with, without, _ := strings.Cut(out.String(), "\n")
	if !strings.Contains(with, `"a":1,"trace_id":"`+traceID+`","span_id":"`) || strings.Contains(without, "trace_id") || !strings.Contains(without, `"a":1`) {
		t.Error(out.String())
	}
}

func TestConfig(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	t.Setenv("OTEL_SERVICE_NAME", "ours")
	r := record(t, 1, func(tracer *tracing.Tracer) {
		_, span := tracer.Job(t.Context(), "job")
		span.End(nil)
	})
	of := r.span(t, "job").Resource().Attributes()
	if !slices.Contains(of, attribute.String("deployment.environment.name", "test")) || !slices.Contains(of, attribute.String("service.name", "ours")) {
		t.Error(of)
	}
}
