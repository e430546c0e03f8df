package client

import (
	"context"
	"encoding/json"
	"net/http"

	"stonetown/internal/notation"
)

// TypesChange is a change of several resource types at once.
type TypesChange struct {
	Renames []notation.Rename `json:"renames,omitempty"` // which come first
	Types   []json.RawMessage `json:"types,omitempty"`   // definitions in the form of the API
	Delete  []string          `json:"delete,omitempty"`
	// ExpectedRevision, if not empty, is the revision of the types for which the change was made.
	ExpectedRevision string `json:"expected_revision,omitempty"`
	// RequireAssertions refuses the change if a stored assertion fails with it. Plans ignore it.
	RequireAssertions bool `json:"require_assertions,omitempty"`
}

// Applied is the effect of a change on one type.
type Applied struct {
	Name   string `json:"name"`
	Change string `json:"change"` // created, updated, deleted or unchanged
}

// PlannedRename is a rename with the number of stored relations and resources that it concerns.
type PlannedRename struct {
	notation.Rename
	Count int  `json:"count"`
	Exact bool `json:"exact"` // there are not more
}

// TypesApplied is the effect of a change.
type TypesApplied struct {
	Changes []Applied         `json:"changes"`
	Renames []notation.Rename `json:"renames"`
}

// ApplyTypes makes a change, all or nothing.
func (c *Client) ApplyTypes(ctx context.Context, change TypesChange) (TypesApplied, error) {
	applied, _, err := call[TypesApplied](ctx, c, request{method: http.MethodPost, path: typesPath + "/apply", body: change})
	return applied, err
}

// PlanQuestion is a question that a plan answers before and after its change.
type PlanQuestion struct {
	Subject  Subject `json:"subject"`
	Action   string  `json:"action"`
	Resource Ref     `json:"resource"`
}

// TypesPlan is what a change would do.
type TypesPlan struct {
	Revision string          `json:"revision"` // of the types as they are
	Changes  []Applied       `json:"changes"`
	Renames  []PlannedRename `json:"renames"`
	// Illegal are the stored relations and resources that prevent the change.
	Illegal []struct {
		Type      string `json:"type"`
		Relation  string `json:"relation"`
		Condition string `json:"condition"`
		Reason    string `json:"reason"` // cardinality, if a resource has several and may have one
		Count     int    `json:"count"`
		Exact     bool   `json:"exact"`
		Samples   []struct {
			Resource Ref     `json:"resource"`
			Relation string  `json:"relation"`
			Subject  Subject `json:"subject"`
		} `json:"samples"`
	} `json:"illegal"`
	// Affected are the relations and actions whose answers may change.
	Affected []struct {
		Type      string   `json:"type"`
		Relations []string `json:"relations"`
		Actions   []string `json:"actions"`
	} `json:"affected"`
	Answers []PlannedAnswer `json:"answers"` // one for each question
	// Assertions are the stored assertions with the planned types.
	Assertions AssertionReport `json:"assertions"`
}

// PlannedAnswer is a decision before and after a change.
type PlannedAnswer struct {
	Before  PlannedDecision `json:"before"`
	After   PlannedDecision `json:"after"`
	Differs bool            `json:"differs"`
}

// PlannedDecision is a decision or the code of the reason why there is none.
type PlannedDecision struct {
	Allowed bool   `json:"allowed"`
	Error   string `json:"error"`
}

// String returns allowed, denied or the code of the reason.
func (d PlannedDecision) String() string {
	switch {
	case d.Error != "":
		return d.Error
	case d.Allowed:
		return "allowed"
	}
	return "denied"
}

// PlanTypes answers what a change would do. It also returns the plan as the server sent it.
// progress is called with the number of stored relations counted so far.
func (c *Client) PlanTypes(ctx context.Context, change TypesChange, questions []PlanQuestion, progress func(counted int)) (Stored[TypesPlan], error) {
	body := struct {
		TypesChange
		Questions []PlanQuestion `json:"questions,omitempty"`
	}{change, questions}
	plan, _, err := call[Stored[TypesPlan]](ctx, c, request{
		method: http.MethodPost, path: typesPath + "/plan/stream", body: body, asks: true,
		progress: func(line []byte) {
			var p struct{ Counted int }
			if json.Unmarshal(line, &p) == nil {
				progress(p.Counted)
			}
		},
	})
	return plan, err
}
