package main

import (
	"regexp"
	"strings"
	"testing"

	"stonetown/controlplane"
	"stonetown/identity"
	"stonetown/internal/sqldb"
)

// Members and invitations are managed at the terminal.
func TestMembers(t *testing.T) {
	x := newCommands(t)
	want, wantError := x.want, x.wantError
	wantError("bootstrap first", "members", "list")
	want("Created the tenant", "bootstrap")
	s := x.open()
	err := s.DB.Tx(t.Context(), func(tx *sqldb.Tx) error {
		_, err := s.Users.CreateUser(t.Context(), tx, controlplane.SystemTenant, identity.NewUser{Email: "ann@example.com", EmailVerified: true})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want("owner@dev.localhost is a member with the role owner", "members", "add", "owner@dev.localhost", "owner")
	wantError("the user is a member", "members", "add", "owner@dev.localhost", "viewer")
	wantError("must be the address of a user", "members", "add", "nobody@example.com", "viewer")
	wantError("must be one of", "members", "add", "ann@example.com", "emperor")
	want("with the role viewer", "members", "add", "ann@example.com", "viewer")
	want("ann@example.com has the role admin", "members", "role", "ann@example.com", "admin")
	if out := want("ann@example.com", "members", "list"); !regexp.MustCompile(`(?m)^owner@dev.localhost +owner +no `).MatchString(out) {
		t.Errorf("list: %s", out)
	}
	wantError("must keep an owner", "members", "remove", "owner@dev.localhost")
	want("ann@example.com is no longer a member", "members", "remove", "ann@example.com")
	wantError("member not found", "members", "remove", "ann@example.com")
	wantError("organisation not found", "members", "list", "--organization", "none")

	out := want("invites bob@example.com as operator", "invitations", "create", "bob@example.com", "operator")
	id, _, _ := strings.Cut(out, " ")
	wantError("pending invitation", "invitations", "create", "Bob@example.com", "viewer")
	want("pending", "invitations", "list")
	want("is revoked", "invitations", "revoke", id)
	wantError("the invitation is revoked", "invitations", "revoke", id)
	want("revoked", "invitations", "list")
}
