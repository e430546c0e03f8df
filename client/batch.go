package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// MaxBatch is the number of checks of the largest batch.
const MaxBatch = 1000

// Batch is checks that are answered from one state. Its other fields are as in [Question].
type Batch struct {
	Checks           []BatchCheck    `json:"checks"` // at most MaxBatch
	Context          json.RawMessage `json:"context,omitempty"`
	ConsistencyToken string          `json:"consistency_token,omitempty"`
	At               string          `json:"at,omitempty"`
}

// BatchCheck is a check of a batch.
type BatchCheck struct {
	Subject  Subject `json:"subject"`
	Action   string  `json:"action"`
	Resource Ref     `json:"resource"`
}

// BatchDecision is the answer to a check of a batch.
type BatchDecision struct {
	Allowed bool `json:"allowed"`
	// Error is the code of the reason why the check has no answer, such as resource_not_found; empty:
	// it has one.
	Error string `json:"error,omitempty"`
}

// Err returns an [*Error] if the check has no answer.
func (d BatchDecision) Err() error {
	if d.Error == "" {
		return nil
	}
	return &Error{Status: http.StatusOK, Code: d.Error, Message: "the check has no answer"}
}

// CheckBatch sends a batch, and returns the answers in its order with the consistency token of the
// state that they are from.
func (c *Client) CheckBatch(ctx context.Context, b Batch) (decisions []BatchDecision, token string, err error) {
	r := request{method: http.MethodPost, path: resourcesPath + "/check-batch", asks: true}
	b.ConsistencyToken = r.under(ctx, b.ConsistencyToken, b.At)
	r.body = b
	decisions, answer, err := call[[]BatchDecision](ctx, c, r)
	if err == nil && len(decisions) != len(b.Checks) {
		err = fmt.Errorf("%d decisions about %d checks", len(decisions), len(b.Checks))
	}
	return decisions, answer.meta.ConsistencyToken, err
}

// Allowed reports whether a subject may perform an action on a resource. See [Batcher] for many such
// questions at a time.
func (c *Client) Allowed(ctx context.Context, s Subject, action string, resource Ref) (bool, error) {
	d, err := c.Check(ctx, Question{Subject: s, Action: action, Resource: resource})
	return d.Allowed, err
}
