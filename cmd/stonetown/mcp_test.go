package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMCP runs the authorization flow of the client of the MCP SDK against the sample server of
// examples/mcp: discovery, registration and a client ID metadata document, PKCE, the resource
// indicator, tool calls, and the challenges of 401 and 403.
func TestMCP(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	folder := t.TempDir()
	for _, source := range []string{"../../examples/mcp", "testdata/mcp"} {
		if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
			t.Fatal(err)
		}
	}
	person, err := os.ReadFile("testdata/npmclients/person.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "person.mjs"), person, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := inFolder(ctx, folder)
	run(t, "", "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error")

	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	token := server.token(c)
	call := func(method, path string, body map[string]any) {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		status, answer := server.do(method, "http://"+server.Addr()+"/api/v1/"+path, hostOf(t, c.BaseURL), token, string(text))
		if status/100 != 2 {
			t.Fatalf("%s: %d %v", path, status, answer)
		}
	}
	const email, password, redirect = "ann@example.com", "correct horse battery", "http://localhost:9/callback"
	call("POST", "users", map[string]any{"email": email, "name": "Ann", "email_verified": true, "password": password})
	call("PATCH", "settings", map[string]any{"dcr_mode": "open", "client_id_documents": "open"})
	for _, scope := range []string{"notes:read", "notes:write"} {
		call("POST", "scopes", map[string]any{"name": scope, "description": scope, "entitlement": "self"})
	}
	resource := startNotes(ctx, t, folder, c.BaseURL)
	for _, subject := range []string{"user", "application"} {
		call("POST", "resources/audience/"+url.PathEscape(resource)+"/relations", map[string]any{"relation": "caller", "subject": map[string]any{"type": subject, "id": "*"}})
	}
	var document string
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		err := json.NewEncoder(w).Encode(map[string]any{
			"client_id": document, "client_name": "Described agent", "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none", "grant_types": []string{"authorization_code"},
		})
		if err != nil {
			t.Error(err)
		}
	}))
	defer publisher.Close()
	document = publisher.URL + "/agent.json"
	private, _ := signingKey(t)
	setup, err := json.Marshal(map[string]any{
		"issuer": c.BaseURL, "email": email, "password": password, "applications": map[string]any{}, "key": private,
		"resource": resource, "document": document, "redirect": redirect,
	})
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, string(setup), "node", "check.mjs")
	if strings.Count(out, "ok ") != 6 {
		t.Errorf("not every step was taken:\n%s", out)
	}
}

// startNotes starts the sample server, which trusts an issuer, and returns its address.
func startNotes(ctx context.Context, t *testing.T, folder, issuer string) (resource string) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "node", "--import", "./localhost.mjs", "server.mjs")
	cmd.Dir, cmd.Env, cmd.Stderr = folder, append(os.Environ(), "ISSUER="+issuer), t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the sample server did not start")
	}
	return lines.Text()
}
