package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"stonetown/controlplane"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
)

// TestServePostgres runs two servers on one PostgreSQL: the next check of one reflects the
// acknowledged writes of the other, with the same keys and tokens.
func TestServePostgres(t *testing.T) {
	db, dir := pgtest.URL(t), t.TempDir()
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	// Several start at the same time, as in a rollout: all migrate the tables, and one runs
	// bootstrap.
	files := make([]string, 3)
	failures := make([]error, len(files))
	var wg sync.WaitGroup
	for i := range files {
		files[i] = filepath.Join(t.TempDir(), "bootstrap.json")
		wg.Go(func() {
			_, failures[i] = command(t, "bootstrap", "--data-dir", dir, "--database-url", db, "--out", files[i])
		})
	}
	wg.Wait()
	var c credentials
	begun := 0
	for i, file := range files {
		if err := failures[i]; err != nil && !errors.Is(err, errHasTenant) && !errors.Is(err, controlplane.ErrSlugTaken) {
			t.Errorf("bootstrap: %v", err)
		}
		if _, err := os.Stat(file); err == nil {
			c = readJSON(t, file)
			begun++
		}
	}
	if begun != 1 {
		t.Fatalf("%d of %d wrote credentials", begun, len(files))
	}

	a := start(t, "--data-dir", dir, "--database-url", db)
	b := start(t, "--data-dir", dir, "--database-url", db)
	token, host := a.token(c), hostOf(t, c.BaseURL)
	call := func(s *running, path, body string, want int) map[string]any {
		t.Helper()
		status, answer := s.do("POST", "http://"+s.Addr()+"/api/v1/"+path, host, token, body)
		if status != want {
			t.Fatalf("%s: %d %v, want %d", path, status, answer, want)
		}
		data, _ := answer["data"].(map[string]any)
		return data
	}
	const (
		relation = `{"subject":{"type":"user","id":"ann"},"relation":"viewer"}`
		check    = `{"subject":{"type":"user","id":"ann"},"action":"view","resource":{"type":"document","external_id":"readme"}}`
	)
	call(a, "resource-types", `{"name":"document","relations":[{"name":"viewer","rewrites":[]}]}`, 201)
	call(b, "resources", `{"type":"document","external_id":"readme"}`, 201)
	for range 20 {
		if got := call(b, "resources/check", check, 200)["allowed"]; got != false {
			t.Fatalf("before the write: %v", got)
		}
		call(a, "resources/document/readme/relations", relation, 201)
		if got := call(b, "resources/check", check, 200)["allowed"]; got != true {
			t.Fatalf("after the write: %v", got)
		}
		if status, answer := b.do("DELETE", "http://"+b.Addr()+"/api/v1/resources/document/readme/relations", host, token, relation); status != 204 {
			t.Fatalf("delete: %d %v", status, answer)
		}
		if got := call(a, "resources/check", check, 200)["allowed"]; got != false {
			t.Fatalf("after the delete: %v", got)
		}
	}
}

// A second development server does not change the tenant's address, which would invalidate the
// tokens of the first one.
func TestSecondDevelopmentServer(t *testing.T) {
	db, dir := pgtest.URL(t), t.TempDir()
	first := start(t, "--dev", "--data-dir", dir, "--database-url", db)
	c := readJSON(t, first.config.bootstrapFile())
	token := first.token(c)

	config, err := resolve(t, []string{"--dev", "--data-dir", dir, "--database-url", db, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	second := newProgram(config, io.Discard, slog.New(slog.DiscardHandler))
	err = second.Open(t.Context())
	if closeErr := second.Close(); closeErr != nil {
		t.Error(closeErr)
	}
	if err == nil || !strings.Contains(err.Error(), c.BaseURL) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("the second server: %v", err)
	}
	if status, answer := first.do("GET", "http://"+first.Addr()+"/api/v1/resource-types", hostOf(t, c.BaseURL), token, ""); status != 200 {
		t.Errorf("a token of the first: %d %v", status, answer)
	}
	if got := readJSON(t, first.config.bootstrapFile()); got != c {
		t.Errorf("the credentials are %+v, want %+v", got, c)
	}
}
