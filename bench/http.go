package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// HTTP calls a running server by its public API.
type HTTP struct {
	BaseURL string // the tenant's, without a trailing slash
	token   string
	calls   *Client
	client  *http.Client // streams, and what is not JSON

	email, password string          // of a user
	defined         map[string]bool // resource types
	list            lastList
}

// Dial gets a token by client credentials. connections is the number of connections that
// are kept open.
func Dial(ctx context.Context, baseURL, clientID, clientSecret string, connections int) (*HTTP, error) {
	h := newHTTP(baseURL, "", connections)
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {clientSecret}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, baseURL+"/oauth2/token", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var token struct {
		AccessToken string `json:"access_token"`
	}
	var answer bytes.Buffer
	if err := h.do(req, &answer); err != nil {
		return nil, fmt.Errorf("get a token: %w", err)
	}
	if err := json.Unmarshal(answer.Bytes(), &token); err != nil {
		return nil, fmt.Errorf("get a token: %w", err)
	}
	h.token = token.AccessToken
	return h, nil
}

// newHTTP returns a target that calls a server with a token.
func newHTTP(baseURL, token string, connections int) *HTTP {
	return &HTTP{BaseURL: baseURL, token: token, calls: NewClient(), client: newClient(connections), defined: map[string]bool{}}
}

func newClient(connections int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, localAddress(address))
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
	return &http.Client{Transport: t}
}

func (h *HTTP) Name() string { return "Stonetown" }

func (h *HTTP) WriteLimit() int { return 500 }

// Wire forms, as in the OpenAPI document.
type (
	wireSubject struct {
		Type     string `json:"type"`
		ID       string `json:"id"`
		Relation string `json:"relation,omitempty"`
	}
	wireResource struct {
		Type       string `json:"type"`
		ExternalID string `json:"external_id"`
	}
	wireCheck struct {
		Subject  *wireSubject `json:"subject,omitempty"`
		Action   string       `json:"action"`
		Resource wireResource `json:"resource"`
	}
	wireBatch struct {
		Subject wireSubject `json:"subject"`
		Checks  []wireCheck `json:"checks"`
	}
	wireTuple struct {
		Resource wireResource `json:"resource"`
		Relation string       `json:"relation"`
		Subject  wireSubject  `json:"subject"`
	}
	wireRewrite struct {
		Kind     string        `json:"kind"`
		Relation string        `json:"relation,omitempty"`
		Tupleset string        `json:"tupleset,omitempty"`
		Computed string        `json:"computed,omitempty"`
		Children []wireRewrite `json:"children,omitempty"`
		Base     *wireRewrite  `json:"base,omitempty"`
		Subtract *wireRewrite  `json:"subtract,omitempty"`
	}
	wireRelation struct {
		Name     string        `json:"name"`
		Rewrites []wireRewrite `json:"rewrites"`
		Subjects []string      `json:"subjects,omitempty"`
	}
)

func wireOf(s tuplestore.Subject) wireSubject { return wireSubject{s.Type, s.ID, s.Relation} }

func wireRewrites(rewrites []schema.Rewrite) []wireRewrite {
	wire := make([]wireRewrite, len(rewrites))
	for i, r := range rewrites {
		wire[i] = wireRewrite{Kind: string(r.Kind), Relation: r.Relation, Tupleset: r.Tupleset, Computed: r.Computed}
		if len(r.Children) > 0 {
			wire[i].Children = wireRewrites(r.Children)
		}
		if r.Base != nil {
			sides := wireRewrites([]schema.Rewrite{*r.Base, *r.Subtract})
			wire[i].Base, wire[i].Subtract = &sides[0], &sides[1]
		}
	}
	return wire
}

// Define creates those types that another workload has not created already.
func (h *HTTP) Define(ctx context.Context, types []schema.Type) error {
	for _, t := range types {
		if h.defined[t.Name] {
			continue
		}
		relations := []wireRelation{}
		for _, r := range t.Relations {
			wire := wireRelation{Name: r.Name, Rewrites: wireRewrites(r.Rewrites)}
			for _, s := range r.Subjects {
				wire.Subjects = append(wire.Subjects, s.String())
			}
			relations = append(relations, wire)
		}
		if err := h.post(ctx, "/api/v1/resource-types", map[string]any{"name": t.Name, "relations": relations}); err != nil {
			return err
		}
		h.defined[t.Name] = true
	}
	return nil
}

// Write encodes the operations without reflection, which takes a quarter of the client's time in
// calls of 500.
func (h *HTTP) Write(ctx context.Context, tuples []tuplestore.Tuple) error {
	body := append(make([]byte, 0, 192*len(tuples)+32), `{"operations":[`...)
	for i, t := range tuples {
		if i > 0 {
			body = append(body, ',')
		}
		op := engine.WriteOp{Resource: t.Object, Relation: t.Relation, Subject: t.Subject}
		body = append(op.Document().AppendMembers(append(body, `{"op":"create",`...)), '}')
	}
	return h.send(ctx, "/api/v1/resources/relations/bulk", append(body, "]}"...), new(bytes.Buffer))
}

// Load implements [Loader] by an import of relations.
func (h *HTTP) Load(ctx context.Context, tuples iter.Seq[tuplestore.Tuple], progress func(written int)) error {
	body, send := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.BaseURL+"/api/v1/resources/relations/import", body)
	if err != nil {
		return err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + h.token}, "Content-Type": {"application/x-ndjson"}}
	go func() {
		lines := bufio.NewWriterSize(send, 64<<10)
		encoder := json.NewEncoder(lines)
		for t := range tuples {
			if encoder.Encode(wireTuple{wireResource{t.Object.Type, t.Object.ID}, t.Relation, wireOf(t.Subject)}) != nil {
				return // the request has ended
			}
		}
		send.CloseWithError(lines.Flush())
	}()
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		var line struct {
			Event string `json:"event"`
			Line  int    `json:"line"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Event != "stored" && line.Event != "done" {
			return fmt.Errorf("import: %s: %.300s", res.Status, lines.Text())
		}
		if progress(line.Line); line.Event == "done" {
			return nil
		}
	}
	return fmt.Errorf("import: %s: the response ended early", res.Status)
}

// lastList is the last list of resources. The same one again is read and compared, but not decoded:
// to decode 150,000 lines takes as long as to list them, and leaves as much garbage.
type lastList struct {
	mu          sync.Mutex
	lines, read bytes.Buffer // lines without the last one
	ids         []string
}

// List implements [Lister]. One list is made at a time.
func (h *HTTP) List(ctx context.Context, s tuplestore.Subject, typ, relation string) (iter.Seq[string], error) {
	encoded, err := json.Marshal(map[string]any{"subject": wireOf(s), "type": typ, "action": relation})
	if err != nil {
		return nil, err
	}
	last := &h.list
	last.mu.Lock()
	defer last.mu.Unlock()
	last.read.Reset()
	if err := h.send(ctx, "/api/v1/resources/list-resources/stream", encoded, &last.read); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(last.read.Bytes(), []byte("\n"))
	end := bytes.LastIndexByte(text, '\n') + 1
	var line struct {
		ExternalID string          `json:"external_id"`
		Meta       json.RawMessage `json:"meta"`
	}
	if err := json.Unmarshal(text[end:], &line); err != nil || line.Meta == nil {
		return nil, fmt.Errorf("list: the last line is %.300q", text[end:])
	}
	last.read.Truncate(end)
	if last.ids != nil && bytes.Equal(last.lines.Bytes(), last.read.Bytes()) {
		return slices.Values(last.ids), nil
	}
	ids := []string{}
	for text := range bytes.Lines(last.read.Bytes()) {
		line.ExternalID = ""
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		ids = append(ids, line.ExternalID)
	}
	last.ids = ids
	last.lines, last.read = last.read, last.lines
	return slices.Values(ids), nil
}

// Warm sends checks until their latency stops decreasing: until the tenant is in memory.
func (h *HTTP) Warm(ctx context.Context, w Workload) error {
	best := 0.0
	for range 30 {
		f, err := checks(ctx, h, w, 2, time.Second)
		if err != nil || f.PerSecond < 1.2*best {
			return err
		}
		best = f.PerSecond
	}
	return nil
}

// Prepare encodes the questions, as one check or as a batch.
func (h *HTTP) Prepare(questions []Question) Call {
	path, body := "/api/v1/resources/check-batch", any(nil)
	if len(questions) == 1 {
		q := &questions[0]
		subject := wireOf(q.Subject)
		path, body = "/api/v1/resources/check", wireCheck{&subject, q.Action, wireResource{q.Resource.Type, q.Resource.ID}}
	} else {
		batch := wireBatch{Subject: wireOf(questions[0].Subject), Checks: make([]wireCheck, len(questions))}
		for i, q := range questions {
			batch.Checks[i] = wireCheck{nil, q.Action, wireResource{q.Resource.Type, q.Resource.ID}}
			if subject := wireOf(q.Subject); subject != batch.Subject {
				batch.Checks[i].Subject = &subject
			}
		}
		body = batch
	}
	encoded, err := json.Marshal(body)
	allowed := make([]bool, len(questions))
	var answer bytes.Buffer
	return func(ctx context.Context) ([]bool, error) {
		if err != nil {
			return nil, err
		}
		answer.Reset()
		if err := h.send(ctx, path, encoded, &answer); err != nil {
			return nil, err
		}
		return allowed, decisions(answer.Bytes(), allowed)
	}
}

// decisions reads the answers of a check or a batch in the exact form that the product
// writes. To decode them in full would take the client longer than the server takes to
// answer.
func decisions(answer []byte, allowed []bool) error {
	data, _, ok := bytes.Cut(answer, []byte(`,"meta":`))
	for i := range allowed {
		var value []byte
		_, value, found := bytes.Cut(data, []byte(`"allowed":`))
		if ok = ok && found; !ok {
			break
		}
		allowed[i] = bytes.HasPrefix(value, []byte("true"))
		data = value
	}
	if !ok || bytes.Contains(data, []byte(`"allowed"`)) || bytes.Contains(answer, []byte(`"error"`)) {
		return fmt.Errorf("the answer is not %d decisions: %.300s", len(allowed), answer)
	}
	return nil
}

func (h *HTTP) post(ctx context.Context, path string, body any) error {
	return h.request(ctx, http.MethodPost, path, body, nil)
}

// request sends JSON, and decodes the response into answer if that is not nil.
func (h *HTTP) request(ctx context.Context, method, path string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := h.calls.Send(ctx, method, h.BaseURL+path, h.token, encoded, &text); err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text.Bytes(), answer)
}

// send posts a body.
func (h *HTTP) send(ctx context.Context, path string, body []byte, answer *bytes.Buffer) error {
	return h.calls.Send(ctx, http.MethodPost, h.BaseURL+path, h.token, body, answer)
}

// do sends a request and reads the answer.
func (h *HTTP) do(req *http.Request, answer *bytes.Buffer) (err error) {
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if _, err := answer.ReadFrom(res.Body); err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", req.Method, req.URL.Path, res.Status, answer)
	}
	return nil
}
