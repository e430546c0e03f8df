package tracing

import (
	"context"
	"iter"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is a span that is recorded, or, as its zero value, one that is not, on which all
// methods do nothing.
type Span struct{ span trace.Span }

// Start starts a child of the span in ctx. The caller ends it.
func Start(ctx context.Context, name string) (context.Context, Span) {
	if open.Load() == 0 {
		return ctx, Span{}
	}
	return start(ctx, name, trace.SpanKindInternal)
}

// StartClient is [Start] for a request to another system.
func StartClient(ctx context.Context, name string) (context.Context, Span) {
	if open.Load() == 0 {
		return ctx, Span{}
	}
	return start(ctx, name, trace.SpanKindClient)
}

// StartShared is [Start] for work that serves several requests at once, given by their
// contexts. The span is a child of the first that is recorded, and is linked to the others.
// The context that is returned derives from ctx.
func StartShared(ctx context.Context, name string, requests iter.Seq[context.Context]) (context.Context, Span) {
	if open.Load() == 0 {
		return ctx, Span{}
	}
	var span Span
	for request := range requests {
		of := Current(request)
		switch {
		case of.span == nil:
		case span.span == nil:
			ctx, span = start(of.In(ctx), name, trace.SpanKindInternal)
		default:
			span.span.AddLink(trace.Link{SpanContext: of.span.SpanContext()})
		}
	}
	return ctx, span
}

func start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, Span{span}
}

// Current is the span in ctx.
func Current(ctx context.Context) Span {
	if open.Load() == 0 {
		return Span{}
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return Span{span}
	}
	return Span{}
}

// In returns ctx with the span in it, or ctx if the span is not recorded.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// IsRecorded reports whether the span is recorded, for attributes that cost something.
func (s Span) IsRecorded() bool { return s.span != nil }

// Name renames the span.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// String sets an attribute. It is left out if it is empty.
func (s Span) String(key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Int sets an attribute.
func (s Span) Int(key string, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// Bool sets an attribute.
func (s Span) Bool(key string, value bool) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Bool(key, value))
	}
}

// Fail marks the span as failed. kind is the kind of error, one of few words.
func (s Span) Fail(kind string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String("error.type", kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// End ends the span, with an error as failed. Of the error only its kind is recorded.
// Calls after the first do nothing.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil && s.span.IsRecording() {
		s.Fail(kindOf(err))
	}
	s.span.End()
}
