package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/controlplane"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
)

// Fairness measures the checks of one tenant while another tenant of the same server
// does its worst, one thing after the other, and between them the same checks while the
// other does nothing. Checks are due at a modest rate, since the clients of both tenants
// share the machine with the server.
type Fairness struct {
	Binary   string // the product's
	Dir      string // where data is kept
	Duration time.Duration
	Progress func(format string, args ...any)
}

const (
	fairnessWorkers = 4
	fairnessRate    = 200 // checks a second
	// greedyClients is how many requests of the greedy tenant are under way at once.
	greedyClients = 16
)

// FairnessRow is what the checks took while the other tenant did something.
type FairnessRow struct {
	Figure
	Greedy string `json:"greedy"` // what the other tenant did
	// ToIdle is how many times longer p99 was than while the other did nothing.
	ToIdle  float64        `json:"to_idle"`
	Answers map[int]uint64 `json:"answers"` // to the other tenant, by status
}

// Run takes the measurements.
func (f Fairness) Run(ctx context.Context) (rows []FairnessRow, err error) {
	modest, greedy, stop, err := f.start(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	w := Chain(10)
	if err := modest.Define(ctx, w.Types()); err != nil {
		return nil, err
	}
	if _, err := load(ctx, modest, w, func(int) {}); err != nil {
		return nil, err
	}
	if err := greedy.prepareWorst(ctx); err != nil {
		return nil, err
	}
	if err := modest.Warm(ctx, w); err != nil {
		return nil, err
	}
	measure := func(what string, answers *answers) (FairnessRow, error) {
		m := checking(modest, w, fairnessWorkers, func(f *Figure) { f.Rate = fairnessRate })
		if err := m.run(ctx, f.Duration); err != nil {
			return FairnessRow{}, err
		}
		return FairnessRow{Figure: m.result(), Greedy: what, Answers: answers.counts()}, nil
	}
	for _, do := range greedy.worst() {
		f.Progress("checks while another tenant does nothing, and then: %s", do.what)
		idle, err := measure("nothing", new(answers))
		if err != nil {
			return nil, err
		}
		counted, end := do.start(ctx)
		time.Sleep(time.Second)
		busy, err := measure(do.what, counted)
		end()
		if err != nil {
			return nil, err
		}
		idle.ToIdle, busy.ToIdle = 1, busy.P99/idle.P99
		rows = append(rows, idle, busy)
		time.Sleep(time.Second) // what the server still does is not the next one's
	}
	return rows, nil
}

// WriteFairness writes the rows as a table.
func WriteFairness(w io.Writer, rows []FairnessRow) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| another tenant's | p50 | p99 | p99 to idle | answers to the other tenant |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %.2f ms | %.2f ms | %.1f | %s |\n", r.Greedy, r.P50/1000, r.P99/1000, r.ToIdle, strings.TrimPrefix(fmt.Sprint(r.Answers), "map"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// start starts the product with two tenants.
func (f Fairness) start(ctx context.Context) (modest, greedy *HTTP, stop func(), err error) {
	// The credentials that the first start writes name its address.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, nil, nil, err
	}
	_, stop, err = Start(ctx, f.Binary, f.Dir, "--listen", address)
	if err != nil {
		return nil, nil, nil, err
	}
	stop()
	id, secret, err := addTenant(ctx, filepath.Join(f.Dir, "data"))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("add a tenant: %w", err)
	}
	modest, stop, err = Start(ctx, f.Binary, f.Dir, "--listen", address, "--rate-limits", "sign-in.ip=unlimited,admin.caller=unlimited,admin.ip=unlimited")
	if err != nil {
		return nil, nil, nil, err
	}
	at, err := url.Parse(modest.BaseURL)
	if err == nil {
		greedy, err = Dial(ctx, "http://greedy.localhost:"+at.Port(), id, secret, 2*greedyClients)
	}
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	return modest, greedy, stop, nil
}

// addTenant gives the server that has its data in a folder, and is not running, a second
// tenant with an application.
func addTenant(ctx context.Context, data string) (clientID, secret string, err error) {
	db, err := sqldb.Open(ctx, sqldb.Config{URL: "sqlite://" + filepath.Join(data, "stonetown.db")})
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	key, err := seal.ReadKeyFile(filepath.Join(data, "master.key"))
	if err != nil {
		return "", "", err
	}
	tenants, err := controlplane.New(controlplane.Config{DB: db})
	if err != nil {
		return "", "", err
	}
	apps, err := oauth.New(oauth.Config{DB: db, Seal: key})
	if err != nil {
		return "", "", err
	}
	first, err := tenants.FirstTenant(ctx)
	if err != nil {
		return "", "", err
	}
	err = db.Tx(ctx, func(tx *sqldb.Tx) error {
		tenant, err := tenants.CreateTenant(ctx, tx, controlplane.NewTenant{
			OrgID: first.OrgID, Slug: "greedy", Name: "greedy", BaseURL: "http://greedy.localhost",
		})
		if err != nil {
			return err
		}
		app, given, err := apps.CreateApplication(ctx, tx, tenant.ID, oauth.Application{
			Name: "greedy", Type: oauth.Machine, AllowedScopes: oauth.BuiltinScopes,
		})
		clientID, secret = app.ClientID, given
		return err
	})
	return clientID, secret, err
}

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

// misuse is something that a tenant does all the time.
type misuse struct {
	what  string
	start func(context.Context) (counted *answers, end func())
}

const (
	greedyHolders = 500    // of a condition
	greedyMembers = 20_000 // of a list
)

// prepareWorst writes what the misuses need.
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
	var operations []any
	send := func(least int) error {
		if len(operations) < least || len(operations) == 0 {
			return nil
		}
		err := h.post(ctx, "/api/v1/resources/relations/bulk", map[string]any{"operations": operations})
		operations = nil
		return err
	}
	page := func(id int) wireResource { return wireResource{"page", fmt.Sprint(id)} }
	for i := range greedyHolders {
		operations = append(operations, map[string]any{
			"op": "create", "resource": page(1), "relation": "viewer", "subject": wireSubject{"team", fmt.Sprint(i), "member"},
			"condition": map[string]any{"name": "loops", "context": map[string]any{"n": i}},
		}, wireOperation{"create", wireResource{"team", fmt.Sprint(i)}, wireSubject{Type: "user", ID: "other"}, "member"})
		if err := send(h.WriteLimit() - 1); err != nil {
			return err
		}
	}
	for i := range greedyMembers {
		operations = append(operations, wireOperation{"create", page(2), wireSubject{Type: "user", ID: fmt.Sprint(i)}, "viewer"})
		if err := send(h.WriteLimit()); err != nil {
			return err
		}
	}
	return send(0)
}

func (h *HTTP) worst() []misuse {
	list := make([]int, 200)
	for i := range list {
		list[i] = greedyHolders + i
	}
	var rows bytes.Buffer // the same in each upload, so that making them keeps no processor busy here
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
	return []misuse{
		{"sign-ins for made-up addresses", repeat("/api/v1/auth/sign-in", "", func(n uint64) any {
			return map[string]any{"email": fmt.Sprintf("nobody%d@example.com", n), "password": "correct horse battery"}
		})},
		{"checks with costly conditions", repeat("/api/v1/resources/check", "", func(uint64) any {
			return map[string]any{
				"subject": wireSubject{Type: "user", ID: "1"}, "action": "viewer", "resource": wireResource{"page", "1"},
				"context": map[string]any{"l": list},
			}
		})},
		{"long lists", repeat("/api/v1/resources/list-subjects", "", func(uint64) any {
			return map[string]any{"resource": wireResource{"page", "2"}, "action": "reader", "subject_type": "user"}
		})},
		{"idle watches, as many as it gets", h.watches},
		{"imports of users with passwords", repeat("/api/v1/users/bulk-import", "application/x-ndjson", func(uint64) any { return rows.Bytes() })},
	}
}

// posting is a request with a body, which is sent as JSON unless it is bytes.
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

// flood sends requests from so many clients until end is called.
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
					time.Sleep(10 * time.Millisecond) // far less than Retry-After asks for
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
