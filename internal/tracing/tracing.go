// Package tracing records the spans of requests with OpenTelemetry.
// [stonetown/internal/tracing/otlp] exports them.
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
package tracing

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
)

// scope names the instrumentation in every span.
const scope = "stonetown"

// Tracer starts spans. It is safe for concurrent use. A nil Tracer records nothing.
type Tracer struct {
	tracer   trace.Tracer
	shutdown func()
}

// open counts the tracers of the process that are not closed.
var open atomic.Int64

// New returns a tracer of a provider. Close calls shutdown, which ends the provider.
func New(p trace.TracerProvider, shutdown func()) *Tracer {
	open.Add(1)
	return &Tracer{p.Tracer(scope), shutdown}
}

// Close ends the tracer and its provider. It is called once.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	open.Add(-1)
	t.shutdown()
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
