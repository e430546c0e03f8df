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

// RelationFilter selects relations. Empty fields select all values: a subject without a
// relation includes its usersets. The server requires a type of resources or of subjects.
type RelationFilter struct {
	ResourceType    string `json:"resource_type,omitempty"`
	ExternalID      string `json:"external_id,omitempty"`
	Relation        string `json:"relation,omitempty"`
	SubjectType     string `json:"subject_type,omitempty"`
	SubjectID       string `json:"subject_id,omitempty"`
	SubjectRelation string `json:"subject_relation,omitempty"`
}

func (f RelationFilter) query() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"resource_type": f.ResourceType, "external_id": f.ExternalID, "relation": f.Relation,
		"subject_type": f.SubjectType, "subject_id": f.SubjectID, "subject_relation": f.SubjectRelation,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

const filteredRelations = "/api/v1/relations"

// FindRelations lists the direct relations that a filter selects, ordered by resource, relation
// and subject or, without a type of resources, by subject, resource and relation.
func (c *Client) FindRelations(ctx context.Context, f RelationFilter) iter.Seq2[Stored[Tuple], error] {
	return all(func(cursor string) (Page[Tuple], error) {
		return page[Tuple](ctx, c, filteredRelations, f.query(), cursor)
	})
}

// DeleteRelations deletes the direct relations that a filter selects in as many requests as
// necessary, and returns the number of deleted relations, also after an error.
func (c *Client) DeleteRelations(ctx context.Context, f RelationFilter) (deleted int, err error) {
	query := f.query()
	for {
		data, answer, err := call[struct {
			Deleted int  `json:"deleted"`
			HasMore bool `json:"has_more"`
		}](ctx, c, request{method: http.MethodDelete, path: filteredRelations, query: query})
		deleted += data.Deleted
		if err != nil || !data.HasMore {
			return deleted, err
		}
		query.Set("cursor", answer.meta.NextCursor)
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
