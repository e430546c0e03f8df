package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Tuple relates a subject to a resource, possibly with an expiry and a condition.
type Tuple struct {
	Resource  Ref        `json:"resource"`
	Relation  string     `json:"relation"`
	Subject   Subject    `json:"subject"`
	ExpiresAt string     `json:"expires_at,omitempty"` // RFC 3339
	Condition *Condition `json:"condition,omitempty"`
}

// String formats the tuple as resource#relation@subject.
func (t Tuple) String() string {
	return t.Resource.String() + "#" + t.Relation + "@" + t.Subject.String()
}

// hasExpired reports whether the tuple has expired. The server refuses a time that is not
// valid.
func (t Tuple) hasExpired(now time.Time) bool {
	at, err := time.Parse(time.RFC3339Nano, t.ExpiresAt)
	return err == nil && !at.After(now)
}

// Condition is a condition of the resource type that must be met.
type Condition struct {
	Name    string          `json:"name"`
	Context json.RawMessage `json:"context,omitempty"`
}

// Relations lists the direct relations of a resource, all or those with a name, ordered by
// relation and subject.
func (c *Client) Relations(ctx context.Context, resource Ref, relation string) iter.Seq2[Stored[Tuple], error] {
	return all(func(cursor string) (Page[Tuple], error) { return c.RelationsPage(ctx, resource, relation, cursor) })
}

// RelationsPage returns one page of [Client.Relations].
func (c *Client) RelationsPage(ctx context.Context, resource Ref, relation, cursor string) (Page[Tuple], error) {
	query := url.Values{}
	if relation != "" {
		query.Set("relation", relation)
	}
	return page[Tuple](ctx, c, relationsPath(resource), query, cursor)
}

// SubjectFilter selects relations by their subject. Empty fields select all values: without a
// relation, the usersets of the subject are included.
type SubjectFilter struct {
	Subject                            Subject
	ResourceType, ExternalID, Relation string
}

func (f SubjectFilter) query() url.Values {
	query := url.Values{"subject_type": {f.Subject.Type}, "subject_id": {f.Subject.ID}}
	for name, value := range map[string]string{
		"subject_relation": f.Subject.Relation, "resource_type": f.ResourceType, "external_id": f.ExternalID, "relation": f.Relation,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

const relationsOfSubjects = "/api/v1/relations"

// SubjectRelations lists the direct relations of a subject, ordered by resource and relation.
func (c *Client) SubjectRelations(ctx context.Context, f SubjectFilter) iter.Seq2[Stored[Tuple], error] {
	return all(func(cursor string) (Page[Tuple], error) {
		return page[Tuple](ctx, c, relationsOfSubjects, f.query(), cursor)
	})
}

// DeleteSubjectRelations deletes the direct relations of a subject in as many requests as
// necessary, and returns the number of deleted relations, also after an error.
func (c *Client) DeleteSubjectRelations(ctx context.Context, f SubjectFilter) (deleted int, err error) {
	for {
		answer, _, err := call[struct {
			Deleted int  `json:"deleted"`
			HasMore bool `json:"has_more"`
		}](ctx, c, request{method: http.MethodDelete, path: relationsOfSubjects, query: f.query()})
		deleted += answer.Deleted
		if err != nil || !answer.HasMore {
			return deleted, err
		}
	}
}

// CreateRelation writes a relation. An existing relation gets the given expiry and condition.
func (c *Client) CreateRelation(ctx context.Context, t Tuple) (created bool, err error) {
	answer, err := c.do(ctx, request{method: http.MethodPost, path: relationsPath(t.Resource), body: t})
	return answer.status == http.StatusCreated, err
}

// DeleteRelation deletes a relation with any expiry and condition.
func (c *Client) DeleteRelation(ctx context.Context, t Tuple) error {
	t.ExpiresAt, t.Condition = "", nil
	_, err := c.do(ctx, request{method: http.MethodDelete, path: relationsPath(t.Resource), body: t})
	return err
}

func relationsPath(r Ref) string {
	return resourcesPath + "/" + segment(r.Type) + "/" + segment(r.ExternalID) + "/relations"
}
