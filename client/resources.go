package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
)

const resourcesPath = "/api/v1/resources"

// Resource is a registered resource. A write without Attributes keeps the existing ones.
type Resource struct {
	Ref
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

// Resources lists the resources of a type, newest first.
func (c *Client) Resources(ctx context.Context, typ string) iter.Seq2[Stored[Resource], error] {
	return all(func(cursor string) (Page[Resource], error) { return c.ResourcesPage(ctx, typ, cursor) })
}

// ResourcesPage returns one page of [Client.Resources].
func (c *Client) ResourcesPage(ctx context.Context, typ, cursor string) (Page[Resource], error) {
	return page[Resource](ctx, c, resourcesPath, url.Values{"type": {typ}}, cursor)
}

// PutResource registers a resource or replaces its attributes.
func (c *Client) PutResource(ctx context.Context, r Resource) (created bool, err error) {
	answer, err := c.do(ctx, request{method: http.MethodPost, path: resourcesPath, body: r})
	return answer.status == http.StatusCreated, err
}
