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
	At               string          `json:"at,omitempty"` // a token or an instant
	Explain          bool            `json:"debug,omitempty"`
}

// Decision is the answer to a [Question]. With an explanation, an allowed one has Reasons and
// a denied one a Denial.
type Decision struct {
	Allowed          bool     `json:"allowed"`
	Reasons          []Reason `json:"reasons,omitempty"`
	Denial           *Denial  `json:"denial,omitempty"`
	ConsistencyToken string   `json:"consistency_token"`
}

// Reason is a step from the resource to the subject.
type Reason struct {
	Via     string `json:"via"`
	Rewrite string `json:"rewrite"`
	Text    string `json:"text"`
}

// Denial has the ways in which a check would be allowed. Truncated: there may be more.
type Denial struct {
	Ways      []Way `json:"ways"`
	Truncated bool  `json:"truncated"`
}

// Way is a set of changes that is enough.
type Way struct {
	Relations  []Missing   `json:"relations,omitempty"`
	Exclusions []Exclusion `json:"exclusions,omitempty"`
}

// Missing is a relation that does not hold.
type Missing struct {
	Tuple
	State string `json:"state"`
}

// Exclusion is an exclusion in the definition of a relation that applies to the subject.
type Exclusion struct {
	Resource Ref      `json:"resource"`
	Relation string   `json:"relation"`
	Reasons  []Reason `json:"reasons"`
}

// Check sends a check.
func (c *Client) Check(ctx context.Context, q Question) (Decision, error) {
	d, answer, err := call[Decision](ctx, c, request{method: http.MethodPost, path: resourcesPath + "/check", body: q, asks: true})
	d.ConsistencyToken = answer.meta.ConsistencyToken
	return d, err
}
