// Package tracing records the spans of requests with OpenTelemetry and exports them by
// OTLP over HTTP.
//
// A [Tracer] starts the span of a request ([Tracer.Request]) or of a background job
// ([Tracer.Job]). Other packages add a child of the span in their context with [Start],
// and depend on neither a tracer nor the configuration. Without a recorded span in the context
// Start does nothing. In a process without a tracer it costs one atomic load and no
// allocation.
//
// The context of a trace crosses processes in the fields traceparent and tracestate (W3C
// Trace Context): Request reads them, [Transport] writes them.
//
// Spans hold names of operations, routes, tables and hosts, numbers, ids and kinds of
// errors. They never hold texts of errors, query strings, values of statements, tokens or
// e-mail addresses, so traces contain no data of tenants.
//
// The exporter runs in the background behind a bounded queue. When the receiver is slow or
// down, spans are dropped, a warning is logged once a minute, and no request waits.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	// scope names the instrumentation in every span.
	scope = "stonetown"
	// queueSize bounds the spans that wait for export, of about 1 KB each.
	queueSize = 8192
	// exportTime bounds the export of one batch, retries included.
	exportTime = 10 * time.Second
	// flushTime bounds the export of the remaining spans when the tracer is closed.
	flushTime = 2 * time.Second
)

// Config configures a tracer. URL, or Exporter, is required.
type Config struct {
	// URL is the OTLP/HTTP endpoint for traces, such as http://localhost:4318/v1/traces.
	URL string
	// Exporter takes the spans instead of URL.
	Exporter sdktrace.SpanExporter
	// Sample is the share of traces that is recorded, from 0 to 1. A request that comes
	// with a trace context follows the decision of its caller.
	Sample float64
	// Version is the version of the service.
	Version string
	// Logger gets errors of the export. Default: discarded.
	Logger *slog.Logger
}

// Tracer starts spans and exports them. It is safe for concurrent use. A nil Tracer
// records nothing.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	exporter *exporter
}

// open counts the tracers of the process that are not closed.
var open atomic.Int64

// New starts a tracer. Close ends it.
func New(c Config) (*Tracer, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	// OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME have the last word.
	described, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", "stonetown"), attribute.String("service.version", c.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	if c.Exporter == nil {
		if c.Exporter, err = otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(c.URL), otlptracehttp.WithTimeout(exportTime)); err != nil {
			return nil, fmt.Errorf("tracing: %w", err)
		}
	}
	t := &Tracer{exporter: &exporter{SpanExporter: c.Exporter, log: c.Logger}}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithResource(described),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(c.Sample))),
		sdktrace.WithBatcher(t.exporter, sdktrace.WithMaxQueueSize(queueSize), sdktrace.WithExportTimeout(exportTime)),
	)
	t.tracer = t.provider.Tracer(scope)
	open.Add(1)
	return t, nil
}

// Close exports the spans that have ended, for at most two seconds, and ends the tracer. It
// is called once.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	open.Add(-1)
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.exporter.log.Warn("spans are lost: the last export was not finished", "error", err)
		// It ends an export in progress, for which the provider no longer waits.
		_ = t.exporter.Shutdown(context.Background())
	}
}

// exporter logs the errors of another one, which would otherwise go to a handler that is
// global to the process.
type exporter struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	logged time.Time // when the last error was; exports do not overlap
	lost   int       // spans since then
}

// quiet is how long nothing is logged after an error.
const quiet = time.Minute

// ExportSpans implements [sdktrace.SpanExporter].
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	e.lost += len(spans)
	if now := time.Now(); now.Sub(e.logged) >= quiet {
		e.log.Warn("spans are lost: the export failed", "spans", e.lost, "error", err)
		e.logged, e.lost = now, 0
	}
	return nil
}

// kindOf names an error without data of the request: by the type of its innermost cause.
func kindOf(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	for {
		cause := errors.Unwrap(err)
		if cause == nil {
			return fmt.Sprintf("%T", err)
		}
		err = cause
	}
}
