package client

import (
	"context"
	"iter"
	"net/http"
)

// AssertionSet names a set of stored assertions; the others of its members are in its JSON.
type AssertionSet struct {
	Name       string `json:"name"`
	Assertions int    `json:"assertions"` // how many there are in it
}

// AssertionReport is the result of the stored assertions with planned types.
type AssertionReport struct {
	Sets       int `json:"sets"`
	Assertions int `json:"assertions"`
	Failed     int `json:"failed"`
	// Unreadable are the names of sets that the server cannot read.
	Unreadable []string `json:"unreadable"`
	Failures   []struct {
		Set      string   `json:"set"`
		Test     string   `json:"test"`
		Question string   `json:"question"`
		Expected []string `json:"expected"`
		Before   []string `json:"before"`
		After    []string `json:"after"`
	} `json:"failures"`
}

const assertionsPath = "/api/v1/assertions"

// AssertionSets lists the stored sets by name.
func (c *Client) AssertionSets(ctx context.Context) iter.Seq2[Stored[AssertionSet], error] {
	return all(func(cursor string) (Page[AssertionSet], error) {
		return page[AssertionSet](ctx, c, assertionsPath, nil, cursor)
	})
}

// AssertionSet returns a stored set.
func (c *Client) AssertionSet(ctx context.Context, name string) (Stored[AssertionSet], error) {
	set, _, err := call[Stored[AssertionSet]](ctx, c, request{method: http.MethodGet, path: assertionsPath + "/" + segment(name)})
	return set, err
}

// PutAssertionSet stores a set, in the form of the API.
func (c *Client) PutAssertionSet(ctx context.Context, name string, set any) (Stored[AssertionSet], error) {
	stored, _, err := call[Stored[AssertionSet]](ctx, c, request{method: http.MethodPut, path: assertionsPath + "/" + segment(name), body: set})
	return stored, err
}

// DeleteAssertionSet deletes a set.
func (c *Client) DeleteAssertionSet(ctx context.Context, name string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: assertionsPath + "/" + segment(name)})
	return err
}
