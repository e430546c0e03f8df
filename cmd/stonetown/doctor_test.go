package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stonetown/internal/pgtest"
)

// found returns the findings of a run of doctor, and its exit code.
func found(t *testing.T, args ...string) (list []finding, code int) {
	t.Helper()
	r := terminal(t, nil, append([]string{"doctor", "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	return list, r.code
}

// has reports whether a finding with a result and a text is in a list. Each that is not fine has a
// remedy.
func has(t *testing.T, list []finding, result, text string) bool {
	t.Helper()
	for _, f := range list {
		if (f.Remedy == "") != (f.Result == fine) {
			t.Errorf("%+v has a remedy too few or too many", f)
		}
	}
	return slices.ContainsFunc(list, func(f finding) bool { return f.Result == result && strings.Contains(f.Text, text) })
}

// Doctor finds nothing wrong with a development server that runs.
func TestDoctorOfHealthyServer(t *testing.T) {
	for name, url := range map[string]string{"SQLite": "", "PostgreSQL": pgtest.URL(t)} {
		dir := t.TempDir()
		args := []string{"--dev", "--data-dir", dir, "--graph-dir", dir}
		if url != "" {
			args = append(args, "--database-url", url)
		}
		s := start(t, args...)
		list, code := found(t, append(args, "--admin-listen", s.AdminAddr())...)
		for _, text := range []string{name, "the master key is that", "the server is ready", "dev.localhost", dir} {
			if !has(t, list, fine, text) {
				t.Errorf("%s: nothing fine about %q: %+v", name, text, list)
			}
		}
		for _, f := range list {
			// The databases of tests do not wait for the disk.
			if f.Result == problem && !strings.Contains(f.Text, "fsync") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if wanted := url != ""; (code != 0) != wanted || has(t, list, problem, "fsync") != wanted {
			t.Errorf("%s: exit code %d", name, code)
		}
		if err := s.wait(); err != nil {
			t.Error(err)
		}
	}
}

// Doctor names what is wrong.
func TestDoctorFindsProblems(t *testing.T) {
	dir := t.TempDir()
	if err := start(t, "--dev", "--data-dir", dir).wait(); err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }))
	t.Cleanup(other.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	key := filepath.Join(t.TempDir(), "other.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("A", 43)+"=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	list, code := found(t, "--data-dir", dir, "--admin-listen", closed.Addr().String(), "--master-key-file", key,
		"--mail-url", "smtp://"+closed.Addr().String(), "--mail-from", "a@example.com", "--graph-dir", "none",
		"--breached-passwords-url", other.URL+"/", "--control-url", other.URL)
	for text, result := range map[string]string{
		"not the master key": problem, "others on this machine": warning, "no server answers": warning, "mail server": problem,
		"graph_dir is not set": warning, "breached passwords": problem, "trusted_proxies is not set": warning, "does not answer": problem,
	} {
		if !has(t, list, result, text) {
			t.Errorf("no %s about %q: %+v", result, text, list)
		}
	}
	if code != 1 {
		t.Errorf("exit code %d", code)
	}

	empty := t.TempDir()
	if list, code := found(t, "--data-dir", empty); code != 1 || !has(t, list, problem, "cannot be opened") {
		t.Errorf("without a database: %d, %+v", code, list)
	}
	r := terminal(t, nil, "doctor", "--data-dir", empty)
	if r.code != 1 || !strings.Contains(r.out, "problem  database  the database cannot be opened") || !strings.Contains(r.out, "→ check database_url") {
		t.Errorf("as text: %+v", r)
	}
}
