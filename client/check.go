package client

import (
	"context"
	"encoding/json"
	"iter"
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

// Assumption is relations that a check assumes to be added and removed.
type Assumption struct {
	Add    []Tuple `json:"add,omitempty"`
	Remove []Tuple `json:"remove,omitempty"`
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

// Check sends a check. If the resource does not exist, it fails with an [*Error] that has the code
// resource_not_found.
func (c *Client) Check(ctx context.Context, q Question) (Decision, error) {
	r := request{method: http.MethodPost, path: resourcesPath + "/check", asks: true}
	q.ConsistencyToken = r.under(ctx, q.ConsistencyToken, q.At)
	r.body = q
	d, answer, err := call[Decision](ctx, c, r)
	d.ConsistencyToken = answer.meta.ConsistencyToken
	return d, err
}

// CheckAssuming sends a check under an assumption.
func (c *Client) CheckAssuming(ctx context.Context, a Assumption, q Question) (Decision, error) {
	type assume struct {
		Relations Assumption `json:"relations"`
	}
	d, answer, err := call[struct{ Check Decision }](ctx, c, request{method: http.MethodPost, path: resourcesPath + "/simulate", asks: true, body: struct {
		Assume assume   `json:"assume"`
		Check  Question `json:"check"`
	}{assume{a}, q}})
	d.Check.ConsistencyToken = answer.meta.ConsistencyToken
	return d.Check, err
}

// DecisionChange is a change of the answer to a check.
type DecisionChange struct {
	Allowed          bool     `json:"allowed"`
	Error            string   `json:"error,omitempty"` // why there is no answer
	At               string   `json:"at"`
	Cause            string   `json:"cause"`
	Actor            string   `json:"actor,omitempty"`
	Reasons          []Reason `json:"reasons,omitempty"`
	ConsistencyToken string   `json:"consistency_token"`
}

// HistoryEnd is what is known of the time before the changes of a history.
type HistoryEnd struct {
	Ended bool `json:"history_ended"` // earlier changes are not retained
	// Proof has the relations that prove an answer which is older than the retained history.
	Proof []Stored[ProvingRelation] `json:"proof,omitempty"`
}

// ProvingRelation is a relation with its origin.
type ProvingRelation struct {
	Tuple
	CreatedAt string `json:"created_at"`
	CreatedBy string `json:"created_by"`
}

// CheckHistory iterates over the changes of the answer to a check, newest first, and then sets end.
func (c *Client) CheckHistory(ctx context.Context, q Question, end *HistoryEnd) iter.Seq2[Stored[DecisionChange], error] {
	return all(func(cursor string) (Page[DecisionChange], error) {
		items, answer, err := call[[]Stored[DecisionChange]](ctx, c, request{method: http.MethodPost, path: resourcesPath + "/check-history", asks: true, body: struct {
			Question
			Limit  int    `json:"limit"`
			Cursor string `json:"cursor,omitempty"`
		}{q, 100, cursor}})
		*end = answer.meta.HistoryEnd
		return Page[DecisionChange]{Items: items, Next: answer.meta.NextCursor}, err
	})
}
