package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"stonetown/engine"
	"stonetown/engine/resources"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// newPlace makes a deployment with a master key of its own, and returns the flags that name it.
func newPlace(t *testing.T, dir, name string, more ...string) (flags []string) {
	t.Helper()
	data := filepath.Join(dir, name)
	if _, err := seal.OpenKeyFile(filepath.Join(data, "master.key")); err != nil {
		t.Fatal(err)
	}
	flags = append([]string{"--data-dir", data}, more...)
	if _, err := command(t, append([]string{"bootstrap"}, flags...)...); err != nil {
		t.Fatal(err)
	}
	return flags
}

// A tenant moves from the embedded database to PostgreSQL and back to a new embedded one, with a
// passphrase and with a key.
func TestMoveTenant(t *testing.T) {
	dir := t.TempDir()
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
	first, second, third := newPlace(t, dir, "first"), newPlace(t, dir, "second", "--database-url", pgtest.URL(t)), newPlace(t, dir, "third")
	want(first, "Created", "create", "acme", "--base-url", "https://acme.example.com", "--admin-email", "ann@acme.example", "--out", filepath.Join(dir, "acme.json"))
	c := readJSON(t, filepath.Join(dir, "acme.json"))

	rename(t, first, c.TenantID)

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
	wantError(second, "has the regions", "import", archive, "--passphrase-file", passphrase, "--region", "mars")
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
	paper := tuplestore.Object{Type: "paper", ID: "1"}
	res, err := s.Engine.Check(t.Context(), c.TenantID, engine.CheckRequest{
		Subject: tuplestore.Subject{Type: "user", ID: "ann"}, Queries: []engine.Query{{Resource: paper, Action: "reader"}},
	})
	if err != nil || !res.Decisions[0].Allowed {
		t.Errorf("a relation with a new name: %+v, %v", res, err)
	}
	if r, err := resources.New(s.Engine, s.DB).Get(t.Context(), c.TenantID, "paper", "1"); err != nil || string(r.Attributes) != `{"a":1}` {
		t.Errorf("a resource with a new name: %+v, %v", r, err)
	}
}

// rename stores a relation and a resource with attributes, and renames their type and the relation.
func rename(t *testing.T, place []string, tenantID string) {
	t.Helper()
	config, err := resolve(t, place, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openForCommand(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	by := engine.Origin{Actor: "test"}
	doc := schema.Type{Name: "doc", Relations: []schema.Relation{{Name: "viewer"}}}
	if _, _, _, err := s.Engine.PutType(t.Context(), tenantID, doc, by); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := resources.New(s.Engine, s.DB).Put(t.Context(), tenantID, resources.Resource{Type: "doc", ExternalID: "1", Attributes: []byte(`{"a":1}`)}, by); err != nil {
		t.Fatal(err)
	}
	ann := engine.WriteOp{Resource: tuplestore.Object{Type: "doc", ID: "1"}, Relation: "viewer", Subject: tuplestore.Subject{Type: "user", ID: "ann"}}
	if _, err := s.Engine.Write(t.Context(), tenantID, engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{ann}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Engine.ApplyTypes(t.Context(), tenantID, engine.TypesChange{Renames: []schema.Rename{{From: "doc", To: "paper"}, {Type: "doc", From: "viewer", To: "reader"}}}, by); err != nil {
		t.Fatal(err)
	}
}

// An import whose process is killed leaves nothing, and is repeated.
func TestKilledImport(t *testing.T) {
	dir := t.TempDir()
	run := func(flags []string, args ...string) string {
		t.Helper()
		out, err := command(t, slices.Concat([]string{"tenants"}, args, flags)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := newPlace(t, dir, "first")
	run(first, "create", "acme", "--base-url", "https://acme.example.com", "--admin-email", "ann@acme.example", "--out", filepath.Join(dir, "acme.json"))
	addDevices(t, filepath.Join(dir, "first", "stonetown.db"), readJSON(t, filepath.Join(dir, "acme.json")).TenantID, 20_000)
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity, archive := filepath.Join(dir, "key"), filepath.Join(dir, "acme.archive")
	if err := os.WriteFile(identity, []byte(key.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run(first, "export", "acme", "--recipient", key.Recipient().String(), "--out", archive)
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{"SQLite": newPlace(t, dir, "second"), "PostgreSQL": newPlace(t, dir, "third", "--database-url", pgtest.URL(t))} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(dir, name)
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, slices.Concat([]string{"tenants", "import", pipe, "--identity", identity}, flags)...)
			cmd.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content[:len(content)*3/4]); err != nil { // the process has read most of it
				t.Fatal(err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the import ended before it was killed")
			}
			w.Close()
			if out := run(flags, "list"); strings.Contains(out, "acme") {
				t.Errorf("it leaves the tenant:\n%s", out)
			}
			if out := run(flags, "import", archive, "--identity", identity); !strings.Contains(out, "verified") {
				t.Errorf("repeated: %q", out)
			}
		})
	}
}

// addDevices adds rows to a tenant.
func addDevices(t *testing.T, database, tenantID string, n int) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite://" + database})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Tx(t.Context(), func(tx *sqldb.Tx) error {
		for i := range n {
			if _, err := tx.Exec(t.Context(), `INSERT INTO known_devices (tenant_id, user_id, fingerprint, last_seen_at) VALUES ($1, 'usr_x', $2, 1)`, tenantID, fmt.Sprintf("fingerprint-%026d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
