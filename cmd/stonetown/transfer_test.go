package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
)

// A tenant moves from the embedded database to PostgreSQL and back to a new embedded one, with a
// passphrase and with a key.
func TestMoveTenant(t *testing.T) {
	dir := t.TempDir()
	place := func(name string, more ...string) []string {
		t.Helper()
		data := filepath.Join(dir, name)
		if _, err := seal.OpenKeyFile(filepath.Join(data, "master.key")); err != nil {
			t.Fatal(err)
		}
		flags := append([]string{"--data-dir", data}, more...)
		if _, err := command(t, append([]string{"bootstrap"}, flags...)...); err != nil {
			t.Fatal(err)
		}
		return flags
	}
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	want := func(flags []string, text string, args ...string) {
		t.Helper()
		if out, err := command(t, slices.Concat([]string{"tenants"}, args, flags)...); err != nil || !strings.Contains(out, text) {
			t.Errorf("%v: %q, %v, want %q", args, out, err, text)
		}
	}
	wantError := func(flags []string, text string, args ...string) {
		t.Helper()
		if out, err := command(t, slices.Concat([]string{"tenants"}, args, flags)...); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %q, %v, want the error %q", args, out, err, text)
		}
	}
	first, second, third := place("first"), place("second", "--database-url", pgtest.URL(t)), place("third")
	want(first, "Created", "create", "acme", "--base-url", "https://acme.example.com", "--admin-email", "ann@acme.example", "--out", filepath.Join(dir, "acme.json"))
	c := readJSON(t, filepath.Join(dir, "acme.json"))

	passphrase, archive := file("passphrase", "correct horse battery\n"), filepath.Join(dir, "acme.archive")
	wantError(first, "passphrase-file", "export", "acme")
	wantError(first, "tenant not found", "export", "none", "--passphrase-file", passphrase)
	wantError(first, "fewer than 16", "export", "acme", "--passphrase-file", file("short", "hunter2"))
	wantError(first, "malformed", "export", "acme", "--recipient", "age1x")
	want(first, "Exported the tenant acme", "export", "acme", "--passphrase-file", passphrase, "--out", archive)
	wantError(first, "exists", "export", "acme", "--passphrase-file", passphrase, "--out", archive)
	if info, err := os.Stat(archive); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	wantError(first, "exists already", "import", archive, "--passphrase-file", passphrase)
	wantError(second, "another passphrase", "import", archive, "--passphrase-file", file("other", "another passphrase"))
	wantError(second, "organisation not found", "import", archive, "--passphrase-file", passphrase, "--organization", "none")
	wantError(second, "in use", "import", archive, "--passphrase-file", passphrase, "--slug", "dev")
	want(second, "It is suspended", "import", archive, "--passphrase-file", passphrase, "--suspended")
	want(second, "imported", "list")
	want(second, "is active", "resume", "acme")

	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	want(second, "Exported", "export", "acme", "--recipient", key.Recipient().String())
	archive = filepath.Join(dir, "second", "acme.archive")
	wantError(third, "does not hold a private key", "import", archive, "--identity", passphrase)
	want(third, "https://acme.example.org: ", "import", archive, "--identity", file("key", "# a comment\n"+key.String()+"\n"), "--slug", "moved", "--base-url", "https://acme.example.org")

	config, err := resolve(t, third, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openForCommand(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.OAuth.Grants.Token(t.Context(), protocol.Tenant{ID: c.TenantID, BaseURL: "https://acme.example.org"}, grants.Request{
		GrantType: protocol.GrantClientCredentials, Credentials: client.Credentials{ClientID: c.ClientID, ClientSecret: c.ClientSecret},
	})
	if err != nil {
		t.Errorf("the application of the tenant: %v", err)
	}
	if _, err := s.Users.VerifyPassword(t.Context(), c.TenantID, c.Admin.Email, c.Admin.Password); err != nil {
		t.Errorf("the administrator of the tenant: %v", err)
	}
}
