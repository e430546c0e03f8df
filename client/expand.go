package client

import (
	"context"
	"net/http"
)

// Expand asks for the tree of rewrites and relations behind an action on a resource.
type Expand struct {
	Resource Ref    `json:"resource"`
	Action   string `json:"action"`
	Depth    int    `json:"depth"`        // how often it goes on to another resource or group, at most 50
	At       string `json:"at,omitempty"` // a token or an instant
}

// Expansion is a node of the tree.
type Expansion struct {
	Kind     string      `json:"kind"` // of the rewrite
	Resource Ref         `json:"resource"`
	Relation string      `json:"relation"`
	Tupleset string      `json:"tupleset,omitempty"` // of a tuple_to_userset: the relation that links
	Mode     string      `json:"mode,omitempty"`     // of a tuple_to_userset: "all" if every child must hold
	Links    []Member    `json:"links,omitempty"`    // of a tuple_to_userset: the relations that link
	Subjects []Member    `json:"subjects,omitempty"` // of a this: its relations
	Children []Expansion `json:"children,omitempty"` // of an exclusion: the base, and what is subtracted
	Cut      string      `json:"cut,omitempty"`      // why the node is not expanded: depth or cycle
}

// Member is the subject of a relation in an expansion. Conditions are not evaluated.
type Member struct {
	Subject   Subject    `json:"subject"`
	ExpiresAt string     `json:"expires_at,omitempty"` // RFC 3339
	Condition *Condition `json:"condition,omitempty"`
}

// Expand returns the tree behind an action (Zanzibar §2.4.5). Relations that have expired are left out.
func (c *Client) Expand(ctx context.Context, e Expand) (Expansion, error) {
	root, _, err := call[Expansion](ctx, c, request{method: http.MethodPost, path: resourcesPath + "/expand", asks: true, body: e})
	return root, err
}
