package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
)

// A backup is made while the server runs. The restored database has the data of the backup;
// consistency tokens of later revisions are not valid in it, and revisions that it writes do
// not become valid for those tokens.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	s := start(t, "--dev", "--data-dir", dir)
	c := readJSON(t, s.config.bootstrapFile())
	host, token := hostOf(t, c.BaseURL), s.token(c)
	call := func(s *running, method, path, body string) map[string]any {
		t.Helper()
		status, answer := s.do(method, "http://"+s.Addr()+"/api/v1/"+path, host, token, body)
		if status > 299 {
			t.Fatalf("%s: %d %v", path, status, answer)
		}
		return answer
	}
	relate := func(s *running, id string) string {
		t.Helper()
		answer := call(s, "POST", "resources/document/readme/relations", fmt.Sprintf(`{"subject":{"type":"user","id":%q},"relation":"viewer"}`, id))
		return answer["meta"].(map[string]any)["consistency_token"].(string)
	}
	check := func(s *running, id, after string) (allowed bool, ignored any) {
		t.Helper()
		body := map[string]any{
			"subject": map[string]string{"type": "user", "id": id}, "action": "view",
			"resource": map[string]string{"type": "document", "external_id": "readme"},
		}
		if after != "" {
			body["consistency_token"] = after
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		answer := call(s, "POST", "resources/check", string(text))
		return answer["data"].(map[string]any)["allowed"].(bool), answer["meta"].(map[string]any)["consistency_token_ignored"]
	}
	call(s, "POST", "resource-types", `{"name":"document","relations":[{"name":"viewer"}]}`)
	relate(s, "ann")

	backup := filepath.Join(t.TempDir(), "backup.db")
	if _, err := command(t, "backup", backup, "--data-dir", dir); err != nil {
		t.Fatal(err)
	}
	lost := relate(s, "bob") // after the backup
	if _, err := command(t, "restore", backup, "--data-dir", dir); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("over a database that is there: %v", err)
	}
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(dir, "stonetown.db")
	if err := os.Rename(place, filepath.Join(t.TempDir(), "old.db")); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "restore", backup, "--data-dir", dir); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".restore*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	s = start(t, "--dev", "--data-dir", dir)
	c = readJSON(t, s.config.bootstrapFile())
	host, token = hostOf(t, c.BaseURL), s.token(c)
	if allowed, _ := check(s, "ann", ""); !allowed {
		t.Error("what was in the backup is not there")
	}
	if allowed, _ := check(s, "bob", ""); allowed {
		t.Error("what came after the backup is there")
	}
	relate(s, "cid") // takes the revision that bob's relation had
	if allowed, _ := check(s, "bob", lost); allowed {
		t.Error("a token of the lost time brought it back")
	}
	if allowed, ignored := check(s, "cid", lost); !allowed || ignored != true {
		t.Errorf("a token of the lost time: allowed %t, ignored %v", allowed, ignored)
	}
}

// A backup that is made while clients write has what was acknowledged before it began, and of what
// each client wrote after that no later part without the earlier ones.
func TestBackupUnderLoad(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, "--data-dir", dir, "--log-level", "warn")
	token := p.token(t, readJSON(t, filepath.Join(dir, "bootstrap.json")))
	p.call(t, token, "POST", "resource-types", map[string]any{"name": "document", "relations": []any{map[string]string{"name": "viewer"}}})
	var written [4]atomic.Int64 // by client, acknowledged
	stop := make(chan struct{})
	var working sync.WaitGroup
	for client := range written {
		working.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c := change{document: fmt.Sprintf("%d-%d", client, n), method: http.MethodPost}
				if status, _, text := c.send(p, token); status != 201 {
					t.Errorf("%d %s", status, text)
					return
				}
				written[client].Store(int64(n) + 1)
			}
		})
	}
	more := func() (counts [4]int64) { // waits until each client has written some more
		for client := range written {
			counts[client] = written[client].Load()
		}
		until(t, func() bool {
			for client, n := range counts {
				if written[client].Load() < n+20 {
					return t.Failed()
				}
			}
			return true
		})
		for client := range written {
			counts[client] = written[client].Load()
		}
		return counts
	}
	before := more()
	backup := filepath.Join(t.TempDir(), "backup.db")
	if _, err := command(t, "backup", backup, "--data-dir", dir); err != nil {
		t.Fatal(err)
	}
	more()
	close(stop)
	working.Wait()
	p.kill()
	place := filepath.Join(dir, "stonetown.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(place + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if _, err := command(t, "restore", backup, "--data-dir", dir); err != nil {
		t.Fatal(err)
	}
	p = startProcess(t, "--data-dir", dir, "--log-level", "warn")
	token = p.token(t, readJSON(t, filepath.Join(dir, "bootstrap.json")))
	for client := range written {
		var checks []any
		total := min(written[client].Load(), 500)
		for n := range total {
			checks = append(checks, map[string]any{"action": "view", "resource": map[string]string{"type": "document", "external_id": fmt.Sprintf("%d-%d", client, n)}})
		}
		status, _, text := p.send(token, "", "POST", "resources/check-batch", map[string]any{"subject": map[string]string{"type": "user", "id": "ann"}, "checks": checks})
		var answer struct{ Data []struct{ Allowed bool } }
		if err := json.Unmarshal([]byte(text), &answer); status != 200 || err != nil {
			t.Fatalf("%d %s", status, text)
		}
		restored := int64(0)
		for restored < total && answer.Data[restored].Allowed {
			restored++
		}
		for n := restored; n < total; n++ {
			if answer.Data[n].Allowed {
				t.Errorf("client %d: document %d is there, and %d is not", client, n, restored)
			}
		}
		if restored < min(before[client], 500) {
			t.Errorf("client %d: %d documents were acknowledged before the backup, and %d are restored", client, before[client], restored)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	s := start(t, "--dev", "--data-dir", dir)
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	if _, err := command(t, "backup", backup, "--data-dir", dir); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "backup", backup, "--data-dir", dir); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a backup: %v", err)
	}
	text, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), text...)
	for i := len(damaged) / 2; i < len(damaged)/2+4096; i++ {
		damaged[i] ^= 0x5a
	}
	key := func(t *testing.T, dir string) {
		t.Helper()
		if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"damaged":       {damaged, "damaged"},
		"cut":           {text[:len(text)/2], "malformed"},
		"no database":   {[]byte(strings.Repeat("not a database\n", 500)), "not a database"},
		"empty":         {nil, "not a backup"},
		"another's key": {text, "master key"},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := t.TempDir()
			key(t, fresh)
			if _, err := command(t, "restore", writeFile(t, string(test.content)), "--data-dir", fresh); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want a word about %q", err, test.want)
			}
			if _, err := os.Stat(filepath.Join(fresh, "stonetown.db")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a database is there: %v", err)
			}
		})
	}
	if _, err := command(t, "restore", "--data-dir", dir); err == nil || !strings.Contains(err.Error(), "FILE") {
		t.Errorf("without a file: %v", err)
	}
}

// PostgreSQL has its own tools for backups; only the epoch is left.
func TestRestorePostgres(t *testing.T) {
	db, dir := pgtest.URL(t), t.TempDir()
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "backup", filepath.Join(dir, "x"), "--database-url", db); err == nil || !strings.Contains(err.Error(), "tools of their own") {
		t.Errorf("backup: %v", err)
	}
	if _, err := command(t, "restore", filepath.Join(dir, "x"), "--data-dir", dir, "--database-url", db); err == nil || !strings.Contains(err.Error(), "without FILE") {
		t.Errorf("restore of a file: %v", err)
	}
	if out, err := command(t, "restore", "--data-dir", dir, "--database-url", db); err != nil || !strings.Contains(out, "new line of history") {
		t.Errorf("%q, %v", out, err)
	}
}
