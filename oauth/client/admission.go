package client

import (
	"context"
	"errors"

	"stonetown/oauth/protocol"
)

// onceOnly is what a request presents that counts only once, an assertion or a DPoP proof,
// verified and not yet used up.
type onceOnly []func(context.Context) error

// Start begins a request that has presented nothing yet.
func (c *Credentials) Start() { c.once = new(onceOnly) }

// Admit counts a request of a client against a limit, keyed by the user or client that it
// is for, and then uses up what it presents only once. It comes before everything that the
// request changes, so that a client that is told to wait can send the same again.
func (s *Authenticator) Admit(ctx context.Context, c Credentials, key string) error {
	if c.Limit != nil {
		if err := c.Limit(ctx, key); err != nil {
			return err
		}
	}
	return c.useUp(ctx)
}

// useUp uses up what the request presents only once. The second time it does nothing.
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

// Client finds out which application asks, as [Service.authenticate] does, and admits the
// request.
func (s *Authenticator) Client(ctx context.Context, tenant protocol.Tenant, c Credentials) (Application, error) {
	app, err := s.Authenticate(ctx, tenant, &c)
	if err == nil {
		err = s.Admit(ctx, c, app.ClientID)
	}
	return app, err
}

// Refused uses up what a refused request presents only once, which must not serve for
// another request either, and returns the refusal. A request that is over a limit is not
// refused: it can be sent again.
func (c Credentials) Refused(ctx context.Context, err error) error {
	var refusal *protocol.Error
	if errors.As(err, &refusal) {
		if failure := c.useUp(ctx); failure != nil && !errors.As(failure, &refusal) {
			return failure
		}
	}
	return err
}
