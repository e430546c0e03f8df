package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

var upgradeFrom = flag.String("upgrade-from", "", "the binary of the release before, for TestRollingUpgrade; the default is this one")

// laterMigrations are what the release after this one adds to tables that are in use. They are
// all in one package so that little has to be compiled.
var laterMigrations = map[string]string{
	"00901_deliveries.sql": "ALTER TABLE webhook_deliveries ADD COLUMN IF NOT EXISTS later TEXT NOT NULL DEFAULT ''",
	"00902_relations.sql":  "ALTER TABLE tuples ADD COLUMN IF NOT EXISTS later BIGINT NOT NULL DEFAULT 0",
	"00903_users.sql":      "ALTER TABLE users ADD COLUMN IF NOT EXISTS later TEXT",
	"00904_index.sql":      "CREATE INDEX IF NOT EXISTS tuples_later ON tuples (tenant_number, later)",
	"00905_table.sql":      "CREATE TABLE IF NOT EXISTS later (tenant_id TEXT PRIMARY KEY)",
}

// buildLater builds the release after this one: the same code with more migrations.
func buildLater(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{}
	for name, sql := range laterMigrations {
		place, err := filepath.Abs("../../webhooks/migrations/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[place] = filepath.Join(dir, name)
		if err := os.WriteFile(files[place], []byte("-- +goose NO TRANSACTION\n-- +goose Up\n"+sql+";\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "stonetown")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", writeFile(t, string(overlay)), "-o", binary, "stonetown/cmd/stonetown")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the later release: %v\n%s", err, out)
	}
	return binary
}

// balancer is a proxy that sends each request to the next process that is ready. It repeats none.
type balancer struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	backends []*backend
	next     int
}

type backend struct {
	process  *process
	url      *url.URL
	requests atomic.Int64
	stop     context.CancelFunc // its probes
	ready    bool               // by the last probe; guarded by the balancer
}

// probeInterval is shorter than the drain delay of the processes.
const probeInterval = 50 * time.Millisecond

func newBalancer(t *testing.T) *balancer {
	b := &balancer{t: t}
	b.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to := b.pick()
			r.SetURL(to.url)
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 32},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil { // the client has not gone
				t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	})
	t.Cleanup(b.server.Close)
	return b
}

func (b *balancer) pick() *backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.backends {
		b.next++
		if to := b.backends[b.next%len(b.backends)]; to.ready {
			to.requests.Add(1)
			return to
		}
	}
	b.t.Error("no process is ready")
	return &backend{url: new(url.URL)}
}

// add puts a process into service.
func (b *balancer) add(p *process) {
	b.t.Helper()
	at, err := url.Parse(p.base)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	to := &backend{process: p, url: at, stop: cancel, ready: true}
	b.mu.Lock()
	b.backends = append(b.backends, to)
	b.mu.Unlock()
	go func() {
		for ctx.Err() == nil {
			ready := false
			if resp, err := http.Get(p.admin + "/readyz"); err == nil {
				ready = resp.StatusCode == http.StatusOK
				resp.Body.Close()
			}
			b.mu.Lock()
			to.ready = ready
			b.mu.Unlock()
			time.Sleep(probeInterval)
		}
	}()
}

// replace starts a process of a binary, and then ends the oldest one with SIGTERM.
func (b *balancer) replace(binary, host string, args ...string) {
	b.t.Helper()
	b.add(startBinary(b.t, binary, 1, host, args...))
	b.mu.Lock()
	old := b.backends[0]
	b.mu.Unlock()
	if err := old.process.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.t.Fatal(err)
	}
	kill := time.AfterFunc(30*time.Second, func() { _ = old.process.cmd.Process.Kill() })
	defer kill.Stop()
	if err := old.process.cmd.Wait(); err != nil {
		b.t.Errorf("a process ended with %v:\n%s", err, old.process.log)
	}
	old.stop()
	b.mu.Lock()
	b.backends = slices.DeleteFunc(b.backends, func(other *backend) bool { return other == old })
	b.mu.Unlock()
}

// served returns how many requests the processes in service have got.
func (b *balancer) served() (counts []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, to := range b.backends {
		counts = append(counts, to.requests.Load())
	}
	return counts
}

// sometime waits until every process in service has got some more requests.
func (b *balancer) sometime() {
	b.t.Helper()
	before := b.served()
	until(b.t, func() bool {
		for i, n := range b.served() {
			if n < before[i]+50 {
				return b.t.Failed()
			}
		}
		return true
	})
}

// Two processes under load are replaced, one after the other, by those of a later release with more
// migrations, and then by this release again. Both releases serve side by side. No request fails, no
// acknowledged change is lost or missed by a check that follows it, and each event is delivered once.
func TestRollingUpgrade(t *testing.T) {
	dir := t.TempDir()
	database := pgtest.URL(t)
	flags := newPlace(t, dir, "place", "--database-url", database)
	c := readJSON(t, filepath.Join(dir, "place", "bootstrap.json"))
	host := hostOf(t, c.BaseURL)
	args := append(slices.Clone(flags), "--drain-delay", "400ms",
		"--rate-limits", "admin.caller=unlimited,token.ip=unlimited,token.caller=unlimited,sign-in.ip=unlimited")
	later := buildLater(t)
	old, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if *upgradeFrom != "" {
		old = *upgradeFrom
	}

	b := newBalancer(t)
	for range 2 {
		b.add(startBinary(t, old, 1, host, args...))
	}
	front := &process{base: b.server.URL, host: host} // what clients see
	token := front.token(t, c)
	if status, _, text := front.send(token, "", "POST", "resource-types", map[string]any{"name": "document", "relations": []any{map[string]string{"name": "viewer"}}}); status != 201 {
		t.Fatal(text)
	}
	receiver := newRecorder(t)
	path := receiver.subscribe(front, token)
	app := front.newApp(t, token)

	l := &load{t: t, acked: map[string]int{}}
	var checks, refreshes atomic.Int64
	stop := make(chan struct{})
	var working sync.WaitGroup
	repeat := func(f func(n int) error) {
		working.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 2 {
		working.Go(func() { l.client(front, token, fmt.Sprintf("c%d", i), 0, stop) })
	}
	for i := range 2 {
		repeat(func(n int) error {
			checks.Add(2)
			return front.writeAndCheck(token, fmt.Sprintf("k%d-%d", i, n))
		})
	}
	repeat(func(int) error {
		fresh := front.token(t, c)
		if status, _, text := front.send(fresh, "", "GET", "groups", nil); status != 200 {
			return fmt.Errorf("with a new token: %d %s", status, text)
		}
		return nil
	})
	repeat(func(int) error {
		refreshes.Add(1)
		return front.refresh(app)
	})
	b.sometime()
	b.replace(later, host, args...)
	b.sometime() // both releases serve
	b.replace(later, host, args...)
	b.sometime()
	b.replace(old, host, args...) // back
	b.sometime()
	close(stop)
	working.Wait()

	out, err := command(t, append([]string{"audit", "export"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	want, committed := map[string]bool{}, map[string]bool{}
	for text := range strings.Lines(out) {
		var e struct {
			EventID   string `json:"event_id"`
			EventType string `json:"event_type"`
			Data      json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		switch e.EventType {
		case "relation.created", "relation.deleted", "user.created":
			if change := changeOf(t, e.EventType, e.Data); change != "user.created "+app.User {
				want[e.EventID], committed[change] = true, true
			}
		}
	}
	for change := range l.acked {
		if !committed[change] {
			t.Errorf("%s was acknowledged and has no event", change)
		}
	}
	front.related(t, token, l.acked)
	until(t, func() bool { return len(receiver.missing(path, want)) == 0 })
	requests, repeated := receiver.checkRepeated(nil)
	t.Logf("%d changes, %d checks, %d refreshed tokens, %d deliveries", len(committed), checks.Load(), refreshes.Load(), requests)
	if len(l.acked) < 100 || checks.Load() < 100 || refreshes.Load() < 20 || repeated > 0 {
		t.Errorf("this shows too little: %d changes by clients, %d deliveries repeated", len(l.acked), repeated)
	}

	// The later release was there.
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var version int64
	if err := db.QueryRow(t.Context(), `SELECT MAX(version_id) FROM goose_webhooks`).Scan(&version); err != nil || version != 905 {
		t.Errorf("the tables have version %d, %v", version, err)
	}
	// A release that begins a generation locks this one out.
	if _, err := db.Exec(t.Context(), `INSERT INTO goose_webhooks (version_id, is_applied) VALUES (1000, TRUE)`); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, flags...), append([]string{"migrate"}, flags...)} {
		if _, err := command(t, args...); !errors.Is(err, sqldb.ErrNewer) || !strings.Contains(err.Error(), "webhooks has version 1000") {
			t.Errorf("%s on tables of a later generation: %v", args[0], err)
		}
	}
}

// writeAndCheck adds a relation and removes it. The next check reflects each, whichever process gets it.
func (p *process) writeAndCheck(token, document string) error {
	relation := map[string]any{"subject": map[string]string{"type": "user", "id": "ann"}, "relation": "viewer"}
	for _, step := range []struct {
		method  string
		status  int
		allowed bool
	}{{"POST", 201, true}, {"DELETE", 204, false}} {
		if status, _, text := p.send(token, document+step.method, step.method, "resources/document/"+document+"/relations", relation); status != step.status {
			return fmt.Errorf("%s %s: %d %s", step.method, document, status, text)
		}
		status, _, text := p.send(token, "", "POST", "resources/check", map[string]any{
			"subject": relation["subject"], "action": "view", "resource": map[string]string{"type": "document", "external_id": document},
		})
		if want := fmt.Sprintf(`"allowed":%t`, step.allowed); status != 200 || !strings.Contains(text, want) {
			return fmt.Errorf("a check after %s %s: %d %s, want %s", step.method, document, status, text, want)
		}
	}
	return nil
}

// related compares all relations with the acknowledged changes, in the form of load.
func (p *process) related(t *testing.T, token string, acked map[string]int) {
	t.Helper()
	w := &writer{}
	for acknowledged := range acked {
		if document, ok := strings.CutPrefix(acknowledged, "relation.created "); ok {
			method := http.MethodPost
			if _, ok := acked["relation.deleted "+document]; ok {
				method = http.MethodDelete
			}
			w.changes = append(w.changes, change{document: document, method: method})
		}
	}
	compare(t, p, token, []*writer{w})
}

// app is an application in which a user is signed in.
type app struct {
	ClientID, User, Email, Password, Session, RefreshToken string
}

// newApp signs a user in at a new application.
func (p *process) newApp(t *testing.T, token string) *app {
	t.Helper()
	const back = "https://notes.example.com/callback"
	a := app{Email: "zoe@example.com", Password: "correct horse battery"}
	a.User = p.call(t, token, "POST", "users", map[string]any{"email": a.Email, "email_verified": true, "password": a.Password})["id"].(string)
	a.ClientID = p.call(t, token, "POST", "applications", map[string]any{
		"name": "Notes", "type": "spa", "redirect_uris": []string{back}, "allowed_scopes": []string{"openid", "offline_access"},
	})["client_id"].(string)
	a.Session = p.signIn(t, a.Email, a.Password)["session_token"].(string)

	// The verifier and the challenge are those of RFC 7636, Appendix B.
	query := url.Values{
		"response_type": {"code"}, "client_id": {a.ClientID}, "redirect_uri": {back}, "scope": {"openid offline_access"}, "state": {"af0ifjsldkj"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", p.base+"/oauth2/authorize?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = p.host
	req.Header.Set("Cookie", "__Host-sid="+a.Session)
	resp, err := http.DefaultTransport.RoundTrip(req) // without following the redirect
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	to, err := resp.Location()
	if err != nil || to.Query().Get("code") == "" {
		t.Fatalf("authorize: %s to %v", resp.Status, to)
	}
	err = p.grant(&a, url.Values{
		"grant_type": {"authorization_code"}, "redirect_uri": {back}, "code": {to.Query().Get("code")},
		"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

// call sends a request that must succeed, and returns its data.
func (p *process) call(t *testing.T, token, method, path string, body any) map[string]any {
	t.Helper()
	status, _, text := p.send(token, "", method, path, body)
	var answer struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(text), &answer); status/100 != 2 || err != nil {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return answer.Data
}

// signIn returns the result of a sign-in: a session, or the next step.
func (p *process) signIn(t *testing.T, email, password string) map[string]any {
	t.Helper()
	return p.call(t, " ", "POST", "auth/sign-in", map[string]any{"email": email, "password": password})
}

// refresh replaces the refresh token.
func (p *process) refresh(a *app) error {
	return p.grant(a, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.RefreshToken}})
}

func (p *process) grant(a *app, form url.Values) error {
	form.Set("client_id", a.ClientID)
	req, err := http.NewRequest("POST", p.base+"/oauth2/token", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Host = p.host
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := killClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.RefreshToken == "" {
		return fmt.Errorf("%s: %s %s", form.Get("grant_type"), resp.Status, text)
	}
	a.RefreshToken = answer.RefreshToken
	return nil
}
