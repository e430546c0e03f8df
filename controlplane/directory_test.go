package controlplane

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/eventlog"
	"stonetown/internal/lease"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

// clock is a clock that tests set.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func TestMain(m *testing.M) { pgtest.Main(m) }

// backends are the databases.
var backends = []struct {
	name string
	url  func(testing.TB) string
}{
	{"SQLite", func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") }},
	{"PostgreSQL", pgtest.URL},
}

func open(t *testing.T) (*Directory, *sqldb.DB, *clock) {
	t.Helper()
	return openAt(t, backends[0].url(t))
}

func openAt(t *testing.T, url string) (*Directory, *sqldb.DB, *clock) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), Migrations(), eventlog.Migrations(), sqlstore.Migrations()); err != nil {
		t.Fatal(err)
	}
	c := &clock{time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	d, err := New(Config{DB: db, Clock: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return d, db, c
}

// create creates a tenant, and an organisation before the first one.
func create(t *testing.T, d *Directory, db *sqldb.DB, slug, baseURL string) (tenant Tenant, err error) {
	t.Helper()
	err = db.Tx(t.Context(), func(tx *sqldb.Tx) error {
		org, err := d.CreateOrganization(t.Context(), tx, "org-of-"+slug, "Org")
		if err != nil {
			return err
		}
		tenant, err = d.CreateTenant(t.Context(), tx, NewTenant{OrgID: org.ID, Slug: slug, Name: "T", BaseURL: baseURL})
		return err
	})
	return tenant, err
}

func TestFindTenant(t *testing.T) {
	d, db, c := open(t)
	if _, err := d.FirstTenant(t.Context()); !errors.Is(err, ErrTenantNotFound) {
		t.Fatalf("FirstTenant of an empty directory: %v", err)
	}
	want, err := create(t, d, db, "acme", "https://acme.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if first, err := d.FirstTenant(t.Context()); err != nil || first.ID != want.ID {
		t.Fatalf("FirstTenant right after there is one: %+v, %v", first, err)
	}
	c.now = c.now.Add(time.Minute)
	if _, err := create(t, d, db, "beta", "http://beta.localhost:8080"); err != nil {
		t.Fatal(err)
	}

	lookups := map[string]func(context.Context) (Tenant, error){
		"id":   func(ctx context.Context) (Tenant, error) { return d.TenantByID(ctx, want.ID) },
		"slug": func(ctx context.Context) (Tenant, error) { return d.TenantBySlug(ctx, "acme") },
		"host": func(ctx context.Context) (Tenant, error) { return d.TenantByHost(ctx, "acme.example.com") },
		"HOST": func(ctx context.Context) (Tenant, error) { return d.TenantByHost(ctx, "ACME.Example.com.") },
		"first": func(ctx context.Context) (Tenant, error) {
			return d.FirstTenant(ctx)
		},
	}
	for name, lookup := range lookups {
		for range 2 { // the second one from the cache, if there is one
			got, err := lookup(t.Context())
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("by %s: %v\n%s", name, err, diff)
			}
		}
	}
	for _, host := range []string{"", "example.com", "xacme.example.com", "acme.example.com.evil", "acme.example.com..", "acme.example.com:443", "' OR 1=1 --"} {
		for range 2 {
			if got, err := d.TenantByHost(t.Context(), host); !errors.Is(err, ErrTenantNotFound) {
				t.Errorf("host %q: %+v, %v, want ErrTenantNotFound", host, got, err)
			}
		}
	}
}

// A change is known to every process when the call that makes it returns, and what did not change
// is answered from memory.
func TestChangesAreKnown(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.name, func(t *testing.T) {
			d, db, c := openAt(t, backend.url(t))
			other, err := New(Config{DB: db, Clock: c.Now})
			if err != nil {
				t.Fatal(err)
			}
			processes := []*Directory{d, other}
			state := func(want TenantState) {
				t.Helper()
				for i, p := range processes {
					got, err := p.TenantByHost(t.Context(), "acme.example.com")
					if err != nil && !errors.Is(err, ErrTenantNotFound) || got.State != want {
						t.Errorf("process %d: %q, %v, want %q", i, got.State, err, want)
					}
				}
			}
			state("")
			tenant, err := create(t, d, db, "acme", "https://acme.example.com")
			if err != nil {
				t.Fatal(err)
			}
			lease.Settle(t.Context())
			state(TenantActive)
			before := db.Stats().Statements
			for range 1000 {
				state(TenantActive)
			}
			if n := db.Stats().Statements - before; n > 100 { // only the versions are read
				t.Errorf("2,000 lookups sent %d statements", n)
			}
			for _, change := range []struct {
				to   TenantState
				make func() (Tenant, error)
			}{
				{TenantSuspended, func() (Tenant, error) { return d.Suspend(t.Context(), tenant.ID, "late", eventlog.Origin{}) }},
				{TenantActive, func() (Tenant, error) { return other.Resume(t.Context(), tenant.ID, eventlog.Origin{}) }},
				{TenantDecommissioned, func() (Tenant, error) { return d.Decommission(t.Context(), tenant.ID, eventlog.Origin{}) }},
			} {
				if got, err := change.make(); err != nil || got.State != change.to {
					t.Fatalf("%+v, %v, want %q", got, err, change.to)
				}
				state(change.to)
			}
		})
	}
}

func TestNamesAreOneLine(t *testing.T) {
	d, db, _ := open(t)
	for _, name := range []string{"a\nb", "a\r", "\x00", "a\x1b[2J", strings.Repeat("x", 501)} {
		err := db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, err := d.CreateOrganization(t.Context(), tx, "other", name)
			return err
		})
		if !errors.Is(err, ErrNameInvalid) {
			t.Errorf("organisation %q: %v", name, err)
		}
		err = db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, err := d.CreateTenant(t.Context(), tx, NewTenant{OrgID: "org_x", Slug: "other", Name: name, BaseURL: "https://other.example.com"})
			return err
		})
		if !errors.Is(err, ErrNameInvalid) {
			t.Errorf("tenant %q: %v", name, err)
		}
	}
}

func TestCreateTenantRefuses(t *testing.T) {
	_, db, c := open(t)
	d, err := New(Config{DB: db, Clock: c.Now, ControlURL: "https://manage.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := create(t, d, db, "acme", "https://acme.example.com"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		slug, baseURL string
		want          error
	}{
		{"", "https://x.example.com", ErrSlugInvalid},
		{"Acme", "https://x.example.com", ErrSlugInvalid},
		{"a--b", "https://x.example.com", ErrSlugInvalid},
		{"-a", "https://x.example.com", ErrSlugInvalid},
		{"a.b", "https://x.example.com", ErrSlugInvalid},
		{"control", "https://x.example.com", ErrSlugInvalid},
		{"x", "x.example.com", ErrBaseURLInvalid},
		{"x", "ftp://x.example.com", ErrBaseURLInvalid},
		{"x", "https://x.example.com/", ErrBaseURLInvalid},
		{"x", "https://X.example.com", ErrBaseURLInvalid},
		{"x", "https://me@x.example.com", ErrBaseURLInvalid},
		{"x", "https://x.example.com?a=b", ErrBaseURLInvalid},
		{"x", "https://", ErrBaseURLInvalid},
		{"acme", "https://x.example.com", ErrSlugTaken},
		{"x", "http://acme.example.com:81", ErrSlugTaken},
		{"manage", "https://manage.example.com", errControlHost},
	} {
		err := db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			org, err := d.CreateOrganization(t.Context(), tx, "other", "Other")
			if err != nil {
				return err
			}
			_, err = d.CreateTenant(t.Context(), tx, NewTenant{OrgID: org.ID, Slug: test.slug, BaseURL: test.baseURL})
			return err
		})
		if !errors.Is(err, test.want) {
			t.Errorf("CreateTenant(%q, %q): %v, want %v", test.slug, test.baseURL, err, test.want)
		}
	}
}

func TestMoveTenant(t *testing.T) {
	_, db, c := open(t)
	d, err := New(Config{DB: db, Clock: c.Now, ControlURL: "http://control.localhost:8080"})
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := create(t, d, db, "dev", "http://dev.localhost:8080")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.TenantByHost(t.Context(), "dev.localhost"); err != nil {
		t.Fatal(err)
	}
	move := func(id, baseURL string) error {
		return db.Tx(t.Context(), func(tx *sqldb.Tx) error { return d.MoveTenant(t.Context(), tx, id, baseURL) })
	}
	if err := move(tenant.ID, "http://control.localhost:9000"); !errors.Is(err, errControlHost) {
		t.Errorf("moving a tenant to the control plane: %v", err)
	}
	if err := move(tenant.ID, "http://dev.localhost:9000"); err != nil {
		t.Fatal(err)
	}
	if got, err := d.TenantByHost(t.Context(), "dev.localhost"); err != nil || got.BaseURL != "http://dev.localhost:9000" {
		t.Errorf("after the move: %+v, %v", got, err)
	}
	if err := move("tnt_other", "http://dev.localhost:9000"); !errors.Is(err, ErrTenantNotFound) {
		t.Errorf("moving an unknown tenant: %v", err)
	}
}

func BenchmarkTenantByHost(b *testing.B) {
	d, err := New(Config{DB: new(sqldb.DB)})
	if err != nil {
		b.Fatal(err)
	}
	d.lease = lease.New(func(context.Context) error { return nil })
	d.cache.Add("dev.localhost", answer{tenant: Tenant{ID: "tnt_x"}})
	for b.Loop() {
		if _, err := d.TenantByHost(b.Context(), "dev.localhost"); err != nil {
			b.Fatal(err)
		}
	}
}
