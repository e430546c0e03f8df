package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Tuple relates a subject to a resource, possibly on terms.
type Tuple struct {
	Resource  Ref        `json:"resource"`
	Relation  string     `json:"relation"`
	Subject   Subject    `json:"subject"`
	ExpiresAt string     `json:"expires_at,omitempty"` // RFC 3339
	Condition *Condition `json:"condition,omitempty"`
}

// String writes it as resource#relation@subject.
func (t Tuple) String() string {
	return t.Resource.String() + "#" + t.Relation + "@" + t.Subject.String()
}

// hasExpired reports whether the tuple holds no longer. A time that cannot be read
// is the server's to refuse.
func (t Tuple) hasExpired(now time.Time) bool {
	at, err := time.Parse(time.RFC3339Nano, t.ExpiresAt)
	return err == nil && !at.After(now)
}

// Condition is one of the resource's type that must be met.
type Condition struct {
	Name    string          `json:"name"`
	Context json.RawMessage `json:"context,omitempty"`
}

// Relations lists the direct relations of a resource, all or those of a
// relation, ordered by relation and subject.
func (c *Client) Relations(ctx context.Context, resource Ref, relation string) iter.Seq2[Stored[Tuple], error] {
	return all(func(cursor string) (Page[Tuple], error) { return c.RelationsPage(ctx, resource, relation, cursor) })
}

// RelationsPage reads one page of [Client.Relations].
func (c *Client) RelationsPage(ctx context.Context, resource Ref, relation, cursor string) (Page[Tuple], error) {
	query := url.Values{}
	if relation != "" {
		query.Set("relation", relation)
	}
	return page[Tuple](ctx, c, relationsPath(resource), query, cursor)
}

// SubjectFilter selects relations by their subject. What is empty selects nothing
// less: without a relation of the subject, its usersets count too.
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

// SubjectRelations lists the direct relations of a subject, ordered by resource
// and relation.
func (c *Client) SubjectRelations(ctx context.Context, f SubjectFilter) iter.Seq2[Stored[Tuple], error] {
	return all(func(cursor string) (Page[Tuple], error) {
		return page[Tuple](ctx, c, relationsOfSubjects, f.query(), cursor)
	})
}

// DeleteSubjectRelations deletes the direct relations of a subject, in as many
// requests as it takes, and returns how many were deleted, after an error too.
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

// CreateRelation writes a relation. One that exists takes on the terms given.
func (c *Client) CreateRelation(ctx context.Context, t Tuple) (created bool, err error) {
	answer, err := c.do(ctx, request{method: http.MethodPost, path: relationsPath(t.Resource), body: t})
	return answer.status == http.StatusCreated, err
}

// DeleteRelation removes a relation, whatever its terms.
func (c *Client) DeleteRelation(ctx context.Context, t Tuple) error {
	t.ExpiresAt, t.Condition = "", nil
	_, err := c.do(ctx, request{method: http.MethodDelete, path: relationsPath(t.Resource), body: t})
	return err
}

func relationsPath(r Ref) string {
	return resourcesPath + "/" + segment(r.Type) + "/" + segment(r.ExternalID) + "/relations"
}
