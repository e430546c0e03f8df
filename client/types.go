package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
)

// BuiltinTypes exist in every tenant. The API does not list them, although resources of them
// can be registered and groups have relations.
var BuiltinTypes = []string{"user", "application", "group", "audience"}

// Type has the members of a resource type that this package needs; the others are in its JSON.
type Type struct {
	Name string `json:"name"`
}

const typesPath = "/api/v1/resource-types"

// Types lists the resource types, newest first.
func (c *Client) Types(ctx context.Context) iter.Seq2[Stored[Type], error] {
	return all(func(cursor string) (Page[Type], error) { return page[Type](ctx, c, typesPath, nil, cursor) })
}

// Type returns a resource type.
func (c *Client) Type(ctx context.Context, name string) (Stored[Type], error) {
	t, _, err := call[Stored[Type]](ctx, c, request{method: http.MethodGet, path: typesPath + "/" + segment(name)})
	return t, err
}

// DeleteType deletes a resource type that is not in use.
func (c *Client) DeleteType(ctx context.Context, name string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: typesPath + "/" + segment(name)})
	return err
}

// segment escapes text as one segment of a path that does not lead elsewhere.
func segment(text string) string {
	switch text {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return url.PathEscape(text)
}
