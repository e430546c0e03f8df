package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// HTTP reaches a running server through its public API.
type HTTP struct {
	BaseURL string // the tenant's, without a trailing slash
	token   string
	client  *http.Client
}

// Dial gets a token by client credentials. connections is how many are kept
// open.
func Dial(ctx context.Context, baseURL, clientID, clientSecret string, connections int) (*HTTP, error) {
	h := &HTTP{BaseURL: baseURL, client: newClient(connections)}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {clientSecret}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, baseURL+"/oauth2/token", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := h.do(req, &token); err != nil {
		return nil, fmt.Errorf("get a token: %w", err)
	}
	h.token = token.AccessToken
	return h, nil
}

func newClient(connections int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		// RFC 6761 §6.3: names under localhost are this machine, but not every
		// resolver knows.
		if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".localhost") {
			address = net.JoinHostPort("127.0.0.1", port)
		}
		return dial(ctx, network, address)
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
	return &http.Client{Transport: t}
}

func (h *HTTP) Name() string { return "http" }

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
	wireOperation struct {
		Op       string       `json:"op"`
		Resource wireResource `json:"resource"`
		Subject  wireSubject  `json:"subject"`
		Relation string       `json:"relation"`
	}
	wireRewrite struct {
		Kind     string `json:"kind"`
		Relation string `json:"relation,omitempty"`
		Tupleset string `json:"tupleset,omitempty"`
		Computed string `json:"computed,omitempty"`
	}
	wireRelation struct {
		Name     string        `json:"name"`
		Rewrites []wireRewrite `json:"rewrites"`
		Subjects []string      `json:"subjects,omitempty"`
	}
	wireDecision struct {
		Allowed bool   `json:"allowed"`
		Error   string `json:"error"`
	}
)

func wireOf(s tuplestore.Subject) wireSubject { return wireSubject{s.Type, s.ID, s.Relation} }

func (h *HTTP) Define(ctx context.Context, types []schema.Type) error {
	for _, t := range types {
		relations := []wireRelation{}
		for _, r := range t.Relations {
			wire := wireRelation{Name: r.Name, Rewrites: []wireRewrite{}}
			for _, rw := range r.Rewrites {
				wire.Rewrites = append(wire.Rewrites, wireRewrite{string(rw.Kind), rw.Relation, rw.Tupleset, rw.Computed})
			}
			for _, s := range r.Subjects {
				wire.Subjects = append(wire.Subjects, s.String())
			}
			relations = append(relations, wire)
		}
		if err := h.post(ctx, "/api/v1/resource-types", map[string]any{"name": t.Name, "relations": relations}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (h *HTTP) Write(ctx context.Context, tuples []tuplestore.Tuple) error {
	operations := make([]wireOperation, len(tuples))
	for i, t := range tuples {
		operations[i] = wireOperation{"create", wireResource{t.Object.Type, t.Object.ID}, wireOf(t.Subject), t.Relation}
	}
	return h.post(ctx, "/api/v1/resources/relations/bulk", map[string]any{"operations": operations}, nil)
}

func (h *HTTP) Check(ctx context.Context, q *Question) (bool, error) {
	subject := wireOf(q.Subject)
	body := wireCheck{&subject, q.Action, wireResource{q.Resource.Type, q.Resource.ID}}
	var res struct{ Data wireDecision }
	err := h.post(ctx, "/api/v1/resources/check", body, &res)
	return res.Data.Allowed, err
}

func (h *HTTP) CheckBatch(ctx context.Context, batch []Question) ([]bool, error) {
	body := wireBatch{Subject: wireOf(batch[0].Subject), Checks: make([]wireCheck, len(batch))}
	for i, q := range batch {
		body.Checks[i] = wireCheck{nil, q.Action, wireResource{q.Resource.Type, q.Resource.ID}}
	}
	var res struct{ Data []wireDecision }
	if err := h.post(ctx, "/api/v1/resources/check-batch", body, &res); err != nil {
		return nil, err
	}
	if len(res.Data) != len(batch) {
		return nil, fmt.Errorf("%d answers to %d checks", len(res.Data), len(batch))
	}
	allowed := make([]bool, len(batch))
	for i, d := range res.Data {
		if d.Error != "" {
			return nil, fmt.Errorf("check %d: %s", i, d.Error)
		}
		allowed[i] = d.Allowed
	}
	return allowed, nil
}

func (h *HTTP) post(ctx context.Context, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.BaseURL+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Content-Type", "application/json")
	return h.do(req, into)
}

// do sends a request and decodes the answer, unless into is nil.
func (h *HTTP) do(req *http.Request, into any) (err error) {
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", req.Method, req.URL.Path, res.Status, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}
