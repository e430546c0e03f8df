package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stonetown/webhooks/signature"
)

// listening is the command webhooks listen in a process of its own.
type listening struct {
	cmd    *exec.Cmd
	lines  chan string // of its output
	errs   chan string // of its messages
	secret string
}

func listen(t *testing.T, dir string, args ...string) *listening {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &listening{cmd: exec.Command(self, append([]string{"webhooks", "listen", "--data-dir", dir}, args...)...), lines: make(chan string, 100), errs: make(chan string, 100)}
	l.cmd.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1")
	pipe := func(source func() (io.ReadCloser, error), to chan<- string) {
		from, err := source()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer close(to)
			for scan := bufio.NewScanner(from); scan.Scan(); {
				to <- scan.Text()
			}
		}()
	}
	pipe(l.cmd.StdoutPipe, l.lines)
	pipe(l.cmd.StderrPipe, l.errs)
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if l.cmd.ProcessState == nil {
			_ = l.cmd.Process.Kill()
			_ = l.cmd.Wait()
		}
	})
	l.secret = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`).FindString(line(t, l.errs))
	return l
}

// line returns the next line.
func line(t *testing.T, of <-chan string) string {
	t.Helper()
	select {
	case text, ok := <-of:
		if !ok {
			t.Fatal("the output has ended")
		}
		return text
	case <-time.After(20 * time.Second):
		t.Fatal("there is no further line")
	}
	return ""
}

// interrupt sends a signal and requires that the command ends without an error.
func (l *listening) interrupt(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := l.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(20*time.Second, func() { _ = l.cmd.Process.Kill() })
	defer kill.Stop()
	for text := range l.errs {
		t.Errorf("after %v: %s", signal, text)
	}
	for range l.lines { // the pipes must be read to the end before Wait
	}
	if err := l.cmd.Wait(); err != nil {
		t.Errorf("after %v: %v", signal, err)
	}
}

// localProgram is a local program that answers with a status.
type localProgram struct {
	mu       sync.Mutex
	status   int
	received []*http.Request
	bodies   []string
}

func (p *localProgram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received, p.bodies = append(p.received, r), append(p.bodies, string(body))
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(p.status)
}

func (p *localProgram) respond(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

// subscriptions returns the subscriptions of a server.
func (s *running) subscriptions(c credentials, token string) (all []map[string]any) {
	s.t.Helper()
	status, answer := s.do("GET", "http://"+s.Addr()+"/api/v1/webhooks/subscriptions", hostOf(s.t, c.BaseURL), token, "")
	if status != 200 {
		s.t.Fatalf("%d %v", status, answer)
	}
	for _, one := range answer["data"].([]any) {
		all = append(all, one.(map[string]any))
	}
	return all
}

// TestWebhooksListen receives the events of a server, forwards them, and unsubscribes.
func TestWebhooksListen(t *testing.T) {
	dir := t.TempDir()
	s := start(t, "--dev", "--data-dir", dir)
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	token := s.token(c)
	local := &localProgram{status: 202}
	target := httptest.NewServer(local)
	defer target.Close()
	l := listen(t, dir, "--forward", target.URL+"/hooks?a=b", "--events", "resource_type.*,relation.created")
	found := s.subscriptions(c, token)
	if len(found) != 1 || found[0]["name"] != "stonetown webhooks listen" || !slices.Equal(found[0]["events"].([]any), []any{"resource_type.*", "relation.created"}) {
		t.Fatalf("subscriptions %v", found)
	}

	// A delivery is verified, forwarded and answered.
	want(t, dir, "schema", "apply", writeFile(t, "name: document\nrelations: [{name: viewer}]\n"))
	first := line(t, l.lines)
	if !regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3}  resource_type\.created  evt_\w+  attempt 1  verified  202  \d+ ms$`).MatchString(first) {
		t.Errorf("printed %q", first)
	}
	local.mu.Lock()
	r, body := local.received[0], local.bodies[0]
	local.mu.Unlock()
	secret, err := signature.ParseSecret(l.secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := signature.Verify(r.Header, []byte(body), secret, time.Now(), signature.Tolerance); err != nil || r.RequestURI != "/hooks?a=b" || !strings.Contains(first, r.Header.Get("Webhook-Id")) {
		t.Errorf("forwarded %s %v: %v", r.RequestURI, r.Header, err)
	}

	// The failure of the program is that of the delivery.
	local.respond(503)
	want(t, dir, "relations", "add", "document:q3", "viewer", "user:ann")
	if text := line(t, l.lines); !strings.Contains(text, "  relation.created  ") || !strings.Contains(text, "  verified  503  ") {
		t.Errorf("printed %q", text)
	}
	target.Close()
	want(t, dir, "relations", "add", "document:q3", "viewer", "user:bob")
	if text := line(t, l.lines); !strings.Contains(text, "  verified  502  ") || !strings.Contains(text, "connection refused") {
		t.Errorf("printed %q", text)
	}
	id, _ := found[0]["id"].(string)
	var statuses []any
	for deadline := time.Now().Add(20 * time.Second); len(statuses) < 3 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		statuses = nil
		_, answer := s.do("GET", "http://"+s.Addr()+"/api/v1/webhooks/subscriptions/"+id+"/deliveries", hostOf(t, c.BaseURL), token, "")
		for _, d := range answer["data"].([]any) {
			for _, a := range d.(map[string]any)["attempts"].([]any) {
				statuses = append(statuses, a.(map[string]any)["status"])
			}
		}
	}
	if !slices.Equal(statuses, []any{502.0, 503.0, 202.0}) {
		t.Errorf("the server received %v", statuses)
	}

	// The metrics have the attempts.
	_, answer := s.do("GET", "http://"+s.AdminAddr()+"/metrics", "", "", "")
	metrics, _ := answer["text"].(string)
	for _, want := range []string{
		`stonetown_webhook_attempts_total{receiver="healthy",result="success"} 1`, `stonetown_webhook_attempts_total{receiver="healthy",result="status"} 2`,
		"stonetown_webhook_dead_letters_total 0", "stonetown_webhook_oldest_due_seconds 0", "stonetown_webhook_events_behind 0",
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("the metrics do not have %s", want)
		}
	}

	// A forged request is refused and not forwarded.
	address, _ := found[0]["url"].(string)
	forged := func(mutate func(http.Header)) {
		t.Helper()
		request, err := http.NewRequest("POST", address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = r.Header.Clone()
		mutate(request.Header)
		response, err := httpClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if text := line(t, l.lines); response.StatusCode != 401 || !strings.Contains(text, "  not verified  401  ") || strings.ContainsRune(text, '\x1b') {
			t.Errorf("a forged request: %d, printed %q", response.StatusCode, text)
		}
	}
	forged(func(h http.Header) { h.Set("Webhook-Id", "evt_other") })
	forged(func(h http.Header) { h.Del("Webhook-Signature") })
	forged(func(h http.Header) { clear(h); h["X-Service-Event"] = []string{"\u009b31m"} })
	if len(local.received) != 2 {
		t.Errorf("%d requests were forwarded, want 2", len(local.received))
	}

	l.interrupt(t, os.Interrupt)
	if left := s.subscriptions(c, token); len(left) != 0 {
		t.Errorf("after Ctrl-C: %v", left)
	}
}

// TestWebhooksListenJSON prints bodies, without a local program.
func TestWebhooksListenJSON(t *testing.T) {
	dir := t.TempDir()
	s := start(t, "--dev", "--data-dir", dir)
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	l := listen(t, dir, "-o", "json", "--events", "resource_type.created")
	want(t, dir, "schema", "apply", writeFile(t, "name: document\nrelations: [{name: viewer}]\n"))
	var d struct {
		EventID  string `json:"event_id"`
		Verified bool
		Status   int
		Body     struct {
			EventID string `json:"event_id"`
			Data    map[string]map[string]any
		}
	}
	text := line(t, l.lines)
	if err := json.Unmarshal([]byte(text), &d); err != nil || !d.Verified || d.Status != 204 || d.EventID != d.Body.EventID || d.Body.Data["resource_type"]["name"] != "document" {
		t.Errorf("printed %s: %v", text, err)
	}
	l.interrupt(t, syscall.SIGTERM)
	if left := s.subscriptions(c, s.token(c)); len(left) != 0 {
		t.Errorf("after SIGTERM: %v", left)
	}
}

// TestWebhooksListenFails has one line for each cause.
func TestWebhooksListenFails(t *testing.T) {
	dir := development(t)
	refused(t, dir, 1, "--forward is not an http:// or https:// URL", "webhooks", "listen", "--forward", "127.0.0.1:3000")
	refused(t, dir, 1, "event_type_unknown", "webhooks", "listen", "--events", "user.nonsense")
	refused(t, dir, 1, "must be text or json", "webhooks", "listen", "-o", "xml")

	// A server that delivers to public addresses only.
	dir = t.TempDir()
	if _, err := command(t, "bootstrap", "--dev", "--data-dir", dir); err != nil {
		t.Fatal(err)
	}
	strict := start(t, "--data-dir", dir)
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	address := "http://dev.localhost:" + strings.Split(strict.Addr(), ":")[1]
	r := on(t, dir, "webhooks", "listen", "--server", address, "--client-id", c.ClientID, "--client-secret-file", writeFile(t, c.ClientSecret))
	if r.code != 1 || !strings.Contains(r.errs, "without --dev or allow_insecure_targets") || strings.Contains(r.errs, "\n") {
		t.Errorf("code %d, %q", r.code, r.errs)
	}
}
