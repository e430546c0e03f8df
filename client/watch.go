package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"stonetown/internal/notation"
)

// Watch asks for changes. With a Type, an Action and a SubjectType it asks for the decisions that
// changed.
type Watch struct {
	After                     string // a token; empty: from now on
	Type, Action, SubjectType string
}

// Event is one event of a watch.
type Event struct {
	Event            string            `json:"event"`
	ConsistencyToken string            `json:"consistency_token"`
	SchemaChanged    bool              `json:"schema_changed"`
	Renamed          []notation.Rename `json:"renamed"` // the relations and resources of all later events have the new names
	Changes          []Change          `json:"changes"`
	Gained           []Decided         `json:"gained"`
	Lost             []Decided         `json:"lost"`
	Conditional      []Decided         `json:"conditional"`
	Undecidable      []Decided         `json:"undecidable"`
	Reason           string            `json:"reason"`
	Resources        []Ref             `json:"resources"`
	Subjects         []Subject         `json:"subjects"`
}

// Change is a relation or, without a relation, a resource that was created or deleted.
type Change struct {
	Op       string  `json:"op"`
	Resource Ref     `json:"resource"`
	Relation string  `json:"relation"`
	Subject  Subject `json:"subject"`
}

// Decided is a decision that changed.
type Decided struct {
	Resource Ref       `json:"resource"`
	Subject  Subject   `json:"subject"`
	Except   []Subject `json:"except"`
}

// silence is how long a watch may be silent: three heartbeats. The connection is then lost.
const silence = 45 * time.Second

// Watch calls each with the events until that fails or ctx ends. A connection that ends, because
// its token expires or because the network fails, is replaced, and no event is missed.
func (c *Client) Watch(ctx context.Context, w Watch, each func(Stored[Event]) error) error {
	var p pauses // of the present loss
	for {
		var failed error // of each
		token, err := c.tokens.get(ctx)
		if err == nil {
			err = c.follow(ctx, w, token, func(ev Stored[Event]) error {
				w.After = ev.Value.ConsistencyToken
				p = pauses{}
				failed = each(ev)
				return failed
			})
		}
		if failed != nil {
			return failed
		}
		if p.until.IsZero() {
			p.until = time.Now().Add(c.patience)
		}
		pause, again := p.after(err)
		if !again || !sleep(ctx, pause) {
			return err
		}
	}
}

// follow reads events from one connection until it ends.
func (c *Client) follow(ctx context.Context, w Watch, token string, each func(Stored[Event]) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := url.Values{}
	for name, value := range map[string]string{"after": w.After, "type": w.Type, "action": w.Action, "subject_type": w.SubjectType} {
		if value != "" {
			query.Set(name, value)
		}
	}
	header := http.Header{"Authorization": {"Bearer " + token}}
	alarm := time.AfterFunc(silence, cancel)
	defer alarm.Stop()
	return c.stream(ctx, http.MethodGet, resourcesPath+"/watch?"+query.Encode(), header, nil, func(line []byte) error {
		alarm.Reset(silence)
		var ev Stored[Event]
		if err := json.Unmarshal(line, &ev); err != nil || ev.Value.ConsistencyToken == "" {
			return errNotOurs
		}
		return each(ev)
	})
}
