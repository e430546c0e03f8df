package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stonetown/controlplane"
	"stonetown/identity"
	"stonetown/internal/seal"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// command runs a command of the program to its end.
func command(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out, errs strings.Builder
	err = run(t.Context(), args, nil, &out, &errs)
	if errs.Len() > 0 {
		t.Logf("stderr: %s", errs.String())
	}
	return out.String(), err
}

func readJSON(t *testing.T, path string) (c credentials) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Each shell gets a script that asks the program for completions.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, err := command(t, "completion", shell); err != nil || !strings.Contains(out, "__complete") {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	if out, err := command(t, "__complete", "list", ""); err != nil || !strings.Contains(out, "resources\t") || !strings.Contains(out, "proofs\t") {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := command(t, "__complete", "expand", "--de"); err != nil || !strings.Contains(out, "--depth\t") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestVersion(t *testing.T) {
	out, err := command(t, "version")
	if err != nil || !strings.HasPrefix(out, "stonetown ") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestMigrateTwice(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if out, err := command(t, "migrate", "--data-dir", dir); err != nil || !strings.Contains(out, "up to date") {
			t.Errorf("%q, %v", out, err)
		}
	}
}

func TestBootstrap(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bootstrap.json")
	args := []string{
		"bootstrap", "--data-dir", dir, "--organization", "acme", "--tenant", "people",
		"--base-url", "https://people.example.com", "--admin-email", "ann@example.com", "--owner-email", "bob@example.com",
	}

	_, err := command(t, args...)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "master.key") {
		t.Fatalf("without a master key: %v", err)
	}
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	// The command in the error works, also if the folder is missing.
	elsewhere := filepath.Join(dir, "no such folder", "it's.key")
	_, err = command(t, append(args, "--master-key-file", elsewhere)...)
	if err == nil {
		t.Fatal("a server began without a master key")
	}
	_, say, _ := strings.Cut(err.Error(), "make one with: ")
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", say).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", say, err, out)
	}
	if info, err := os.Stat(filepath.Dir(elsewhere)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v, want mode 0700", info, err)
	}
	if _, err := seal.ReadKeyFile(elsewhere); err != nil {
		t.Error(err)
	}
	out, err := command(t, args...)
	if err != nil || !strings.Contains(out, file) {
		t.Fatalf("%q, %v", out, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info, err)
	}
	c := readJSON(t, file)
	if strings.Contains(out, c.ClientSecret) || strings.Contains(out, c.Admin.Password) {
		t.Errorf("a secret was printed: %q", out)
	}

	// The credentials in the file are valid.
	config, err := resolve(t, []string{"--data-dir", dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := openForCommand(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := m.Organizations.TenantByHost(t.Context(), "people.example.com")
	if err != nil || tenant.ID != c.TenantID || tenant.OrgID != c.OrgID || tenant.BaseURL != c.BaseURL || tenant.State != controlplane.TenantActive {
		t.Errorf("%+v, %v", tenant, err)
	}
	if c.ControlURL != "https://control.example.com" {
		t.Errorf("control_url is %s", c.ControlURL)
	}
	for tenantID, a := range map[string]account{c.TenantID: c.Admin, controlplane.SystemTenant: c.Owner} {
		if u, err := m.Users.VerifyPassword(t.Context(), tenantID, a.Email, a.Password); err != nil || !u.EmailVerified {
			t.Errorf("%s: %+v, %v", a.Email, u, err)
		}
	}
	if _, err := m.Users.UserByEmail(t.Context(), c.TenantID, c.Owner.Email); !errors.Is(err, identity.ErrUserNotFound) {
		t.Errorf("the owner is a user of the tenant: %v", err)
	}
	resp, err := m.OAuth.Grants.Token(t.Context(), protocol.Tenant{ID: c.TenantID, BaseURL: c.BaseURL}, grants.Request{
		GrantType: protocol.GrantClientCredentials, Credentials: client.Credentials{ClientID: c.ClientID, ClientSecret: c.ClientSecret},
	})
	if err != nil || resp.Scope != strings.Join(scope.Builtin, " ") {
		t.Errorf("%q, %v", resp.Scope, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	// A second run changes nothing and says so.
	out, err = command(t, args...)
	if err != nil || !strings.HasPrefix(out, "Nothing changed") {
		t.Errorf("%q, %v", out, err)
	}
	if again := readJSON(t, file); again != c {
		t.Errorf("the file changed from %+v to %+v", c, again)
	}
}

func TestBootstrapKeepsForeignFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "other.json")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := command(t, "bootstrap", "--dev", "--data-dir", dir, "--out", file)
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v, want a refusal that names the file", err)
	}
	if text, _ := os.ReadFile(file); string(text) != "precious" {
		t.Errorf("the file holds %q", text)
	}
}

// A bootstrap that is refused leaves no part of its changes.
func TestBootstrapIsAtomic(t *testing.T) {
	dir := t.TempDir()
	if _, err := command(t, "bootstrap", "--dev", "--data-dir", dir, "--owner-email", "nobody"); !errors.Is(err, identity.ErrEmailInvalid) {
		t.Fatalf("%v, want ErrEmailInvalid", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "bootstrap.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("credentials of nothing were written: %v", err)
	}
	if out, err := command(t, "bootstrap", "--dev", "--data-dir", dir); err != nil || !strings.HasPrefix(out, "Created") {
		t.Errorf("%q, %v", out, err)
	}
}

// A development server on the database of a production server does not change the tenant's
// address, because that would invalidate its tokens.
func TestServeDevLeavesRealTenants(t *testing.T) {
	dir := t.TempDir()
	const base = "https://people.example.com"
	if _, err := command(t, "bootstrap", "--dev", "--data-dir", dir, "--base-url", base); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--dev", "--data-dir", dir)
	if tenant, err := s.server.Organizations.FirstTenant(t.Context()); err != nil || tenant.BaseURL != base {
		t.Errorf("the tenant was moved: %+v, %v", tenant, err)
	}
	if c := readJSON(t, filepath.Join(dir, "bootstrap.json")); c.BaseURL != base {
		t.Errorf("the file says %s", c.BaseURL)
	}
}

func TestControlURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://dev.localhost:8080":       "http://control.localhost:8080",
		"https://people.auth.example.com": "https://control.auth.example.com",
	} {
		if got := controlURL(in); got != want {
			t.Errorf("controlURL(%s) = %s, want %s", in, got, want)
		}
	}
}
