package eventlog

import "context"

type originKey struct{}

// WithOrigin returns a context in which changes have an origin, which is the one of
// their events. origin is called when there is an event to write, if ever.
func WithOrigin(ctx context.Context, origin func() Origin) context.Context {
	return context.WithValue(ctx, originKey{}, origin)
}

// AsProduct returns the context of changes that the product makes without a caller.
func AsProduct(ctx context.Context) context.Context {
	return WithOrigin(ctx, func() Origin { return Origin{} })
}

// OriginOf returns the origin of changes in a context; zero for the product itself.
func OriginOf(ctx context.Context) Origin {
	if origin, ok := ctx.Value(originKey{}).(func() Origin); ok {
		return origin()
	}
	return Origin{}
}

// Of is an event of a change that is made in ctx; see [New].
func Of(ctx context.Context, t Type, data any) Event { return New(t, OriginOf(ctx), data) }
