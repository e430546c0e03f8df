package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"stonetown/internal/netline"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
)

var (
	faultTime = flag.Duration("fault-time", 20*time.Second, "how long processes with read leases run under faults")
	faultSeed = flag.Uint64("fault-seed", 0, "seed of the faults and of the load; 0 draws one")
)

// TestLinearizableUnderFaults runs three processes with read leases on one PostgreSQL, with clocks
// that run 5 % slow, 5 % fast and right. It stops and kills them, interrupts their lines to each
// other, in one direction or both, and to the database, and crashes and replaces the database.
// Whatever happens, a check is answered from the newest revision that was visible when it was sent,
// or from a later one: by the answers of any process so far, acknowledged writes or not, and by what
// an observer reads in the database itself.
func TestLinearizableUnderFaults(t *testing.T) {
	seed := *faultSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	defer func() {
		if t.Failed() {
			t.Logf("repeat with -fault-seed=%d", seed)
		}
	}()
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCluster(t, 3)
	h := c.history(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var working sync.WaitGroup
	working.Go(func() { h.observe(ctx) })
	for i := range 6 {
		working.Go(func() { h.check(ctx, c.nodes[i%3]) })
	}
	for i := range 3 {
		r := rand.New(rand.NewPCG(seed, uint64(i+1)))
		working.Go(func() { h.write(ctx, c.nodes[i], r) })
	}
	injected := map[string]int{}
	deadline := time.Now().Add(*faultTime)
	for n := 0; (n < len(faults) || time.Now().Before(deadline)) && !t.Failed(); n++ {
		// Each fault comes once for sure, and most come together with another one.
		one, at := faults[n%len(faults)], random.IntN(3)
		if n >= len(faults) {
			one = faults[random.IntN(len(faults))]
		}
		began := []fault{one}
		heal := []func(){one.begin(c, c.nodes[at], random)}
		if another := faults[random.IntN(len(faults))]; !one.alone && !another.alone && random.IntN(2) == 0 {
			began = append(began, another)
			heal = append(heal, another.begin(c, c.nodes[(at+1+random.IntN(2))%3], random))
		}
		time.Sleep(time.Duration(random.Int64N(int64(3 * clusterLease))))
		for _, f := range heal {
			f()
		}
		for _, f := range began {
			injected[f.name]++
		}
		time.Sleep(time.Duration(random.Int64N(int64(2 * clusterLease))))
	}
	end()
	working.Wait()
	for _, node := range c.nodes { // all is well again
		_, err := h.ask(node)
		for began := time.Now(); err != nil && time.Since(began) < 20*time.Second; _, err = h.ask(node) {
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("after the faults: %v", err)
		}
		node.count()
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(injected)) {
		all = append(all, fmt.Sprintf("%s %d", name, injected[name]))
	}
	var answered int64
	for _, node := range c.nodes {
		answered += node.answered
	}
	t.Logf("%d checks answered, of which about %d read nothing, and %d not; %d writes acknowledged, %d not, the longest took %v; %d revisions, %d looks at the database; faults: %s",
		h.answers.Load(), answered, h.failures.Load(), h.writes.Load(), h.unacknowledged.Load(), time.Duration(h.longest.Load()).Round(time.Millisecond),
		h.newest.Load()-h.base, h.looks.Load(), strings.Join(all, ", "))
	if answered < h.answers.Load()/20 || h.writes.Load() < 50 || h.looks.Load() < 100 {
		t.Error("this shows too little")
	}
}

const clusterLease = 400 * time.Millisecond

// cluster is several processes on one database that can fail.
type cluster struct {
	t           *testing.T
	credentials credentials
	token       string
	nodes       []*clusterNode

	mu       sync.Mutex
	database *pgtest.Server
}

// clusterNode is a process with lines to it and to the database.
type clusterNode struct {
	process  atomic.Pointer[process]
	clock    float64 // the rate at which it runs
	args     []string
	metrics  string        // the URL
	messages *netline.Line // of the other processes to this one
	database *netline.Line
	answered int64 // from memory, by processes that have ended
}

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	c := &cluster{t: t, database: pgtest.Own(t)}
	t.Cleanup(func() {
		if err := c.database.Stop(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bootstrap.json")
	if _, err := command(t, "bootstrap", "--data-dir", dir, "--database-url", c.database.URL, "--out", file); err != nil {
		t.Fatal(err)
	}
	c.credentials = readJSON(t, file)
	for i := range n {
		node := &clusterNode{clock: []float64{0.95, 1.05, 1}[i%3]}
		listen, admin, leases := freeAddress(t), freeAddress(t), freeAddress(t)
		var err error
		if node.messages, err = netline.New("tcp", leases, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		var url string
		if node.database, url, err = netline.Postgres(c.database.URL, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(node.messages.Close(), node.database.Close()); err != nil {
				t.Error(err)
			}
		})
		node.metrics = "http://" + admin + "/metrics"
		node.args = []string{
			"--data-dir", dir, "--database-url", url, "--listen", listen, "--admin-listen", admin, "--request-timeout", "3s",
			"--lease-listen", leases, "--lease-address", node.messages.Addr(), "--lease-time", clusterLease.String(),
		}
		c.start(node)
		c.nodes = append(c.nodes, node)
	}
	c.token = c.lastingToken()
	return c
}

// lastingToken returns a token for runs that take hours.
func (c *cluster) lastingToken() string {
	c.t.Helper()
	p := c.nodes[0].process.Load()
	token := p.token(c.t, c.credentials)
	var found struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	_, _, text := p.send(token, "", http.MethodGet, "applications?q="+c.credentials.ClientID, nil)
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found.Data) != 1 {
		c.t.Fatalf("%v: %s", err, text)
	}
	if status, _, text := p.send(token, "", http.MethodPatch, "applications/"+found.Data[0].ID, map[string]any{"access_token_ttl_s": 86400}); status != http.StatusOK {
		c.t.Fatal(text)
	}
	return p.token(c.t, c.credentials)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (c *cluster) start(node *clusterNode) {
	node.process.Store(startServerAt(c.t, node.clock, hostOf(c.t, c.credentials.BaseURL), node.args...))
}

// count adds the answers of a process from memory, before it ends.
func (n *clusterNode) count() {
	client := http.Client{Timeout: time.Second}
	response, err := client.Get(n.metrics)
	if err != nil {
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return
	}
	_, value, _ := strings.Cut(string(text), "\nstonetown_lease_answers_total ")
	value, _, _ = strings.Cut(value, "\n")
	if count, err := strconv.ParseFloat(value, 64); err == nil {
		n.answered += int64(count)
	}
}

// fault is something that goes wrong at a node, until heal is called.
type fault struct {
	name  string
	alone bool // not together with another one
	begin func(c *cluster, n *clusterNode, r *rand.Rand) (heal func())
}

// stopped is a fault of a line that carries nothing in some directions. Afterwards what was sent
// arrives late, or never.
func stopped(of func(*clusterNode) *netline.Line, directions ...netline.Direction) func(*cluster, *clusterNode, *rand.Rand) func() {
	return func(_ *cluster, n *clusterNode, r *rand.Rand) func() {
		l, lost := of(n), r.IntN(2) == 0
		for _, d := range directions {
			l.Stop(d)
		}
		return func() {
			if lost {
				l.Cut()
			}
			for _, d := range directions {
				l.Go(d)
			}
		}
	}
}

func messagesOf(n *clusterNode) *netline.Line { return n.messages }
func databaseOf(n *clusterNode) *netline.Line { return n.database }

var faults = []fault{
	{name: "revocations do not arrive", begin: stopped(messagesOf, netline.ToServer)},
	{name: "answers to revocations do not arrive", begin: stopped(messagesOf, netline.ToClient)},
	{name: "no messages in either direction", begin: stopped(messagesOf, netline.ToServer, netline.ToClient)},
	{name: "the database does not hear a process", begin: stopped(databaseOf, netline.ToServer)},
	{name: "a process does not hear the database", begin: stopped(databaseOf, netline.ToClient)},
	{name: "a process is stopped", begin: func(c *cluster, n *clusterNode, _ *rand.Rand) func() {
		signal := func(s syscall.Signal) {
			if err := n.process.Load().cmd.Process.Signal(s); err != nil {
				c.t.Errorf("%v: %v", s, err)
			}
		}
		signal(syscall.SIGSTOP)
		return func() { signal(syscall.SIGCONT) }
	}},
	{name: "a process is killed", alone: true, begin: func(c *cluster, n *clusterNode, _ *rand.Rand) func() {
		n.count()
		n.process.Load().kill()
		return func() { c.start(n) }
	}},
	{name: "the database stalls", alone: true, begin: func(c *cluster, _ *clusterNode, r *rand.Rand) func() {
		var heal []func()
		for _, n := range c.nodes {
			heal = append(heal, stopped(databaseOf, netline.ToServer, netline.ToClient)(c, n, r))
		}
		return func() {
			for _, f := range heal {
				f()
			}
		}
	}},
	{name: "the database crashes", alone: true, begin: func(c *cluster, _ *clusterNode, _ *rand.Rand) func() {
		if err := c.database.Crash(c.t.Context()); err != nil {
			c.t.Errorf("crash: %v", err)
		}
		return func() {}
	}},
	{name: "the database fails over", alone: true, begin: func(c *cluster, _ *clusterNode, _ *rand.Rand) func() {
		if err := c.failOver(c.t.Context()); err != nil {
			c.t.Errorf("failover: %v", err)
		}
		return func() {}
	}},
}

// failOver replaces the database by a synchronous standby.
func (c *cluster) failOver(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	standby, err := c.database.Standby(ctx)
	if err != nil {
		return err
	}
	primary := c.database
	c.database = standby
	if err := errors.Join(primary.Stop(), standby.Promote(ctx)); err != nil {
		return err
	}
	network, address, err := netline.PostgresServer(standby.URL)
	for _, n := range c.nodes {
		n.database.Lead(network, address)
	}
	return err
}

func (c *cluster) databaseURL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.database.URL
}

// history is what was written and answered. Each revision after base creates or deletes one
// relation, so the relation exists at every other one.
type history struct {
	t       *testing.T
	cluster *cluster
	client  *http.Client
	base    int64

	// newest is a revision that was visible. A check that is sent later must not be answered from
	// an earlier one.
	newest atomic.Int64

	answers, failures, writes, unacknowledged, looks, longest atomic.Int64
}

func (c *cluster) history(t *testing.T) *history {
	t.Helper()
	h := &history{t: t, cluster: c, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	p := c.nodes[0].process.Load()
	if status, _, text := p.send(c.token, "", http.MethodPost, "resource-types", map[string]any{"name": "document", "relations": []any{map[string]any{"name": "viewer", "rewrites": []any{}}}}); status != 201 {
		t.Fatal(text)
	}
	h.toggle(t.Context(), c.nodes[0], http.MethodPost)
	at, err := h.ask(c.nodes[0])
	if err != nil || at.allowed != true {
		t.Fatalf("the first check: %+v, %v", at, err)
	}
	h.base = at.revision
	return h
}

// saw notes that a revision is visible.
func (h *history) saw(revision int64) {
	for newest := h.newest.Load(); newest < revision && !h.newest.CompareAndSwap(newest, revision); {
		newest = h.newest.Load()
	}
}

// observe reads the newest revision in the database, before any process may have answered from it.
func (h *history) observe(ctx context.Context) {
	for ctx.Err() == nil {
		err := h.look(ctx)
		if ctx.Err() == nil && err != nil {
			time.Sleep(10 * time.Millisecond) // it crashes, or is being replaced
		}
	}
}

func (h *history) look(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, h.cluster.databaseURL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		var revision int64
		if err := conn.QueryRow(ctx, `SELECT rev FROM tenant_heads WHERE tenant_id = $1`, h.cluster.credentials.TenantID).Scan(&revision); err != nil {
			return err
		}
		h.saw(revision)
		h.looks.Add(1)
		time.Sleep(2 * time.Millisecond)
	}
}

type answer struct {
	revision int64
	allowed  bool
}

var question = []byte(`{"subject":{"type":"user","id":"ann"},"action":"viewer","resource":{"type":"document","external_id":"readme"}}`)

// ask sends a check.
func (h *history) ask(n *clusterNode) (a answer, err error) {
	p := n.process.Load()
	r, err := http.NewRequest(http.MethodPost, p.base+"/api/v1/resources/check", bytes.NewReader(question))
	if err != nil {
		return a, err
	}
	r.Host = p.host
	r.Header = http.Header{"Authorization": {"Bearer " + h.cluster.token}, "Content-Type": {"application/json"}}
	response, err := h.client.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return a, err
	}
	var got struct {
		Data struct{ Allowed *bool }
		Meta struct {
			Token string `json:"consistency_token"`
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || response.StatusCode != 200 || got.Data.Allowed == nil {
		return a, fmt.Errorf("%s: %.200s", response.Status, text)
	}
	token, err := base64.RawURLEncoding.DecodeString(got.Meta.Token)
	if err != nil {
		return a, err
	}
	a.allowed = *got.Data.Allowed
	a.revision, err = strconv.ParseInt(string(token[bytes.LastIndexByte(token, '|')+1:]), 10, 64)
	return a, err
}

// check asks a node and judges the answers.
func (h *history) check(ctx context.Context, n *clusterNode) {
	for ctx.Err() == nil {
		visible := h.newest.Load()
		got, err := h.ask(n)
		if err != nil {
			h.failures.Add(1)
			time.Sleep(5 * time.Millisecond)
			continue
		}
		h.answers.Add(1)
		if got.revision < visible {
			h.t.Errorf("%s answered from revision %d after %d was visible", n.process.Load().base, got.revision, visible)
		}
		if got.allowed != ((got.revision-h.base)%2 == 0) {
			h.t.Errorf("at revision %d of %d: allowed is %v", got.revision, h.base, got.allowed)
		}
		h.saw(got.revision)
	}
}

// write creates and deletes the relation. What exists already, or does not exist, is no change.
func (h *history) write(ctx context.Context, n *clusterNode, r *rand.Rand) {
	for ctx.Err() == nil {
		h.toggle(ctx, n, []string{http.MethodPost, http.MethodDelete}[r.IntN(2)])
		time.Sleep(time.Duration(r.Int64N(int64(150 * time.Millisecond))))
	}
}

func (h *history) toggle(ctx context.Context, n *clusterNode, method string) {
	began := time.Now()
	status, _, text := n.process.Load().send(h.cluster.token, "", method, "resources/document/readme/relations", map[string]any{
		"subject": map[string]string{"type": "user", "id": "ann"}, "relation": "viewer",
	})
	switch {
	case status == 200 || status == 201 || status == 204 || status == 404:
		h.writes.Add(1)
		h.longest.Store(max(h.longest.Load(), int64(time.Since(began))))
	case status == 0 || status >= 500 || ctx.Err() != nil:
		h.unacknowledged.Add(1)
	default:
		h.t.Errorf("%s: %d %s", method, status, text)
	}
}
