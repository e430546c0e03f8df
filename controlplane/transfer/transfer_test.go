package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"stonetown/controlplane"
	"stonetown/controlplane/transfer"
	"stonetown/internal/eventlog"
	"stonetown/internal/ratelimit"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/internal/tenantkeys"
)

// stay are the tables that do not move.
var stay = []string{"rate_limits", "sign_in_attempts", "tenant_leases"}

// A tenant with rows in every table moves from each kind of database to each, on to a third
// deployment and back to a new one with the first master key. Every value is that of the first.
func TestRoundTrip(t *testing.T) {
	for from, fromURL := range databases {
		for to, toURL := range databases {
			t.Run(from+" to "+to, func(t *testing.T) {
				first := open(t, fromURL(t), 1)
				tenant := first.tenant(t, "acme")
				other := first.tenant(t, "other")
				want := first.counts(t, tenant.ID)
				for _, name := range stay {
					if want[name] == 0 {
						t.Errorf("no rows in %s", name)
					}
					delete(want, name)
				}
				value := first.MasterKey.Seal(tenant.ID, "row", []byte("sealed"))
				derived, err := first.MasterKey.DeriveFor(tenant.ID, "names")
				must(t, err)

				place := first
				for n, next := range []*deployment{open(t, toURL(t), 2), open(t, toURL(t), 3), open(t, fromURL(t), 1)} {
					archive, exported := place.export(t, tenant.ID)
					got, imported, err := next.importArchive(t, archive)
					must(t, err)
					if exported != imported || exported.Tables < 50 || exported.Tables != len(want) {
						t.Fatalf("exported %+v, imported %+v, want %d tables", exported, imported, len(want))
					}
					if got.ID != tenant.ID || got.Slug != "acme" || got.Name != "Ténant" || got.BaseURL != tenant.BaseURL || got.Environment != controlplane.Staging || got.OrgID != next.org || got.State != controlplane.TenantSuspended {
						t.Errorf("imported %+v", got)
					}
					counts := next.counts(t, tenant.ID)
					delete(counts, "tenant_keys")
					if diff := cmp.Diff(want, counts); diff != "" {
						t.Error(diff)
					}
					if counts := next.counts(t, other.ID); len(counts) != 0 {
						t.Errorf("rows of another tenant: %v", counts)
					}
					if events := next.events(t); len(events) == 0 || events[len(events)-1] != "tenant.imported" {
						t.Errorf("events of the organisation: %v", events)
					}
					opened, keys := next.opener(t, tenant.ID)
					if text, err := opened.Open(tenant.ID, "row", value); err != nil || string(text) != "sealed" {
						t.Errorf("%q, %v", text, err)
					}
					if key, err := opened.DeriveFor(tenant.ID, "names"); err != nil || !bytes.Equal(key, derived) {
						t.Errorf("derived %x, %v, want %x", key, err, derived)
					}
					if want := n + 1; keys != want {
						t.Errorf("%d keys, want %d", keys, want)
					}
					if diff := cmp.Diff(place.rows(t, tenant.ID), next.rows(t, tenant.ID)); diff != "" {
						t.Error(diff)
					}
					value = opened.Seal(tenant.ID, "row", []byte("sealed"))
					place = next
				}
			})
		}
	}
}

// opener returns the master key with the imported keys of a tenant, and their number.
func (d *deployment) opener(t testing.TB, tenantID string) (*seal.Key, int) {
	t.Helper()
	store, err := tenantkeys.New(d.MasterKey, d.config)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	keys, err := store.Keys(tenantID)
	must(t, err)
	return d.MasterKey.WithImported(store), len(keys)
}

// changed are the columns that an import changes.
var changed = []string{"tenant_heads.epoch", "revocations.changed_at"}

// rows returns the values of a tenant in the tables that move, as the database returns them
// without a type, in the order of their texts.
func (d *deployment) rows(t testing.TB, tenantID string) map[string][]string {
	t.Helper()
	tables, err := d.DB.TenantTables(t.Context())
	must(t, err)
	found := map[string][]string{}
	for _, table := range tables {
		if table.Name == "tenant_keys" || slices.Contains(stay, table.Name) {
			continue
		}
		columns, err := d.DB.Columns(t.Context(), table.Name)
		must(t, err)
		names, booleans := "", map[int]bool{}
		for _, c := range columns {
			if !slices.Contains(changed, table.Name+"."+c.Name) {
				booleans[strings.Count(names, ",")] = c.Type == sqldb.Boolean
				names += fmt.Sprintf(`, "%s"`, c.Name)
			}
		}
		rows, err := d.DB.Query(t.Context(), fmt.Sprintf(`SELECT %s FROM "%s" WHERE %s = $1`, names[2:], table.Name, table.Column), table.Tenant(tenantID))
		must(t, err)
		for rows.Next() {
			values := make([]any, strings.Count(names, ","))
			targets := make([]any, len(values))
			for i := range values {
				targets[i] = &values[i]
			}
			must(t, rows.Scan(targets...))
			text := ""
			for i, v := range values {
				switch n := v.(type) { // the drivers differ
				case int64:
					if booleans[i] {
						v = n == 1
					}
				case []byte:
					v = sqldb.Blob(n)
				}
				text += fmt.Sprintf("%#v ", v)
			}
			found[table.Name] = append(found[table.Name], text)
		}
		must(t, rows.Err())
		slices.Sort(found[table.Name])
	}
	return found
}

// A running deployment reads what it must have in memory: the revocations that came with the
// tenant have changed now, and consistency tokens have another epoch.
func TestImportRefreshes(t *testing.T) {
	from, to := open(t, databases["SQLite"](t), 1), open(t, databases["PostgreSQL"](t), 2)
	tenant := from.tenant(t, "acme")
	archive, _ := from.export(t, tenant.ID)
	before := time.Now().UnixMicro()
	_, _, err := to.importArchive(t, archive)
	must(t, err)
	var stale int64
	must(t, to.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM revocations WHERE tenant_id = $1 AND changed_at < $2`, tenant.ID, before).Scan(&stale))
	if stale != 0 {
		t.Errorf("%d revocations that no process reads", stale)
	}
	var epochs [2]string
	for i, d := range []*deployment{from, to} {
		must(t, d.DB.QueryRow(t.Context(), `SELECT epoch FROM tenant_heads WHERE tenant_id = $1`, tenant.ID).Scan(&epochs[i]))
	}
	if epochs[0] == epochs[1] || epochs[1] == "" {
		t.Errorf("epochs %q", epochs)
	}
}

// An archive is at another address if the import says so, and keeps the limits of the tenant.
func TestAddress(t *testing.T) {
	from, to := open(t, databases["SQLite"](t), 1), open(t, databases["SQLite"](t), 2)
	tenant := from.tenant(t, "acme")
	_, err := from.directory.UpdateRateLimits(t.Context(), tenant.ID, ratelimit.Limits{{Family: ratelimit.Token, By: ratelimit.IP}: {}}, nil,
		func(context.Context, *sqldb.Tx, ratelimit.Limits, ratelimit.Limits) error { return nil })
	must(t, err)
	archive, _ := from.export(t, tenant.ID)
	at := transfer.Address{OrgID: to.org, Slug: "moved", BaseURL: "https://moved.example.org"}
	got, _, err := transfer.Import(t.Context(), to.Deployment, to.directory, bytes.NewReader(archive), at, secret)
	must(t, err)
	stored, err := to.directory.TenantByHost(t.Context(), "moved.example.org")
	must(t, err)
	if diff := cmp.Diff(got, stored); diff != "" || got.Slug != "moved" || len(got.RateLimits) != 1 || got.SuspendReason != "imported" {
		t.Errorf("%+v\n%s", got, diff)
	}
	at.Slug, at.BaseURL = "api", ""
	if _, _, err := transfer.Import(t.Context(), open(t, databases["SQLite"](t), 3).Deployment, to.directory, bytes.NewReader(archive), at, secret); !errors.Is(err, controlplane.ErrSlugInvalid) {
		t.Errorf("a reserved slug: %v", err)
	}
}

// A second import of a tenant, and one with a slug or host that is in use, is refused.
func TestImportRefusesNamesInUse(t *testing.T) {
	from, to := open(t, databases["SQLite"](t), 1), open(t, databases["PostgreSQL"](t), 2)
	tenant := from.tenant(t, "acme")
	archive, _ := from.export(t, tenant.ID)
	to.tenant(t, "taken")
	try := func(what string, at transfer.Address, want error) {
		t.Helper()
		at.OrgID = to.org
		_, _, err := transfer.Import(t.Context(), to.Deployment, to.directory, bytes.NewReader(archive), at, secret)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	try("a slug", transfer.Address{Slug: "taken"}, controlplane.ErrSlugTaken)
	try("a host", transfer.Address{BaseURL: "http://taken.example.com:81"}, controlplane.ErrSlugTaken)
	if counts := to.counts(t, tenant.ID); len(counts) != 0 {
		t.Errorf("rows of a refused import: %v", counts)
	}
	try("the first import", transfer.Address{}, nil)
	want := to.rows(t, tenant.ID)
	try("the second import", transfer.Address{Slug: "again", BaseURL: "https://again.example.com"}, controlplane.ErrTenantExists)
	if diff := cmp.Diff(want, to.rows(t, tenant.ID)); diff != "" {
		t.Error(diff)
	}
	_, err := to.directory.Decommission(t.Context(), tenant.ID, eventlog.Origin{})
	must(t, err)
	try("an import of a decommissioned tenant", transfer.Address{Slug: "again", BaseURL: "https://again.example.com"}, controlplane.ErrTenantExists)
	if _, err := transfer.Export(t.Context(), to.Deployment, tenant.ID, io.Discard, secret.Recipient()); !errors.As(err, new(*controlplane.StateError)) {
		t.Errorf("an export of a decommissioned tenant: %v", err)
	}
}

// An archive opens with its passphrase or key only, and an export needs the master key.
func TestSecrets(t *testing.T) {
	from, to := open(t, databases["SQLite"](t), 1), open(t, databases["SQLite"](t), 2)
	tenant := from.tenant(t, "acme")
	recipient, err := age.NewScryptRecipient("correct horse")
	must(t, err)
	recipient.SetWorkFactor(10)
	var archive bytes.Buffer
	_, err = transfer.Export(t.Context(), from.Deployment, tenant.ID, &archive, recipient)
	must(t, err)
	for _, known := range []string{tenant.ID, "acme", "webhook_lanes", "Ünïcode"} {
		if bytes.Contains(archive.Bytes(), []byte(known)) {
			t.Errorf("the archive reveals %q", known)
		}
	}
	try := func(passphrase string) error {
		identity, err := age.NewScryptIdentity(passphrase)
		must(t, err)
		_, _, err = transfer.Import(t.Context(), to.Deployment, to.directory, bytes.NewReader(archive.Bytes()), transfer.Address{OrgID: to.org}, identity)
		return err
	}
	if err := try("Correct horse"); !errors.Is(err, transfer.ErrWrongSecret) {
		t.Errorf("another passphrase: %v", err)
	}
	if _, _, err := to.importArchive(t, archive.Bytes()); !errors.Is(err, transfer.ErrWrongSecret) {
		t.Errorf("a key instead of a passphrase: %v", err)
	}
	if err := try("correct horse"); err != nil {
		t.Errorf("the passphrase: %v", err)
	}
	from.MasterKey = to.MasterKey
	if _, err := transfer.Export(t.Context(), from.Deployment, tenant.ID, io.Discard, secret.Recipient()); !errors.Is(err, seal.ErrWrongKey) {
		t.Errorf("an export with another master key: %v", err)
	}
}

// An archive in which any byte is changed, or that ends early, is refused and leaves nothing.
func TestDamage(t *testing.T) {
	from, to := open(t, databases["SQLite"](t), 1), open(t, databases["SQLite"](t), 2)
	tenant := from.tenant(t, "acme")
	from.fill(t, "users", tenant.ID, 1000) // several chunks of 64 kB
	archive, _ := from.export(t, tenant.ID)
	refused := func(what string, damaged []byte) {
		t.Helper()
		_, _, err := to.importArchive(t, damaged)
		if !errors.Is(err, transfer.ErrDamaged) && !errors.Is(err, transfer.ErrNotArchive) && !errors.Is(err, transfer.ErrWrongSecret) {
			t.Fatalf("%s: %v", what, err)
		}
		if counts := to.counts(t, tenant.ID); len(counts) != 0 {
			t.Fatalf("%s leaves %v", what, counts)
		}
	}
	places := []int{len(archive) - 1}
	for n := range 220 { // all of the beginning, and a part of the rest
		places = append(places, n)
	}
	for n := 220; n < len(archive); n += len(archive) / 100 {
		places = append(places, n+rand.N(min(100, len(archive)-n)))
	}
	for _, n := range places {
		damaged := bytes.Clone(archive)
		damaged[n] ^= 1 << rand.N(8)
		refused(fmt.Sprintf("byte %d of %d", n, len(archive)), damaged)
		refused(fmt.Sprintf("cut at %d of %d", n, len(archive)), archive[:n])
	}
	refused("nothing", nil)
	refused("something else", []byte("-----BEGIN CERTIFICATE-----"))
	refused("a byte too many", append(bytes.Clone(archive), 0))
	if _, _, err := to.importArchive(t, archive); err != nil {
		t.Errorf("the archive itself: %v", err)
	}
}

// The content of an archive is verified even if it is encrypted for the right key: rows that
// differ from their hash, or are no rows, are refused and leave nothing.
func TestDamagedContent(t *testing.T) {
	from, to := open(t, databases["SQLite"](t), 1), open(t, databases["SQLite"](t), 2)
	tenant := from.tenant(t, "acme")
	archive, _ := from.export(t, tenant.ID)
	decrypted, err := age.Decrypt(bytes.NewReader(archive), secret)
	must(t, err)
	content, err := io.ReadAll(decrypted)
	must(t, err)
	rows := bytes.Index(content, []byte("\x64rows")) // after the header
	if rows < 0 {
		t.Fatal("no rows")
	}
	damage := func(n int, bits byte) {
		t.Helper()
		damaged := bytes.Clone(content)
		damaged[n] ^= bits
		var encrypted bytes.Buffer
		w, err := age.Encrypt(&encrypted, secret.Recipient())
		must(t, err)
		_, err = w.Write(damaged)
		must(t, err)
		must(t, w.Close())
		if _, _, err := to.importArchive(t, encrypted.Bytes()); err == nil {
			t.Fatalf("byte %d of %d: accepted", n, len(content))
		}
		if counts := to.counts(t, tenant.ID); len(counts) != 0 {
			t.Fatalf("byte %d of %d leaves %v", n, len(content), counts)
		}
	}
	for _, name := range []string{"rows", "total", "sha256", "end"} {
		damage(bytes.LastIndex(content, []byte(name)), 'a'^'A')
	}
	for range 200 {
		damage(rows+rand.N(len(content)-rows), byte(1+rand.N(255)))
	}
}

// A database with other columns is not written to.
func TestOtherSchema(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			from, to := open(t, url(t), 1), open(t, url(t), 2)
			tenant := from.tenant(t, "acme")
			archive, _ := from.export(t, tenant.ID)
			_, err := to.DB.Exec(t.Context(), `ALTER TABLE scopes ADD COLUMN colour TEXT`)
			must(t, err)
			var schema *transfer.SchemaError
			if _, _, err := to.importArchive(t, archive); !errors.As(err, &schema) || !strings.Contains(err.Error(), "scopes") || !strings.Contains(err.Error(), "colour") {
				t.Errorf("another column: %v", err)
			}
			_, err = to.DB.Exec(t.Context(), `CREATE TABLE things (tenant_id TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (tenant_id, id))`)
			must(t, err)
			if _, _, err := to.importArchive(t, archive); err == nil || !strings.Contains(err.Error(), "things") {
				t.Errorf("another table: %v", err)
			}
		})
	}
}

// An import that a failure ends leaves nothing, and can be repeated. Rows that are in the database
// already are not taken for those of the archive.
func TestImportIsAllOrNothing(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			from, to := open(t, databases["SQLite"](t), 1), open(t, url(t), 2)
			tenant := from.tenant(t, "acme")
			from.fill(t, "users", tenant.ID, 500)
			archive, _ := from.export(t, tenant.ID)
			for n := 0; n < len(archive); n += len(archive) / 7 {
				ctx, cancel := context.WithCancel(t.Context())
				interrupted := &interruption{archive: archive, at: n, interrupt: cancel}
				_, _, err := transfer.Import(ctx, to.Deployment, to.directory, interrupted, transfer.Address{OrgID: to.org}, secret)
				cancel()
				if err == nil {
					t.Fatalf("an import that is interrupted at %d succeeds", n)
				}
				if counts := to.counts(t, tenant.ID); len(counts) != 0 {
					t.Fatalf("it leaves %v", counts)
				}
				if _, err := to.directory.TenantByID(t.Context(), tenant.ID); !errors.Is(err, controlplane.ErrTenantNotFound) {
					t.Fatalf("it leaves the tenant: %v", err)
				}
			}
			_, err := to.DB.Exec(t.Context(), `INSERT INTO known_devices (tenant_id, user_id, fingerprint, last_seen_at) VALUES ($1, 'u', 'f', 1)`, tenant.ID)
			must(t, err)
			var differs *transfer.VerifyError
			if _, _, err := to.importArchive(t, archive); !errors.As(err, &differs) || differs.Table != "known_devices" || differs.Got != differs.Want+1 {
				t.Errorf("with a row that is no part of the archive: %v", err)
			}
			_, err = to.DB.Exec(t.Context(), `DELETE FROM known_devices`)
			must(t, err)
			if _, _, err := to.importArchive(t, archive); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// Of two imports at the same time one succeeds, and the rows are there once.
func TestParallelImports(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			from, to := open(t, databases["SQLite"](t), 1), open(t, url(t), 2)
			tenant := from.tenant(t, "acme")
			archive, _ := from.export(t, tenant.ID)
			errs := make(chan error)
			for n := range 2 {
				at := transfer.Address{OrgID: to.org, Slug: fmt.Sprintf("acme-%d", n), BaseURL: fmt.Sprintf("https://acme-%d.example.com", n)}
				go func() {
					_, _, err := transfer.Import(t.Context(), to.Deployment, to.directory, bytes.NewReader(archive), at, secret)
					errs <- err
				}()
			}
			one, other := <-errs, <-errs
			if one != nil {
				one, other = other, one
			}
			if one != nil || !errors.Is(other, controlplane.ErrTenantExists) {
				t.Errorf("%v and %v", one, other)
			}
			if diff := cmp.Diff(from.rows(t, tenant.ID), to.rows(t, tenant.ID)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An import does not delay changes of other tenants; one that takes its slug meanwhile makes it
// fail at its end.
func TestImportBesideChanges(t *testing.T) {
	from, to := open(t, databases["SQLite"](t), 1), open(t, databases["PostgreSQL"](t), 2)
	tenant := from.tenant(t, "acme")
	from.fill(t, "users", tenant.ID, 500)
	archive, _ := from.export(t, tenant.ID)
	for _, slug := range []string{"acme", "other"} {
		want := map[string]error{"acme": controlplane.ErrSlugTaken}[slug]
		meanwhile := sync.OnceFunc(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			must(t, to.DB.Tx(ctx, func(tx *sqldb.Tx) error {
				_, err := to.directory.CreateTenant(ctx, tx, controlplane.NewTenant{OrgID: to.org, Slug: slug, BaseURL: "https://" + slug + ".example.org"})
				return err
			}))
		})
		at := transfer.Address{OrgID: to.org}
		if want == nil {
			at.Slug = "acme-2"
		}
		_, _, err := transfer.Import(t.Context(), to.Deployment, to.directory, &interruption{archive: archive, at: len(archive) / 2, interrupt: meanwhile}, at, secret)
		if !errors.Is(err, want) {
			t.Errorf("%s is created meanwhile: %v, want %v", slug, err, want)
		}
	}
}

// interruption calls a function when a part of an archive was read.
type interruption struct {
	archive   []byte
	at, read  int
	interrupt func()
}

func (i *interruption) Read(p []byte) (int, error) {
	if i.read >= i.at {
		i.interrupt()
	}
	if i.read == len(i.archive) {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1000)], i.archive[i.read:])
	i.read += n
	return n, nil
}

// An export is of one instant, while rows are written.
func TestExportIsASnapshot(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			from, to := open(t, url(t), 1), open(t, databases["SQLite"](t), 2)
			tenant := from.tenant(t, "acme")
			from.fill(t, "tuples", tenant.ID, 3000)
			want := from.counts(t, tenant.ID)
			var archive bytes.Buffer
			late := &writes{Writer: &archive, first: func() { from.fill(t, "users", tenant.ID, 3); from.fill(t, "webhook_lanes", tenant.ID, 3) }}
			_, err := transfer.Export(t.Context(), from.Deployment, tenant.ID, late, secret.Recipient())
			must(t, err)
			_, done, err := to.importArchive(t, archive.Bytes())
			must(t, err)
			counts := to.counts(t, tenant.ID)
			for _, table := range []string{"users", "webhook_lanes"} {
				if counts[table] != want[table] || from.counts(t, tenant.ID)[table] != want[table]+3 {
					t.Errorf("%d rows in %s, want %d", counts[table], table, want[table])
				}
			}
			if counts["tuples"] != 3005 || done.Rows < 3005 {
				t.Errorf("%v", counts)
			}
		})
	}
}

// writes calls a function at the first data, which follows the first block of rows.
type writes struct {
	io.Writer
	size  int
	first func()
}

func (w *writes) Write(p []byte) (int, error) {
	if w.size += len(p); w.size > 10000 && w.first != nil {
		w.first()
		w.first = nil
	}
	return w.Writer.Write(p)
}
