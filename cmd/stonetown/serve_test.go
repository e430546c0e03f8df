package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
)

// define defines a type under an idempotency key.
func (s *running) define(c credentials, token, key, name string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", "http://"+s.Addr()+"/api/v1/resource-types", bytes.NewBufferString(fmt.Sprintf(`{"name":%q}`, name)))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Host = hostOf(s.t, c.BaseURL)
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Idempotency-Key": {key}}
	resp, err := httpClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// The next process on the database repeats a response that is stored under a key.
func TestServeRemembersKeys(t *testing.T) {
	dir := t.TempDir()
	s := start(t, "--dev", "--data-dir", dir)
	c := readJSON(t, s.config.bootstrapFile())
	if got := s.define(c, s.token(c), "key", "document"); got.StatusCode != 201 || got.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	s = start(t, "--dev", "--data-dir", dir)
	c = readJSON(t, s.config.bootstrapFile())
	if got := s.define(c, s.token(c), "key", "document"); got.StatusCode != 201 || got.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("after a restart: %d %v", got.StatusCode, got.Header)
	}
}

// Two servers on one database count together and share keys.
func TestServersCountTogether(t *testing.T) {
	db, dir := pgtest.URL(t), t.TempDir()
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bootstrap.json")
	if _, err := command(t, "bootstrap", "--data-dir", dir, "--database-url", db, "--out", file); err != nil {
		t.Fatal(err)
	}
	c := readJSON(t, file)
	a := start(t, "--data-dir", dir, "--database-url", db, "--rate-limits", "admin.caller=3/h")
	b := start(t, "--data-dir", dir, "--database-url", db, "--rate-limits", "admin.caller=3/h")
	token := a.token(c)
	for i, s := range []*running{a, b, b} {
		got := s.define(c, token, "key", "document")
		if got.StatusCode != 201 || got.Header.Get("Idempotent-Replayed") != map[bool]string{true: "true"}[i > 0] {
			t.Errorf("%d: %d %v", i, got.StatusCode, got.Header)
		}
	}
	for _, s := range []*running{a, b} {
		if got := s.define(c, token, "other", "folder"); got.StatusCode != 429 || got.Header.Get("Retry-After") == "" {
			t.Errorf("%d %v, want 429", got.StatusCode, got.Header)
		}
	}
}

// A watch does not delay the end of the server, and ends without an error.
func TestServeEndsStreams(t *testing.T) {
	s := start(t, "--dev", "--data-dir", t.TempDir(), "--drain-timeout", "20s")
	c := readJSON(t, s.config.bootstrapFile())
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr()+"/api/v1/resources/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = hostOf(t, c.BaseURL)
	req.Header.Set("Authorization", "Bearer "+s.token(c))
	resp, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ended := make(chan error, 1)
	go func() {
		var all bytes.Buffer
		_, err := all.ReadFrom(resp.Body)
		if all.Len() == 0 {
			err = errors.Join(err, errors.New("not even a heartbeat"))
		}
		ended <- err
	}()
	begun := time.Now()
	if err := s.wait(); err != nil {
		t.Errorf("Serve returned %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the server took %v to end", took)
	}
	if err := <-ended; err != nil {
		t.Errorf("the watch broke off: %v", err)
	}
}
