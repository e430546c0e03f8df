package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// answers counts responses by status.
type answers [600]atomic.Uint64

func (a *answers) counts() map[int]uint64 {
	by := map[int]uint64{}
	for status := range a {
		if n := a[status].Load(); n > 0 {
			by[status] = n
		}
	}
	return by
}

// misuses are the names of the misuses.
var misuses = []string{signIns, costlyConditions, longLists, idleWatches, passwordImports}

const (
	signIns          = "sign-ins for made-up addresses"
	costlyConditions = "checks with costly conditions"
	longLists        = "long lists"
	idleWatches      = "idle watches, as many as it gets"
	passwordImports  = "imports of users with passwords"
)

// greedyClients is the number of concurrent requests of the greedy tenant.
const greedyClients = 16

// misuser is the input of the process of the greedy clients.
type misuser struct {
	BaseURL string `json:"base_url"`
	Token   string `json:"token"`
}

// misuse starts a process that misuses the server. end ends it, and returns the number of
// responses by status.
func (h *HTTP) misuse(ctx context.Context, what string) (end func() (map[int]uint64, error), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	clients := exec.CommandContext(ctx, "nice", "-n", "19", self, "-misuse", what)
	var report bytes.Buffer
	clients.Stdout, clients.Stderr = &report, os.Stderr
	in, err := clients.StdinPipe()
	if err == nil {
		err = clients.Start()
	}
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(in).Encode(misuser{h.BaseURL, h.token}); err != nil {
		return nil, errors.Join(err, in.Close(), clients.Wait())
	}
	return func() (counts map[int]uint64, err error) {
		if err := errors.Join(in.Close(), clients.Wait()); err != nil {
			return nil, fmt.Errorf("misuse by %s: %w", what, err)
		}
		return counts, json.Unmarshal(report.Bytes(), &counts)
	}, nil
}

// Misuse is the process of the greedy clients: it misuses a server, named on in, until in
// ends, and then writes the number of responses by status.
func Misuse(ctx context.Context, what string, in io.Reader, out io.Writer) error {
	var server misuser
	told := json.NewDecoder(in)
	if err := told.Decode(&server); err != nil {
		return err
	}
	h := newHTTP(server.BaseURL, server.Token, 2*greedyClients)
	start, known := h.worst()[what]
	if !known {
		return fmt.Errorf("unknown misuse %q", what)
	}
	counted, end := start(ctx)
	_, _ = io.Copy(io.Discard, io.MultiReader(told.Buffered(), in))
	end()
	return json.NewEncoder(out).Encode(counted.counts())
}

const (
	greedyHolders = 500    // of a condition
	greedyMembers = 20_000 // of a list
)

// prepareWorst writes the data of the misuses.
func (h *HTTP) prepareWorst(ctx context.Context) error {
	err := h.post(ctx, "/api/v1/resource-types", map[string]any{
		"name": "team", "relations": []wireRelation{{Name: "member", Subjects: []string{"user"}, Rewrites: []wireRewrite{}}},
	})
	if err != nil {
		return err
	}
	err = h.post(ctx, "/api/v1/resource-types", map[string]any{
		"name": "page",
		"relations": []any{map[string]any{
			"name": "viewer", "subjects": []string{"user", "team#member"}, "rewrites": []wireRewrite{},
		}, map[string]any{
			"name": "barred", "subjects": []string{"user"}, "rewrites": []wireRewrite{},
		}, map[string]any{
			"name": "reader", "subjects": []string{},
			"rewrites": []wireRewrite{{
				Kind: "exclusion", Base: &wireRewrite{Kind: "computed", Relation: "viewer"}, Subtract: &wireRewrite{Kind: "computed", Relation: "barred"},
			}},
		}},
		"conditions": []any{map[string]any{
			"name": "loops", "expression": "n >= 0 && l.all(x, l.all(y, x + y > n))",
			"parameters": map[string]string{"n": "int", "l": "list<int>"},
		}},
	})
	if err != nil {
		return err
	}
	var holders []any // of the condition
	var tuples []tuplestore.Tuple
	for i := range greedyHolders {
		team := object("team", "", i)
		holders = append(holders, map[string]any{
			"op": "create", "resource": wireResource{"page", "1"}, "relation": "viewer", "subject": wireOf(asSubject(team, "member")),
			"condition": map[string]any{"name": "loops", "context": map[string]any{"n": i}},
		})
		tuples = append(tuples, tuplestore.Tuple{Object: team, Relation: "member", Subject: tuplestore.Subject{Type: schema.UserType, ID: "other"}})
	}
	for i := range greedyMembers {
		tuples = append(tuples, tuplestore.Tuple{Object: object("page", "", 2), Relation: "viewer", Subject: asSubject(object(schema.UserType, "", i), "")})
	}
	for part := range slices.Chunk(holders, h.WriteLimit()) {
		if err := h.post(ctx, "/api/v1/resources/relations/bulk", map[string]any{"operations": part}); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(tuples, h.WriteLimit()) {
		if err := h.Write(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// worst are the misuses of a server, by name.
func (h *HTTP) worst() map[string]func(context.Context) (counted *answers, end func()) {
	list := make([]int, 200)
	for i := range list {
		list[i] = greedyHolders + i
	}
	var rows bytes.Buffer // the same in each upload, so that they take no time of this process
	for i := range 200 {
		fmt.Fprintf(&rows, `{"email":"u%d@example.com","password":"correct horse battery"}`+"\n", i)
	}
	repeat := func(path, contentType string, body func(n uint64) any) func(context.Context) (*answers, func()) {
		return func(ctx context.Context) (*answers, func()) {
			var n atomic.Uint64
			return h.flood(ctx, greedyClients, func(ctx context.Context) (*http.Request, error) {
				return h.posting(ctx, path, contentType, body(n.Add(1)))
			})
		}
	}
	return map[string]func(context.Context) (*answers, func()){
		signIns: repeat("/api/v1/auth/sign-in", "", func(n uint64) any {
			return map[string]any{"email": fmt.Sprintf("nobody%d@example.com", n), "password": "correct horse battery"}
		}),
		costlyConditions: repeat("/api/v1/resources/check", "", func(uint64) any {
			return map[string]any{
				// A viewer of page 2: a user without any relation would be denied at once.
				"subject": wireSubject{Type: "user", ID: "1"}, "action": "viewer", "resource": wireResource{"page", "1"},
				"context": map[string]any{"l": list},
			}
		}),
		longLists: repeat("/api/v1/resources/list-subjects", "", func(uint64) any {
			return map[string]any{"resource": wireResource{"page", "2"}, "action": "reader", "subject_type": "user"}
		}),
		idleWatches:     h.watches,
		passwordImports: repeat("/api/v1/users/bulk-import", "application/x-ndjson", func(uint64) any { return rows.Bytes() }),
	}
}

// posting returns a request with a body, which is sent as JSON unless it is bytes.
func (h *HTTP) posting(ctx context.Context, path, contentType string, body any) (*http.Request, error) {
	encoded, ok := body.([]byte)
	if !ok {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.BaseURL+path, bytes.NewReader(encoded))
	if err == nil {
		req.Header = http.Header{"Authorization": {"Bearer " + h.token}, "Content-Type": {cmp.Or(contentType, "application/json")}}
	}
	return req, err
}

// flood sends requests of concurrent clients until end is called.
func (h *HTTP) flood(ctx context.Context, clients int, request func(context.Context) (*http.Request, error)) (counted *answers, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	counted = new(answers)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				req, err := request(ctx)
				if err != nil {
					return
				}
				res, err := h.client.Do(req)
				if err != nil {
					continue
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				counted[res.StatusCode].Add(1)
				if res.StatusCode == http.StatusServiceUnavailable {
					time.Sleep(10 * time.Millisecond) // far less than Retry-After
				}
			}
		})
	}
	return counted, func() { cancel(); wg.Wait() }
}

// watches opens watches until they are refused, and keeps them open.
func (h *HTTP) watches(ctx context.Context) (counted *answers, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	counted = new(answers)
	client := newClient(0)
	var open []io.Closer
	for range 1100 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.BaseURL+"/api/v1/resources/watch", nil)
		if err != nil {
			break
		}
		req.Header.Set("Authorization", "Bearer "+h.token)
		res, err := client.Do(req)
		if err != nil {
			break
		}
		counted[res.StatusCode].Add(1)
		open = append(open, res.Body)
	}
	return counted, func() {
		cancel()
		for _, body := range open {
			body.Close()
		}
	}
}
