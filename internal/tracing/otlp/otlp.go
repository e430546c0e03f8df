// Package otlp exports the spans of package tracing by OTLP over HTTP.
//
// The exporter runs in the background behind a bounded queue. When the receiver is slow or
// down, spans are dropped, a warning is logged once a minute, and no request waits.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"stonetown/internal/tracing"
)

const (
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

// New starts a tracer. Its Close exports the spans that have ended, for at most two seconds.
func New(c Config) (*tracing.Tracer, error) {
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
	e := &exporter{SpanExporter: c.Exporter, log: c.Logger}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(described),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(c.Sample))),
		sdktrace.WithBatcher(e, sdktrace.WithMaxQueueSize(queueSize), sdktrace.WithExportTimeout(exportTime)),
	)
	return tracing.New(provider, func() { e.flush(provider) }), nil
}

// flush exports the spans that have ended, and ends the provider.
func (e *exporter) flush(p *sdktrace.TracerProvider) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		e.log.Warn("spans are lost: the last export was not finished", "error", err)
		// It ends an export in progress, for which the provider no longer waits.
		_ = e.SpanExporter.Shutdown(context.Background())
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
