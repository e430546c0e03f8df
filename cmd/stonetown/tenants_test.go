package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stonetown/controlplane"
	"stonetown/identity"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
	"stonetown/server"
)

// commands are run on an empty database of PostgreSQL.
type commands struct {
	t     *testing.T
	dir   string
	flags []string
}

func newCommands(t *testing.T) commands {
	t.Helper()
	dir := t.TempDir()
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	return commands{t, dir, []string{"--data-dir", dir, "--database-url", pgtest.URL(t)}}
}

// want runs a command whose output has a text.
func (x commands) want(text string, args ...string) (out string) {
	x.t.Helper()
	out, err := command(x.t, slices.Concat(args, x.flags)...)
	if err != nil || !strings.Contains(out, text) {
		x.t.Errorf("%v: %q, %v, want %q", args, out, err, text)
	}
	return out
}

// wantError runs a command that fails with a text.
func (x commands) wantError(text string, args ...string) {
	x.t.Helper()
	if out, err := command(x.t, slices.Concat(args, x.flags)...); err == nil || !strings.Contains(err.Error(), text) {
		x.t.Errorf("%v: %q, %v, want the error %q", args, out, err, text)
	}
}

// open opens the server that the commands use.
func (x commands) open() *server.Server {
	x.t.Helper()
	config, err := resolve(x.t, x.flags, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	s, err := openForCommand(x.t.Context(), config)
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

// A tenant is created, suspended, resumed and decommissioned at the terminal.
func TestTenants(t *testing.T) {
	x := newCommands(t)
	want := func(text string, args ...string) { t.Helper(); x.want(text, append([]string{"tenants"}, args...)...) }
	wantError := func(text string, args ...string) {
		t.Helper()
		x.wantError(text, append([]string{"tenants"}, args...)...)
	}
	acme := []string{"create", "acme", "--base-url", "https://acme.example.com", "--admin-email", "ann@acme.example"}
	wantError("bootstrap first", acme...)
	x.want("Created the tenant", "bootstrap")
	wantError("organisation not found", append(acme, "--organization", "none")...)
	wantError("region must be one of", append(acme, "--regions", "eu,us", "--region", "moon")...)
	want("Created the tenant https://acme.example.com", append(acme, "--regions", "eu,us")...)
	wantError("exists", acme...)
	wantError("in use", append(acme, "--out", filepath.Join(x.dir, "other.json"))...)
	wantError("the host is that of the control plane", "create", "manage", "--base-url", "https://manage.example.com",
		"--admin-email", "ann@acme.example", "--control-url", "https://manage.example.com")
	wantError("reserved", "create", "www", "--base-url", "https://www.example.com", "--admin-email", "ann@acme.example")

	c := readJSON(t, filepath.Join(x.dir, "acme.json"))
	s := x.open()
	_, err := s.OAuth.Grants.Token(t.Context(), protocol.Tenant{ID: c.TenantID, BaseURL: c.BaseURL}, grants.Request{
		GrantType: protocol.GrantClientCredentials, Credentials: client.Credentials{ClientID: c.ClientID, ClientSecret: c.ClientSecret},
	})
	if err != nil {
		t.Errorf("the application of the tenant: %v", err)
	}
	if _, err := s.Users.VerifyPassword(t.Context(), c.TenantID, c.Admin.Email, c.Admin.Password); err != nil {
		t.Errorf("the administrator of the tenant: %v", err)
	}
	if got, err := s.Organizations.TenantByID(t.Context(), c.TenantID); err != nil || got.Region != "eu" {
		t.Errorf("%+v, %v", got, err)
	}
	groups, err := s.Users.Groups(t.Context(), c.TenantID, "", "", nil, 10)
	if err != nil || len(groups) != 1 || groups[0].Slug != identity.AdministratorsSlug || groups[0].MemberCount != 1 {
		t.Errorf("groups %+v, %v", groups, err)
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
