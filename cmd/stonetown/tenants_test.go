package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stonetown/controlplane"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
)

// A tenant is created, suspended, resumed and decommissioned at the terminal.
func TestTenants(t *testing.T) {
	dir := t.TempDir()
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--data-dir", dir, "--database-url", pgtest.URL(t)}
	run := func(args ...string) (string, error) {
		return command(t, slices.Concat([]string{"tenants"}, args, flags)...)
	}
	want := func(text string, args ...string) {
		t.Helper()
		if out, err := run(args...); err != nil || !strings.Contains(out, text) {
			t.Errorf("%v: %q, %v, want %q", args, out, err, text)
		}
	}
	wantError := func(text string, args ...string) {
		t.Helper()
		if out, err := run(args...); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %q, %v, want the error %q", args, out, err, text)
		}
	}
	acme := []string{"create", "acme", "--base-url", "https://acme.example.com", "--admin-email", "ann@acme.example"}
	wantError("bootstrap first", acme...)
	if _, err := command(t, append([]string{"bootstrap"}, flags...)...); err != nil {
		t.Fatal(err)
	}
	wantError("organisation not found", append(acme, "--organization", "none")...)
	want("Created the tenant https://acme.example.com", acme...)
	wantError("exists", acme...)
	wantError("in use", append(acme, "--out", filepath.Join(dir, "other.json"))...)
	wantError("the host is that of the control plane", "create", "manage", "--base-url", "https://manage.example.com",
		"--admin-email", "ann@acme.example", "--control-url", "https://manage.example.com")
	wantError("reserved", "create", "www", "--base-url", "https://www.example.com", "--admin-email", "ann@acme.example")

	c := readJSON(t, filepath.Join(dir, "acme.json"))
	config, err := resolve(t, flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openForCommand(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.OAuth.Grants.Token(t.Context(), protocol.Tenant{ID: c.TenantID, BaseURL: c.BaseURL}, grants.Request{
		GrantType: protocol.GrantClientCredentials, Credentials: client.Credentials{ClientID: c.ClientID, ClientSecret: c.ClientSecret},
	})
	if err != nil {
		t.Errorf("the application of the tenant: %v", err)
	}
	if _, err := s.Users.VerifyPassword(t.Context(), c.TenantID, c.Admin.Email, c.Admin.Password); err != nil {
		t.Errorf("the administrator of the tenant: %v", err)
	}
	state := func(want controlplane.TenantState) {
		t.Helper()
		if got, err := s.Organizations.TenantByHost(t.Context(), "acme.example.com"); err != nil || got.State != want {
			t.Errorf("a server that is running: %q, %v, want %q", got.State, err, want)
		}
	}
	state(controlplane.TenantActive)
	want("The tenant acme is suspended", "suspend", "acme", "--reason", "unpaid")
	state(controlplane.TenantSuspended)
	want("unpaid", "list")
	wantError("the tenant is suspended", "suspend", "acme")
	want("The tenant acme is active", "resume", c.TenantID)
	state(controlplane.TenantActive)
	wantError("--confirm acme", "decommission", "acme")
	wantError("--confirm acme", "decommission", "acme", "--confirm", "dev")
	want("The tenant acme is decommissioned", "decommission", "acme", "--confirm", "acme")
	state(controlplane.TenantDecommissioned)
	want("data is deleted at", "list")
	want("dev ", "list")
	wantError("tenant not found", "suspend", "none")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
