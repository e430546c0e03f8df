package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
)

// Allowed asks for the resources on which a subject may perform actions.
type Allowed struct {
	Subject  Subject         `json:"subject"`
	Queries  []Allowance     `json:"queries"`
	IDPrefix string          `json:"id_prefix,omitempty"`
	Context  json.RawMessage `json:"context,omitempty"` // values for conditions
	At       string          `json:"at,omitempty"`      // a token or an instant
}

// Allowance is an action on the resources of a type.
type Allowance struct {
	Type   string `json:"type"`
	Action string `json:"action"`
}

// AllowedResource is a resource with the actions that are allowed.
type AllowedResource struct {
	Ref
	Actions []string `json:"actions"`
}

// Holders asks for the subjects of a kind that may perform an action on a resource.
type Holders struct {
	Resource        Ref             `json:"resource"`
	Action          string          `json:"action"`
	SubjectType     string          `json:"subject_type"`
	SubjectRelation string          `json:"subject_relation,omitempty"`
	IDPrefix        string          `json:"id_prefix,omitempty"`
	Context         json.RawMessage `json:"context,omitempty"` // values for conditions
	At              string          `json:"at,omitempty"`      // a token or an instant
}

// Holder is a subject of a list. Excluded: it is not allowed, although the wildcard is.
type Holder struct {
	Subject
	Excluded bool `json:"excluded,omitempty"`
}

// Count is a number of resources. It is not exact if there are more.
type Count struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"`
}

// AllowedResources iterates over the resources that a subject is allowed.
func (c *Client) AllowedResources(ctx context.Context, a Allowed) iter.Seq2[Stored[AllowedResource], error] {
	return all(func(cursor string) (Page[AllowedResource], error) {
		return question[AllowedResource](ctx, c, "/list-resources", struct {
			Allowed
			paging
		}{a, pageFrom(cursor)})
	})
}

// CountAllowed counts the resources that a subject is allowed, up to a limit.
func (c *Client) CountAllowed(ctx context.Context, a Allowed, limit int) (Count, error) {
	n, _, err := call[Count](ctx, c, request{method: http.MethodPost, path: resourcesPath + "/list-resources/count", asks: true, body: struct {
		Allowed
		Limit int `json:"limit"`
	}{a, limit}})
	return n, err
}

// AllowedSubjects iterates over the subjects that may perform an action.
func (c *Client) AllowedSubjects(ctx context.Context, h Holders) iter.Seq2[Stored[Holder], error] {
	return all(func(cursor string) (Page[Holder], error) {
		return question[Holder](ctx, c, "/list-subjects", struct {
			Holders
			paging
		}{h, pageFrom(cursor)})
	})
}

// Abilities asks for the actions that a subject may perform on a resource.
type Abilities struct {
	Subject  Subject         `json:"subject"`
	Resource Ref             `json:"resource"`
	Context  json.RawMessage `json:"context,omitempty"` // values for conditions
	At       string          `json:"at,omitempty"`      // a token or an instant
}

// AllowedActions lists the actions that a subject may perform on a resource.
func (c *Client) AllowedActions(ctx context.Context, a Abilities) ([]string, error) {
	list, _, err := call[struct {
		Actions []string `json:"actions"`
	}](ctx, c, request{method: http.MethodPost, path: resourcesPath + "/list-actions", asks: true, body: a})
	return list.Actions, err
}

// Proof is one proof of a check.
type Proof struct {
	Reasons   []Reason `json:"reasons"`
	ExpiresAt string   `json:"expires_at,omitempty"` // RFC 3339: when the first of its relations expires
}

// Proofs iterates over the proofs of a check.
func (c *Client) Proofs(ctx context.Context, q Question) iter.Seq2[Stored[Proof], error] {
	return all(func(cursor string) (Page[Proof], error) {
		return question[Proof](ctx, c, "/list-proofs", struct {
			Question
			paging
		}{q, pageFrom(cursor)})
	})
}

// paging is the page of a list that a body asks for.
type paging struct {
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor,omitempty"`
}

func pageFrom(cursor string) paging { return paging{pageSize, cursor} }

// question reads a page of a list that a body asks for.
func question[T any](ctx context.Context, c *Client, path string, body any) (Page[T], error) {
	items, answer, err := call[[]Stored[T]](ctx, c, request{method: http.MethodPost, path: resourcesPath + path, body: body, asks: true})
	return Page[T]{Items: items, Next: answer.meta.NextCursor}, err
}
