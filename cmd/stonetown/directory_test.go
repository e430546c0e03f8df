package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// idOf returns the member id of a JSON object that a command printed.
func idOf(t *testing.T, out string) string {
	t.Helper()
	var o struct{ ID string }
	if err := json.Unmarshal([]byte(out), &o); err != nil || o.ID == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return o.ID
}

// contains requires texts in an output.
func contains(t *testing.T, out string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in:\n%s", part, out)
		}
	}
}

func TestDirectoryCommands(t *testing.T) {
	dir := development(t)
	ann := idOf(t, want(t, dir, "users", "create", "email=ann@example.com", "name=42 Ann", "email_verified=true", `attributes={"a":1}`))
	contains(t, want(t, dir, "users", "show", ann), `"email_verified": true`, `"name": "42 Ann"`, `"a": 1`)
	contains(t, want(t, dir, "users", "list", "--email", "ANN@example.com"), "ID", "ann@example.com  42 Ann  active")
	contains(t, want(t, dir, "users", "list", "--email", "ann@example.com", "-o", "json"), `{"`, `"email":"ann@example.com"`)
	contains(t, want(t, dir, "users", "disable", ann), `"state": "disabled"`)
	contains(t, want(t, dir, "users", "enable", ann), `"state": "active"`)
	refused(t, dir, 1, "is not name=value", "users", "create", "email")
	refused(t, dir, 1, "not valid JSON", "users", "create", "email:=x")
	refused(t, dir, 1, "user_exists", "users", "create", "email=ann@example.com")
	refused(t, dir, 1, "is not a JSON object", "users", "create", "@"+writeFile(t, "[]"))

	editors := idOf(t, want(t, dir, "groups", "create", "slug=editors", "name=Editors"))
	want(t, dir, "groups", "add", editors, ann)
	contains(t, want(t, dir, "groups", "members", editors), "ann@example.com")
	contains(t, want(t, dir, "groups", "remove", editors, ann), "removed")
	if out := want(t, dir, "groups", "members", editors); strings.Contains(out, "ann@") {
		t.Error(out)
	}
	contains(t, want(t, dir, "groups", "update", editors, "@"+writeFile(t, `{"name":"Authors"}`)), `"name": "Authors"`)
	contains(t, want(t, dir, "groups", "delete", editors), "deleted")
	refused(t, dir, 1, "group_not_found", "groups", "show", editors)

	shop := idOf(t, want(t, dir, "applications", "create", "name=Shop", "type=m2m"))
	contains(t, want(t, dir, "applications", "list", "--q", "Shop"), "Shop  m2m   enabled")
	contains(t, want(t, dir, "applications", "rotate-secret", shop), `"client_secret"`)
	contains(t, want(t, dir, "applications", "disable", shop), `"state": "disabled"`)
	contains(t, want(t, dir, "applications", "delete", shop), "deleted")

	contains(t, want(t, dir, "settings", "update", "sign_up=closed"), `"sign_up": "closed"`)
	contains(t, want(t, dir, "settings", "show"), `"sign_up": "closed"`)
	contains(t, want(t, dir, "users", "delete", ann), "deleted")
}

// TestMovingGuide runs the commands of the guide, signs in with the imported passwords, and runs the
// commands again.
func TestMovingGuide(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	outs := map[bool]string{}
	for _, b := range blocks(t, "docs/moving.md") {
		if b.note != "" {
			continue
		}
		for line := range strings.Lines(b.text) {
			args := strings.Fields(strings.TrimPrefix(line, "bin/stonetown "))
			for i, arg := range args {
				if arg == "clients.json" || strings.HasPrefix(arg, "examples/") {
					args[i] = filepath.Join(dir, arg)
				}
			}
			outs[strings.Contains(line, "--dry-run")] = want(t, filepath.Join(dir, "data"), args...)
		}
	}
	contains(t, outs[true], "4 users, 3 of them with a password, 2 groups", "a pattern")
	if strings.Contains(outs[true], "imported") {
		t.Error("a dry run imports")
	}
	contains(t, outs[false], "imported 4 users")

	base := readJSON(t, server.config.bootstrapFile()).BaseURL
	signIn := func(email, password string) (status int, body string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "curl", "-sS", "--noproxy", "*", "-w", "%{http_code}", "-H", "Content-Type: application/json",
			"-d", `{"email":"`+email+`","password":"`+password+`"}`, base+"/api/v1/auth/sign-in").CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		text := string(out)
		_ = json.Unmarshal([]byte(text[len(text)-3:]), &status)
		return status, text[:len(text)-3]
	}
	for email, want := range map[string]int{"ann@example.com": http.StatusOK, "cleo@example.com": http.StatusOK, "bob@example.com": http.StatusForbidden} {
		if status, body := signIn(email, "correct horse battery staple"); status != want {
			t.Errorf("%s: %d %s", email, status, body)
		}
		if status, body := signIn(email, "wrong horse battery staple"); status != http.StatusUnauthorized {
			t.Errorf("%s with another password: %d %s", email, status, body)
		}
	}
	data := filepath.Join(dir, "data")
	contains(t, want(t, data, "groups", "list"), "sales-north-america")
	contains(t, want(t, data, "users", "list", "--email", "bob@example.com"), "disabled")
	secrets, err := os.ReadFile(filepath.Join(dir, "clients.json"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "clients.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	contains(t, string(secrets), `{"former_client_id":"web","name":"Shop","application_id":"app_`, `"former_client_id":"jobs"`)

	// Again: neither groups nor the file are used blindly, and users stay as they are.
	realm := filepath.Join(root, "examples/keycloak/realm.json")
	refused(t, data, 1, "nothing was written", "users", "import", "--from", "keycloak", realm)
	refused(t, data, 1, "4 users were not imported", "users", "import", "--from", "keycloak", realm, "--into-existing-groups")
	refused(t, data, 1, "must be a new one", "users", "import", "--from", "keycloak", realm, "--into-existing-groups", "--applications", "--secrets", filepath.Join(dir, "clients.json"))
	refused(t, data, 1, "must be given together", "users", "import", "--from", "keycloak", realm, "--applications")
	refused(t, data, 1, "keycloak or auth0", "users", "import", realm)
}
