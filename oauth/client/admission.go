package client

import (
	"context"
	"errors"

	"stonetown/oauth/protocol"
)

// onceOnly are the assertions and proofs of a request, verified and not yet consumed. Each
// func consumes one.
type onceOnly []func(context.Context) error

// Start begins a request that has presented nothing yet.
func (c *Credentials) Start() { c.once = new(onceOnly) }

// Admit counts a request against the limit of the user or client that key names, and then
// consumes its assertion and proof. It precedes every change that the request makes, so that a
// client over its limit can send the same request again.
func (s *Authenticator) Admit(ctx context.Context, c Credentials, key string) error {
	if c.Limit != nil {
		if err := c.Limit(ctx, key); err != nil {
			return err
		}
	}
	return c.useUp(ctx)
}

// useUp consumes the assertion and the proof of the request. The second time it does nothing.
func (c Credentials) useUp(ctx context.Context) error {
	if c.once == nil {
		return nil
	}
	uses := *c.once
	*c.once = nil
	for _, use := range uses {
		if err := use(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Client is [Authenticator.Authenticate] and [Authenticator.Admit].
func (s *Authenticator) Client(ctx context.Context, tenant protocol.Tenant, c Credentials) (Application, error) {
	app, err := s.Authenticate(ctx, tenant, &c)
	if err == nil {
		err = s.Admit(ctx, c, app.ClientID)
	}
	return app, err
}

// Refused consumes the assertion and the proof of a refused request, which must not serve for
// another one, and returns the refusal. A request over its limit is not refused.
func (c Credentials) Refused(ctx context.Context, err error) error {
	var refusal *protocol.Error
	if errors.As(err, &refusal) {
		if failure := c.useUp(ctx); failure != nil && !errors.As(failure, &refusal) {
			return failure
		}
	}
	return err
}
