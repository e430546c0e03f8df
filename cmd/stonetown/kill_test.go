package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/internal/pgtest"
)

var (
	kills    = flag.Int("kills", 2, "how often the server is killed, on each database")
	killSeed = flag.Uint64("kill-seed", 0, "seed of the load and of the moments of the kills; 0 draws one")
)

// process is the program in a separate process, which can be killed.
type process struct {
	cmd   *exec.Cmd
	base  string // http://127.0.0.1:port
	admin string // http://127.0.0.1:port of health and metrics, unless it is a development server
	host  string // of the tenant; empty: that of base
	log   *syncBuffer
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{log: new(syncBuffer)}
	p.cmd = exec.Command(self, append([]string{"serve", "--dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1")
	p.cmd.Stderr = p.log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if base, ok := strings.CutPrefix(lines.Text(), "Stonetown runs on "); ok {
			p.base = strings.Replace(base, "dev.localhost", "127.0.0.1", 1)
			go io.Copy(io.Discard, stdout)
			return p
		}
	}
	t.Fatalf("the server did not start:\n%s", p.log)
	return nil
}

// kill ends the process as a power failure does. It may be called more than once.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // the error states that it was killed
	}
}

// send returns status 0 without a response.
func (p *process) send(token, key, method, path string, body any) (status int, replayed bool, text string) {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequest(method, p.base+"/api/v1/"+path, bytes.NewReader(encoded))
	if err != nil {
		panic(err)
	}
	req.Host = p.host
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := killClient.Do(req)
	if err != nil {
		return 0, false, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, false, err.Error()
	}
	return resp.StatusCode, resp.Header.Get("Idempotent-Replayed") != "", string(answer)
}

var killClient = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32, DisableCompression: true}}

// change is a relation that was written or removed under a key, with the response.
type change struct {
	key, document, method string
	status                int // 0: unknown
	text                  string
}

func (c change) send(p *process, token string) (status int, replayed bool, text string) {
	return p.send(token, c.key, c.method, "resources/document/"+c.document+"/relations", map[string]any{
		"subject": map[string]string{"type": "user", "id": "ann"}, "relation": "viewer",
	})
}

// writer changes documents of its own, one after another.
type writer struct {
	rand    *rand.Rand
	name    string
	n       int
	changes []change
	exists  []string // documents that it has related and not begun to unrelate
}

// write goes on until a request has no response.
func (w *writer) write(p *process, token string) {
	for {
		c := change{key: fmt.Sprintf("%s-%d", w.name, w.n), method: http.MethodPost, document: fmt.Sprintf("%s-%d", w.name, w.n)}
		w.n++
		if len(w.exists) > 0 && w.rand.IntN(3) == 0 {
			i := w.rand.IntN(len(w.exists))
			c.method, c.document = http.MethodDelete, w.exists[i]
			w.exists = slices.Delete(w.exists, i, i+1)
		}
		c.status, _, c.text = c.send(p, token)
		w.changes = append(w.changes, c)
		if c.status == 0 {
			return
		}
		if c.method == http.MethodPost {
			w.exists = append(w.exists, c.document)
		}
	}
}

// The server is killed repeatedly during its work. All acknowledged changes exist, each once;
// the others can be sent again under the same key, and are then executed once.
func TestKill(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for name, arguments := range map[string]func(t *testing.T) []string{
		"SQLite":     func(*testing.T) []string { return nil },
		"PostgreSQL": func(t *testing.T) []string { return []string{"--database-url", pgtest.URL(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					t.Logf("repeat with -kill-seed=%d", seed)
				}
			}()
			dir := t.TempDir()
			args := append(arguments(t), "--data-dir", dir, "--log-level", "warn", "--request-timeout", "2s")
			random := rand.New(rand.NewPCG(seed, 0))
			writers := make([]*writer, 8)
			for i := range writers {
				writers[i] = &writer{rand: rand.New(rand.NewPCG(seed, uint64(i+1))), name: fmt.Sprintf("w%d", i)}
			}
			p := startProcess(t, args...)
			c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
			token := p.token(t, c)
			if status, _, text := p.send(token, "", "POST", "resource-types", map[string]any{"name": "document", "relations": []any{map[string]string{"name": "viewer"}}}); status != 201 {
				t.Fatal(text)
			}
			for round := range *kills {
				var wg sync.WaitGroup
				for _, w := range writers {
					wg.Go(func() { w.write(p, token) })
				}
				time.Sleep(time.Duration(200+random.IntN(600)) * time.Millisecond)
				p.kill()
				wg.Wait()
				// With a shared database, the tenant keeps its address.
				p = startProcess(t, append(args, "--listen", strings.TrimPrefix(p.base, "http://"))...)
				token = p.token(t, c)
				total := 0
				for _, w := range writers {
					wg.Go(func() { w.resume(t, p, token) })
				}
				wg.Wait()
				for _, w := range writers {
					total += len(w.changes)
				}
				if t.Failed() {
					t.Fatalf("after kill %d, %d changes", round+1, total)
				}
				t.Logf("kill %d: %d changes so far, all as acknowledged", round+1, total)
			}
			compare(t, p, token, writers)
			p.kill()
			compareEvents(t, args, writers)
		})
	}
}

func (p *process) token(t *testing.T, c credentials) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", p.base+"/oauth2/token", strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = p.host
	req.SetBasicAuth(c.ClientID, c.ClientSecret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := killClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.AccessToken == "" {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return answer.AccessToken
}

// resume sends the newest changes again: the last one, which has an unknown outcome, until it
// has a response, and some before it, which have one.
func (w *writer) resume(t *testing.T, p *process, token string) {
	t.Helper()
	for i := max(0, len(w.changes)-20); i < len(w.changes); i++ {
		c := &w.changes[i]
		want := map[string]int{http.MethodPost: 201, http.MethodDelete: 204}[c.method]
		status, replayed, text := c.send(p, token)
		for deadline := time.Now().Add(2 * time.Minute); status == 409 && time.Now().Before(deadline); { // the lease of a dead process
			time.Sleep(time.Second)
			status, replayed, text = c.send(p, token)
		}
		switch {
		case status != want:
			t.Errorf("%s %s, answered %d before: %d %s", c.method, c.document, c.status, status, text)
		case c.status != 0 && (!replayed || text != c.text):
			t.Errorf("%s %s was answered %q, and now (replayed: %t) %q", c.method, c.document, c.text, replayed, text)
		case c.status == 0 && c.method == http.MethodPost:
			w.exists = append(w.exists, c.document)
		}
		if c.status == 0 {
			c.status, c.text = status, text
		}
	}
}

// expected returns which documents are related after all changes, and how often each was
// related and unrelated.
func expected(writers []*writer) (exists map[string]bool, created, deleted map[string]int) {
	exists, created, deleted = map[string]bool{}, map[string]int{}, map[string]int{}
	for _, w := range writers {
		for _, c := range w.changes {
			if exists[c.document] = c.method == http.MethodPost; exists[c.document] {
				created[c.document]++
			} else {
				deleted[c.document]++
			}
		}
	}
	return exists, created, deleted
}

// compare compares every answer with the acknowledged changes.
func compare(t *testing.T, p *process, token string, writers []*writer) {
	t.Helper()
	exists, _, _ := expected(writers)
	for documents := range slices.Chunk(slices.Sorted(maps.Keys(exists)), 500) {
		var checks []any
		for _, d := range documents {
			checks = append(checks, map[string]any{"action": "view", "resource": map[string]string{"type": "document", "external_id": d}})
		}
		status, _, text := p.send(token, "", "POST", "resources/check-batch", map[string]any{"subject": map[string]string{"type": "user", "id": "ann"}, "checks": checks})
		var answer struct {
			Data []struct {
				Allowed bool
				Error   string
			}
		}
		if err := json.Unmarshal([]byte(text), &answer); status != 200 || err != nil || len(answer.Data) != len(documents) {
			t.Fatalf("%d %s, %v", status, text, err)
		}
		for i, d := range documents {
			if got := answer.Data[i]; got.Allowed != exists[d] || got.Error != "" {
				t.Errorf("%s: %+v, want %t", d, got, exists[d])
			}
		}
	}
}

// compareEvents requires one event for each change, in order.
func compareEvents(t *testing.T, args []string, writers []*writer) {
	t.Helper()
	out, err := command(t, append([]string{"audit", "export"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	_, created, deleted := expected(writers)
	sequence := 0.0
	for text := range strings.Lines(out) {
		var e struct {
			Sequence  float64
			EventType string `json:"event_type"`
			Data      struct {
				Relation struct {
					Resource struct {
						ExternalID string `json:"external_id"`
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		if sequence++; e.Sequence != sequence {
			t.Fatalf("event %v follows event %v", e.Sequence, sequence-1)
		}
		switch d := e.Data.Relation.Resource.ExternalID; e.EventType {
		case "relation.created":
			created[d]--
		case "relation.deleted":
			deleted[d]--
		}
	}
	for _, counts := range []map[string]int{created, deleted} {
		for d, n := range counts {
			if n != 0 {
				t.Errorf("%s: %d events too few", d, n)
			}
		}
	}
}
