//go:build !js

package tracing

import (
	"context"
	"net"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Attributes of HTTP follow the semantic conventions of OpenTelemetry 1.44, without those
// that hold paths and query strings (url.path, url.query, url.full).

var propagator propagation.TraceContext

// Request starts the span of a request that the server has received. Its parent is the
// caller's span, if the request names one in a valid traceparent.
func (t *Tracer) Request(ctx context.Context, r *http.Request) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if len(r.Header["Traceparent"]) == 1 { // several contradict each other
		ctx = propagator.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	method := knownMethod(r.Method)
	ctx, span := t.root(ctx, method, trace.SpanKindServer)
	span.String("http.request.method", method)
	return ctx, span
}

// Job starts the span of work in the background, which is a trace of its own.
func (t *Tracer) Job(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return t.root(ctx, name, trace.SpanKindInternal)
}

func (t *Tracer) root(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	if !span.IsRecording() {
		return ctx, Span{}
	}
	return ctx, Span{span}
}

// knownMethod returns a standard method, or _OTHER.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return method
	}
	return "_OTHER"
}

// Transport sends requests by another transport, with the trace context of the request's
// context, each in a span that ends with the head of the response. The URL is not recorded
// but for its host.
func Transport(base http.RoundTripper) http.RoundTripper { return transport{base} }

type transport struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if open.Load() == 0 {
		return t.base.RoundTrip(r)
	}
	ctx, span := start(r.Context(), knownMethod(r.Method), trace.SpanKindClient)
	if trace.SpanContextFromContext(ctx).IsValid() {
		r = r.Clone(ctx)
		propagator.Inject(ctx, propagation.HeaderCarrier(r.Header))
	}
	if span.IsRecorded() {
		span.String("http.request.method", knownMethod(r.Method))
		host, port := r.URL.Host, r.URL.Port()
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		span.String("server.address", host)
		if n, err := strconv.Atoi(port); err == nil {
			span.Int("server.port", n)
		}
	}
	res, err := t.base.RoundTrip(r)
	if err == nil {
		span.Int("http.response.status_code", res.StatusCode)
		if res.StatusCode >= 400 {
			span.Fail(strconv.Itoa(res.StatusCode))
		}
	}
	span.End(err)
	return res, err
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (t transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
