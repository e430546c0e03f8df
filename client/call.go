package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
)

// Lines is a request body of JSON values in lines (application/x-ndjson).
type Lines []byte

// Call calls any operation of the API, such as POST /api/v1/users, also those that this package has
// no function for. The path is escaped, below the base URL; body, if not nil, is sent as JSON, or as
// it is if it is [Lines]. The result is the member data of the answer; it is empty if the answer has
// no body. A refusal is an [*Error].
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, body any) (json.RawMessage, error) {
	answer, err := c.do(ctx, request{method: method, path: path, query: query, body: body})
	return answer.data, err
}

// List lists the items of any operation that answers with pages. An error is the last item.
func (c *Client) List(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	items := all(func(cursor string) (Page[json.RawMessage], error) {
		return page[json.RawMessage](ctx, c, path, query, cursor)
	})
	return func(yield func(json.RawMessage, error) bool) {
		for item, err := range items {
			if !yield(item.JSON, err) {
				return
			}
		}
	}
}
