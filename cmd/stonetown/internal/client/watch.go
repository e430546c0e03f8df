package client

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Watch asks for changes. With a Type, an Action and a SubjectType it asks for the decisions that
// changed.
type Watch struct {
	After                     string // a token; empty: from now on
	Type, Action, SubjectType string
}

// Event is one event of a watch.
type Event struct {
	Event            string    `json:"event"`
	ConsistencyToken string    `json:"consistency_token"`
	SchemaChanged    bool      `json:"schema_changed"`
	Renamed          []Rename  `json:"renamed"` // the relations and resources of all later events have the new names
	Changes          []Change  `json:"changes"`
	Gained           []Decided `json:"gained"`
	Lost             []Decided `json:"lost"`
	Conditional      []Decided `json:"conditional"`
	Undecidable      []Decided `json:"undecidable"`
	Reason           string    `json:"reason"`
	Resources        []Ref     `json:"resources"`
	Subjects         []Subject `json:"subjects"`
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
	p := pauses{until: time.Now().Add(c.patience)}
	for {
		var failed error // of each
		token, err := c.tokens.get(ctx)
		if err == nil {
			err = c.follow(ctx, w, token, func(ev Stored[Event]) error {
				w.After = ev.Value.ConsistencyToken
				p = pauses{until: time.Now().Add(c.patience)}
				failed = each(ev)
				return failed
			})
		}
		if failed != nil {
			return failed
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+resourcesPath+"/watch?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	endless := *c.http
	endless.Timeout = 0
	alarm := time.AfterFunc(silence, cancel)
	defer alarm.Stop()
	resp, err := endless.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return &url.Error{Op: http.MethodGet, URL: c.base, Err: err}
		}
		return errorOf(resp.StatusCode, resp.Header, text)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		alarm.Reset(silence)
		var ev Stored[Event]
		if err := json.Unmarshal(lines.Bytes(), &ev); err != nil || ev.Value.ConsistencyToken == "" {
			return errNotOurs
		}
		if err := each(ev); err != nil {
			return err
		}
	}
	if err = lines.Err(); err == nil || ctx.Err() != nil {
		err = io.ErrUnexpectedEOF // which is repeated, unless the caller's context has ended
	}
	return &url.Error{Op: http.MethodGet, URL: c.base, Err: err}
}
