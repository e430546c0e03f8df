package client

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
)

// pageSize is the maximum page size of the API.
const pageSize = 250

// Stored is a value that was read, with its JSON.
type Stored[T any] struct {
	Value T
	JSON  json.RawMessage
}

// UnmarshalJSON stores the text.
func (s *Stored[T]) UnmarshalJSON(text []byte) error {
	s.JSON = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, &s.Value)
}

// MarshalJSON returns the text.
func (s Stored[T]) MarshalJSON() ([]byte, error) { return s.JSON, nil }

// Page is a part of a list. The last one has an empty Next.
type Page[T any] struct {
	Items []Stored[T]
	Next  string
}

func page[T any](ctx context.Context, c *Client, path string, query url.Values, cursor string) (Page[T], error) {
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", strconv.Itoa(pageSize))
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	items, answer, err := call[[]Stored[T]](ctx, c, request{method: http.MethodGet, path: path, query: query})
	return Page[T]{Items: items, Next: answer.meta.NextCursor}, err
}

// all iterates over all pages. An error is the last item.
func all[T any](next func(cursor string) (Page[T], error)) iter.Seq2[Stored[T], error] {
	return func(yield func(Stored[T], error) bool) {
		for cursor := ""; ; {
			p, err := next(cursor)
			if err != nil {
				yield(Stored[T]{}, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if cursor = p.Next; cursor == "" {
				return
			}
		}
	}
}
