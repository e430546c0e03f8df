package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

// TestStoppedLeaseholders stops and kills processes that hold read leases, for longer than a lease.
// Writes at the other process go on, and no answer misses one that was acknowledged before the
// check was sent.
func TestStoppedLeaseholders(t *testing.T) {
	url, dir := pgtest.URL(t), t.TempDir()
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bootstrap.json")
	if _, err := command(t, "bootstrap", "--data-dir", dir, "--database-url", url, "--out", file); err != nil {
		t.Fatal(err)
	}
	c := readJSON(t, file)
	const lease = 400 * time.Millisecond
	args := []string{"--data-dir", dir, "--database-url", url, "--lease-listen", "127.0.0.1:0", "--lease-time", lease.String()}
	a, b := startServer(t, hostOf(t, c.BaseURL), args...), startServer(t, hostOf(t, c.BaseURL), args...)
	token := a.token(t, c)
	do := func(p *process, method, path string, body any, want int) string {
		t.Helper()
		status, _, text := p.send(token, "", method, path, body)
		if status != want {
			t.Fatalf("%s %s: %d %s, want %d", method, path, status, text, want)
		}
		return text
	}
	relation := map[string]any{"subject": map[string]string{"type": "user", "id": "ann"}, "relation": "viewer"}
	question := map[string]any{
		"subject": map[string]string{"type": "user", "id": "ann"}, "action": "viewer",
		"resource": map[string]string{"type": "document", "external_id": "readme"},
	}
	do(a, http.MethodPost, "resource-types", map[string]any{"name": "document", "relations": []any{map[string]any{"name": "viewer", "rewrites": []any{}}}}, 201)
	do(a, http.MethodPost, "resources", map[string]string{"type": "document", "external_id": "readme"}, 201)
	related := false
	toggle := func(p *process) time.Duration {
		t.Helper()
		began := time.Now()
		if related {
			do(p, http.MethodDelete, "resources/document/readme/relations", relation, 204)
		} else {
			do(p, http.MethodPost, "resources/document/readme/relations", relation, 201)
		}
		related = !related
		return time.Since(began)
	}
	check := func(p *process) {
		t.Helper()
		if text := do(p, http.MethodPost, "resources/check", question, 200); strings.Contains(text, `"allowed":true`) != related {
			t.Errorf("related is %v, and the answer %s", related, text)
		}
	}

	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// held asks until so many processes hold the tenant.
	held := func(want int, asked ...*process) {
		t.Helper()
		for began := time.Now(); ; {
			for _, p := range asked {
				for range 20 {
					check(p)
				}
			}
			var n int
			err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM tenant_leases AS l JOIN lease_nodes AS n ON n.node_id = l.node_id`).Scan(&n)
			if err != nil {
				t.Fatal(err)
			}
			if n >= want {
				return
			}
			if time.Since(began) > 30*time.Second {
				t.Fatalf("%d of %d processes hold the tenant\n%s\n%s", n, want, a.log, b.log)
			}
		}
	}

	for round := range 2 {
		held(2, a, b)
		healthy := toggle(a)
		check(b)
		check(a)
		held(2, a, b)

		if err := b.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		stopped := toggle(a)
		after := toggle(a)
		var answered atomic.Bool
		done := make(chan struct{})
		want := related
		go func() { // it arrives while the process is stopped
			defer close(done)
			status, _, text := b.send(token, "", http.MethodPost, "resources/check", question)
			answered.Store(true)
			if status != 200 || strings.Contains(text, `"allowed":true`) != want {
				t.Errorf("after the stop: %d %s, want %v", status, text, want)
			}
		}()
		time.Sleep(2 * lease)
		if answered.Load() {
			t.Error("a stopped process has answered")
		}
		if err := b.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		<-done
		check(b)
		t.Logf("round %d: a write took %v, %v with a stopped holder, %v after that", round, healthy, stopped, after)
	}
	held(2, a, b)
	b.kill()
	killed, after := toggle(a), toggle(a)
	check(a)
	t.Logf("a write took %v after a holder was killed, and %v after that", killed, after)
	b = startServer(t, hostOf(t, c.BaseURL), args...)
	check(b)
	held(2, a, b)
	toggle(b)
	check(a)
}
