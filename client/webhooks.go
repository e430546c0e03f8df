package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

const subscriptionsPath = "/api/v1/webhooks/subscriptions"

// Subscription is a webhook subscription to create.
type Subscription struct {
	Name   string   `json:"name"`
	URL    string   `json:"url"`
	Events []string `json:"events"` // patterns
}

// Subscribed is a subscription that was created.
type Subscribed struct {
	ID            string `json:"id"`
	SigningSecret string `json:"signing_secret"`
}

// Subscribe creates a webhook subscription.
func (c *Client) Subscribe(ctx context.Context, s Subscription) (Subscribed, error) {
	created, _, err := call[Subscribed](ctx, c, request{method: http.MethodPost, path: subscriptionsPath, body: s})
	return created, err
}

// Unsubscribe deletes a webhook subscription. It succeeds if there is none.
func (c *Client) Unsubscribe(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: subscriptionsPath + "/" + url.PathEscape(id)})
	if refused, ok := errors.AsType[*Error](err); ok && refused.Code == "subscription_not_found" {
		return nil
	}
	return err
}
