package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Question is a check: may a subject do something to a resource?
type Question struct {
	Subject          Subject         `json:"subject"`
	Action           string          `json:"action"`
	Resource         Ref             `json:"resource"`
	Context          json.RawMessage `json:"context,omitempty"` // values for conditions
	ConsistencyToken string          `json:"consistency_token,omitempty"`
	Explain          bool            `json:"debug,omitempty"`
}

// Decision is the answer to a [Question]. Reasons are those of an allowed check with an
// explanation.
type Decision struct {
	Allowed          bool     `json:"allowed"`
	Reasons          []Reason `json:"reasons,omitempty"`
	ConsistencyToken string   `json:"consistency_token"`
}

// Reason is a step from the resource to the subject.
type Reason struct {
	Via     string `json:"via"`
	Rewrite string `json:"rewrite"`
	Text    string `json:"text"`
}

// Check sends a check.
func (c *Client) Check(ctx context.Context, q Question) (Decision, error) {
	d, answer, err := call[Decision](ctx, c, request{method: http.MethodPost, path: resourcesPath + "/check", body: q, asks: true})
	d.ConsistencyToken = answer.meta.ConsistencyToken
	return d, err
}
