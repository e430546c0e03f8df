package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stonetown/api/openapi/eventtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

// running is a server in this process.
type running struct {
	*Program
	t    *testing.T
	out  *bytes.Buffer // written before start returns
	log  *syncBuffer
	stop context.CancelFunc // acts as SIGTERM
	done chan error
}

// syncBuffer is a log that can be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start runs serve on free ports. The test stops it with wait, or it stops with the test.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	config, err := resolve(t, append([]string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "debug"}, args...), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &running{t: t, out: new(bytes.Buffer), log: new(syncBuffer), done: make(chan error, 1)}
	s.Program = newProgram(config, s.out, newLogger(config, s.log))
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	if err := s.Open(ctx); err != nil {
		cancel()
		t.Fatal(errors.Join(err, s.Close()))
	}
	go func() { s.done <- s.Serve(ctx) }()
	t.Cleanup(func() { s.wait() })
	return s
}

// wait stops the server and returns its error. It may be called more than once.
func (s *running) wait() error {
	s.stop()
	err, ok := <-s.done
	if !ok {
		return nil
	}
	close(s.done)
	s.catalogued()
	if closeErr := s.Close(); closeErr != nil {
		s.t.Error(closeErr)
	}
	return err
}

// catalogued validates the newest events of tenants by the document.
func (s *running) catalogued() {
	s.t.Helper()
	for query, read := range map[string]func(row string) (name string, data []byte, err error){
		`SELECT type || ' ' || data FROM events WHERE tenant_id LIKE 'tnt_%' ORDER BY occurred_at DESC LIMIT 1000`: func(row string) (string, []byte, error) {
			name, data, _ := strings.Cut(row, " ")
			return name, []byte(data), nil
		},
		`SELECT event FROM tenant_commits WHERE event <> '' ORDER BY committed_at DESC LIMIT 1000`: func(row string) (string, []byte, error) {
			parts := make([]json.RawMessage, 4)
			var name string
			err := json.Unmarshal([]byte(row), &parts)
			err = errors.Join(err, json.Unmarshal(parts[1], &name))
			return name, parts[3], err
		},
	} {
		rows, err := sqldb.Texts(s.server.DB.Query(context.Background(), query))
		if err != nil {
			s.t.Error(err)
			return
		}
		for _, row := range rows {
			name, data, err := read(row)
			if err != nil {
				s.t.Fatal(err)
			}
			eventtest.Data(s.t, name, data)
		}
	}
}

// httpClient does not keep connections, so that no connection outlives a test.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}

func (s *running) do(method, url, host, token, body string) (status int, answer map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Host = host
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		answer = map[string]any{"text": string(text)}
	}
	return resp.StatusCode, answer
}

func (s *running) token(c credentials) string {
	s.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ClientID}, "client_secret": {c.ClientSecret}}
	status, answer := s.do("POST", "http://"+s.Addr()+"/oauth2/token", hostOf(s.t, c.BaseURL), "", form.Encode())
	token, _ := answer["access_token"].(string)
	if status != 200 || token == "" {
		s.t.Fatalf("token: %d %v", status, answer)
	}
	return token
}

func hostOf(t *testing.T, base string) string {
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// TestServeDev performs the first steps of a new user: start, get a token, define a type,
// write, check; stop, start again on another port, and find all data.
func TestServeDev(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "bootstrap.json")

	s := start(t, "--dev", "--data-dir", dir)
	for name, mode := range map[string]os.FileMode{"bootstrap.json": 0o600, "master.key": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want mode %v", name, info, err, mode)
		}
	}
	first := readJSON(t, file)
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if first.BaseURL != "http://dev.localhost:"+port || first.ControlURL != "http://control.localhost:"+port {
		t.Errorf("addresses %s and %s are not on port %s", first.BaseURL, first.ControlURL, port)
	}
	if !strings.Contains(s.out.String(), "Stonetown runs on "+first.BaseURL+"\n") || !strings.Contains(s.out.String(), file) || strings.Contains(s.out.String(), first.ClientSecret) {
		t.Errorf("not ready to paste:\n%s", s.out)
	}

	token := s.token(first)
	host := hostOf(t, first.BaseURL)
	call := func(path, body string, want int) map[string]any {
		t.Helper()
		status, answer := s.do("POST", "http://"+s.Addr()+"/api/v1/"+path, host, token, body)
		if status != want {
			t.Fatalf("%s: %d %v, want %d", path, status, answer, want)
		}
		data, _ := answer["data"].(map[string]any)
		return data
	}
	const check = `{"subject":{"type":"user","id":"%s"},"action":"view","resource":{"type":"document","external_id":"readme"}}`
	call("resource-types", `{"name":"document","relations":[{"name":"viewer","rewrites":[]}]}`, 201)
	call("resources/document/readme/relations", `{"subject":{"type":"user","id":"ann"},"relation":"viewer"}`, 201)
	if got := call("resources/check", fmt.Sprintf(check, "ann"), 200)["allowed"]; got != true {
		t.Errorf("ann: %v", got)
	}
	if got := call("resources/check", fmt.Sprintf(check, "bob"), 200)["allowed"]; got != false {
		t.Errorf("bob: %v", got)
	}

	// In development, an IP address or localhost is the first tenant; other names are no
	// tenant.
	for host, want := range map[string]int{s.Addr(): 200, "localhost:1": 200, "other.localhost": 404, "control.localhost": 200} {
		if status, answer := s.do("GET", "http://"+s.Addr()+"/.well-known/jwks.json", host, "", ""); status != want {
			t.Errorf("host %s: %d %v, want %d", host, status, answer, want)
		}
	}
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}

	s2 := start(t, "--dev", "--data-dir", dir)
	second := readJSON(t, file)
	_, port, _ = net.SplitHostPort(s2.Addr())
	want := first
	want.BaseURL, want.ControlURL = "http://dev.localhost:"+port, "http://control.localhost:"+port
	if second != want {
		t.Errorf("after the second start the file holds %+v, want %+v", second, want)
	}
	if !strings.Contains(s2.out.String(), "Stonetown runs on "+second.BaseURL+"\n") {
		t.Errorf("not ready to paste:\n%s", s2.out)
	}
	s, host, token = s2, hostOf(t, second.BaseURL), s2.token(second)
	if got := call("resources/check", fmt.Sprintf(check, "ann"), 200)["allowed"]; got != true {
		t.Errorf("ann after a restart: %v", got)
	}
	if err := s2.wait(); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{first.ClientSecret, first.Admin.Password, first.Owner.Password, token} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log holds the secret %s", secret)
		}
	}
}

// If the file is lost, the credentials are lost; the server says so, and serves.
func TestServeDevWithoutCredentials(t *testing.T) {
	dir := t.TempDir()
	s := start(t, "--dev", "--data-dir", dir)
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "bootstrap.json")); err != nil {
		t.Fatal(err)
	}
	s = start(t, "--dev", "--data-dir", dir)
	if !strings.Contains(s.log.String(), "level=WARN") || !strings.Contains(s.log.String(), "allow_insecure_targets is set") {
		t.Errorf("the addresses of tenants are not limited, and no warning was logged:\n%s", s.log)
	}
	if out := s.out.String(); strings.Contains(out, "client_secret") || !strings.Contains(out, "does not hold its credentials") {
		t.Errorf("printed:\n%s", out)
	}
}

func TestServeRefusesWrongMasterKey(t *testing.T) {
	dir := t.TempDir()
	if err := start(t, "--dev", "--data-dir", dir).wait(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	_, err := command(t, "serve", "--dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	if !errors.Is(err, seal.ErrWrongKey) || !strings.Contains(err.Error(), "master.key") {
		t.Errorf("%v, want ErrWrongKey and the file's name", err)
	}
}

func TestServeWithoutTenant(t *testing.T) {
	dir := t.TempDir()
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--data-dir", dir)
	if s.out.Len() > 0 || !strings.Contains(s.log.String(), "stonetown bootstrap") || strings.Contains(s.log.String(), "not for production") {
		t.Errorf("printed %q, logged %s", s.out, s.log)
	}
	// Outside development, no address is a tenant by itself.
	if status, answer := s.do("GET", "http://"+s.Addr()+"/.well-known/jwks.json", "localhost", "", ""); status != 404 || answer["error"] != "tenant_not_found" {
		t.Errorf("%d %v", status, answer)
	}
}

func TestAdmin(t *testing.T) {
	s := start(t, "--dev", "--data-dir", t.TempDir())
	get := func(path string) (int, string) {
		status, answer := s.do("GET", "http://"+s.AdminAddr()+path, "", "", "")
		text, _ := answer["text"].(string)
		return status, text
	}
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": "ready", "/metrics": "stonetown_checks_total", "/debug/pprof/": "goroutine",
	} {
		if status, text := get(path); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.200s", path, status, text)
		}
		if status, _ := s.do("GET", "http://"+s.Addr()+path, "dev.localhost", "", ""); status != 404 {
			t.Errorf("%s is served to clients: %d", path, status)
		}
	}

	for _, outcome := range []string{"loaded", "too_large", "failed"} {
		if _, text := get("/metrics"); !strings.Contains(text, `stonetown_engine_loads_total{outcome="`+outcome+`"}`) {
			t.Errorf("the metrics do not count the loads that end as %s", outcome)
		}
	}

	health := func() (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), []string{"health", "--dev", "--data-dir", t.TempDir(), "--admin-listen", s.AdminAddr()}, nil, &out, io.Discard)
		return out.String(), err
	}
	if out, err := health(); out != "ready\n" || err != nil {
		t.Errorf("stonetown health: %q, %v", out, err)
	}

	// Not ready: during the start, and if the database does not respond.
	s.admin.state.Store(&readiness{reason: "starting"})
	if status, text := get("/readyz"); status != 503 || !strings.Contains(text, "starting") {
		t.Errorf("while starting: %d %s", status, text)
	}
	if out, err := health(); out != "" || err == nil || err.Error() != "starting" {
		t.Errorf("stonetown health while starting: %q, %v", out, err)
	}
	closed, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	s.admin.ready(closed)
	if status, _ := get("/readyz"); status != 503 {
		t.Errorf("without a database: %d", status)
	}
	if status, _ := get("/healthz"); status != 200 {
		t.Errorf("health without a database: %d", status)
	}
}

func TestLocalAddress(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:9090": "127.0.0.1:9090", "0.0.0.0:9090": "localhost:9090", ":9090": "localhost:9090", "[::]:9090": "localhost:9090",
		"10.1.2.3:9090": "10.1.2.3:9090", "admin.internal:9090": "admin.internal:9090",
	} {
		if got := localAddress(listen); got != want {
			t.Errorf("%s is reached at %s, want %s", listen, got, want)
		}
	}
}

// A server that is told to stop reports that it is not ready, serves until load balancers have
// noticed, and completes requests in progress.
func TestServeDrains(t *testing.T) {
	s := start(t, "--dev", "--data-dir", t.TempDir(), "--drain-delay", "1s")
	c := readJSON(t, s.config.bootstrapFile())

	// A request with a body that takes as long as the test requires.
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ClientID}, "client_secret": {c.ClientSecret}}.Encode()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /oauth2/token HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		hostOf(t, c.BaseURL), len(form), form[:10])

	s.stop()
	deadline := time.Now().Add(10 * time.Second)
	for {
		status, answer := s.do("GET", "http://"+s.AdminAddr()+"/readyz", "", "", "")
		if status == 503 && strings.Contains(fmt.Sprint(answer), "draining") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %d %v", status, answer)
		}
		time.Sleep(time.Millisecond)
	}
	// A new request is still served, and ends its connection.
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr()+"/.well-known/jwks.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = hostOf(t, c.BaseURL)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || !resp.Close {
		t.Errorf("while draining: %s, the connection ends: %t", resp.Status, resp.Close)
	}

	// After the delay new connections are refused; the request goes on.
	for time.Now().Before(deadline) {
		probe, err := net.Dial("tcp", s.Addr())
		if err != nil {
			break
		}
		probe.Close()
		time.Sleep(5 * time.Millisecond)
	}
	if probe, err := net.Dial("tcp", s.Addr()); err == nil {
		probe.Close()
		t.Error("connections are still accepted")
	}
	if _, err := io.WriteString(conn, form[10:]); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !bytes.Contains(answer, []byte("200 OK")) || !bytes.Contains(answer, []byte("access_token")) {
		t.Errorf("the request under way was answered %q, %v", answer, err)
	}
	if err := s.wait(); err != nil {
		t.Errorf("Serve returned %v", err)
	}
}

// A request without end does not prevent the server from stopping.
func TestServeDrainTimeout(t *testing.T) {
	s := start(t, "--dev", "--data-dir", t.TempDir(), "--drain-timeout", "100ms")
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /oauth2/token HTTP/1.1\r\nHost: dev.localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\n")
	s.do("GET", "http://"+s.Addr()+"/.well-known/jwks.json", "dev.localhost", "", "") // accepted later, so the first one is in progress
	if err := s.wait(); err == nil || !strings.Contains(err.Error(), "100ms") {
		t.Errorf("Serve returned %v, want a word about the timeout", err)
	}
}

func TestOpenFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, args := range map[string][]string{
		"address in use":       {"--dev", "--listen", taken.Addr().String()},
		"admin address in use": {"--dev", "--admin-listen", taken.Addr().String()},
		"no such database":     {"--dev", "--database-url", "sqlite:///nowhere/at/all.db"},
		"no master key":        {},
	} {
		config, err := resolve(t, append([]string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir", t.TempDir()}, args...), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := newProgram(config, io.Discard, slog.New(slog.DiscardHandler))
		if err := p.Open(t.Context()); err == nil {
			t.Errorf("%s: Open succeeded", name)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

// A server with a service for breached passwords queries it, and counts the queries.
func TestServeAsksForBreachedPasswords(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/range/2F9E5" { // SHA-1 of correct horse
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "3523B62ABC141A2B4D6019D23CBA835DBD0:1\r\n")
	}))
	defer service.Close()
	s := start(t, "--dev", "--data-dir", t.TempDir(), "--breached-passwords-url", service.URL+"/range/")
	c := readJSON(t, s.config.bootstrapFile())
	token := s.token(c)
	create := func(body string) (int, map[string]any) {
		return s.do("POST", "http://"+s.Addr()+"/api/v1/users", hostOf(t, c.BaseURL), token, body)
	}
	if status, answer := create(`{"email":"ann@example.com","password":"correct horse"}`); status != 400 || answer["error"] != "password_policy_violation" {
		t.Errorf("a breached one: %d %v", status, answer)
	}
	if status, answer := create(`{"email":"ann@example.com","password":"correct horse battery"}`); status != 201 {
		t.Errorf("one of which the service cannot say: %d %v", status, answer)
	}
	_, metrics := s.do("GET", "http://"+s.AdminAddr()+"/metrics", "", "", "")
	text, _ := metrics["text"].(string)
	for _, line := range []string{"\nstonetown_breached_password_questions_total 2\n", "\nstonetown_breached_password_failures_total 1\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics do not have %q", line)
		}
	}
}
