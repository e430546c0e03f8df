package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/eventlog"
)

// Each change is allowed in its states only, and has its event in the log of the organisation.
func TestLifecycle(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.name, func(t *testing.T) {
			d, db, c := openAt(t, backend.url(t))
			ctx := t.Context()
			o := eventlog.Origin{Actor: eventlog.Actor{Type: "user", ID: "usr_owner"}, RequestID: "req_1"}
			changes := map[string]func(id string) (Tenant, error){
				"suspend":      func(id string) (Tenant, error) { return d.Suspend(ctx, id, "unpaid", o) },
				"resume":       func(id string) (Tenant, error) { return d.Resume(ctx, id, o) },
				"decommission": func(id string) (Tenant, error) { return d.Decommission(ctx, id, o) },
			}
			for i, test := range []struct {
				steps string // those before the last one are allowed
				want  TenantState
				fails TenantState // of the last step
			}{
				{"suspend", TenantSuspended, ""},
				{"suspend suspend", TenantSuspended, TenantSuspended},
				{"resume", TenantActive, TenantActive},
				{"suspend resume", TenantActive, ""},
				{"suspend resume suspend", TenantSuspended, ""},
				{"decommission", TenantDecommissioned, ""},
				{"suspend decommission", TenantDecommissioned, ""},
				{"decommission decommission", TenantDecommissioned, TenantDecommissioned},
				{"decommission resume", TenantDecommissioned, TenantDecommissioned},
				{"decommission suspend", TenantDecommissioned, TenantDecommissioned},
			} {
				slug := fmt.Sprintf("t%d", i)
				tenant, err := create(t, d, db, slug, "https://"+slug+".example.com")
				if err != nil {
					t.Fatal(err)
				}
				steps := strings.Fields(test.steps)
				for n, step := range steps {
					_, err := changes[step](tenant.ID)
					var refused *StateError
					switch last := n == len(steps)-1; {
					case last && test.fails != "":
						if !errors.As(err, &refused) || refused.State != test.fails {
							t.Errorf("%s: %v, want a tenant that is %s", test.steps, err, test.fails)
						}
					case err != nil:
						t.Errorf("%s: step %s: %v", test.steps, step, err)
					}
				}
				got, err := d.TenantByID(ctx, tenant.ID)
				want := tenant
				switch want.State, want.UpdatedAt = test.want, c.now; want.State {
				case TenantSuspended:
					want.SuspendedAt, want.SuspendReason = c.now, "unpaid"
				case TenantDecommissioned:
					want.DecommissionedAt, want.PurgeAt = c.now, c.now.Add(PurgeAfter)
				case TenantActive:
				}
				if err != nil || !equal(got, want) {
					t.Errorf("%s: %+v, %v, want %+v", test.steps, got, err, want)
				}
				events, err := eventlog.Open(eventlog.Config{DB: db})
				if err != nil {
					t.Fatal(err)
				}
				logged, err := events.Read(ctx, tenant.OrgID, 2, 10) // after those of the creation
				if err != nil {
					t.Fatal(err)
				}
				names := map[string]eventlog.Type{"suspend": TenantSuspendedEvent, "resume": TenantResumedEvent, "decommission": TenantDecommissionedEvent}
				if test.fails != "" {
					steps = steps[:len(steps)-1]
				}
				if len(logged) != len(steps) {
					t.Errorf("%s: %d events", test.steps, len(logged))
					continue
				}
				for n, e := range logged {
					var data struct{ ID, State string }
					if err := json.Unmarshal(e.Data, &data); err != nil || e.Type != names[steps[n]] || data.ID != tenant.ID || data.State == "" || e.Origin != o {
						t.Errorf("%s: event %+v: %s", test.steps, e, e.Data)
					}
				}
			}
			for name, change := range changes {
				if _, err := change("tnt_other"); !errors.Is(err, ErrTenantNotFound) {
					t.Errorf("%s of an unknown tenant: %v", name, err)
				}
			}
			if _, err := d.Suspend(ctx, "tnt_other", "two\nlines", o); !errors.Is(err, ErrReasonInvalid) {
				t.Errorf("a reason of two lines: %v", err)
			}
		})
	}
}

func equal(a, b Tenant) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }

// Of changes that exclude each other, one wins.
func TestLifecycleRaces(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.name, func(t *testing.T) {
			d, db, _ := openAt(t, backend.url(t))
			tenant, err := create(t, d, db, "acme", "https://acme.example.com")
			if err != nil {
				t.Fatal(err)
			}
			var won atomic.Int64
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					_, err := d.Suspend(t.Context(), tenant.ID, "", eventlog.Origin{})
					var refused *StateError
					switch {
					case err == nil:
						won.Add(1)
					case !errors.As(err, &refused):
						t.Error(err)
					}
				})
			}
			callers.Wait()
			if n := won.Load(); n != 1 {
				t.Errorf("%d of 8 suspended the tenant", n)
			}

			var suspended, resumed atomic.Int64
			for n := range 16 {
				callers.Go(func() {
					var err error
					count := &suspended
					if n%2 == 0 {
						_, err = d.Suspend(t.Context(), tenant.ID, "", eventlog.Origin{})
					} else {
						count = &resumed
						_, err = d.Resume(t.Context(), tenant.ID, eventlog.Origin{})
					}
					var refused *StateError
					switch {
					case err == nil:
						count.Add(1)
					case !errors.As(err, &refused):
						t.Error(err)
					}
				})
			}
			callers.Wait()
			want := map[int64]TenantState{0: TenantSuspended, 1: TenantActive}[resumed.Load()-suspended.Load()]
			if after, err := d.TenantByID(t.Context(), tenant.ID); err != nil || want == "" || after.State != want {
				t.Errorf("suspended %d times and resumed %d times: %q, %v", suspended.Load(), resumed.Load(), after.State, err)
			}
		})
	}
}

// The data of a tenant is deleted when its time has come, in steps, and no other data.
func TestPurge(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.name, func(t *testing.T) {
			d, db, c := openAt(t, backend.url(t))
			ctx := t.Context()
			gone, err := create(t, d, db, "gone", "https://gone.example.com")
			if err != nil {
				t.Fatal(err)
			}
			kept, err := create(t, d, db, "kept", "https://kept.example.com")
			if err != nil {
				t.Fatal(err)
			}
			// Rows of both: a log, and a table with other columns in its key.
			for _, statement := range []string{
				`CREATE TABLE things (name TEXT NOT NULL, tenant_id TEXT NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (name, tenant_id, n))`,
				`CREATE TABLE singles (tenant_id TEXT NOT NULL PRIMARY KEY)`,
			} {
				if _, err := db.Exec(ctx, statement); err != nil {
					t.Fatal(err)
				}
			}
			for _, tenant := range []Tenant{gone, kept} {
				if _, err := db.Exec(ctx, `INSERT INTO singles (tenant_id) VALUES ($1)`, tenant.ID); err != nil {
					t.Fatal(err)
				}
				if _, err := db.Exec(ctx, `
					WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500)
					INSERT INTO things (name, tenant_id, n) SELECT 'a', $1, n FROM numbers`, tenant.ID); err != nil {
					t.Fatal(err)
				}
			}
			rows := func(table string, tenant Tenant) (n int) {
				t.Helper()
				if err := db.QueryRow(ctx, `SELECT COUNT(*) FROM `+table+` WHERE tenant_id = $1`, tenant.ID).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			purge := func(things, singles int) Tenant {
				t.Helper()
				if err := d.Purge(ctx); err != nil {
					t.Fatal(err)
				}
				if a, b := rows("things", gone), rows("singles", gone); a != things || b != singles {
					t.Errorf("%d and %d rows are left, want %d and %d", a, b, things, singles)
				}
				now, err := d.TenantByID(ctx, gone.ID)
				if err != nil {
					t.Fatal(err)
				}
				return now
			}
			purge(2500, 1)
			if _, err := d.Decommission(ctx, gone.ID, eventlog.Origin{}); err != nil {
				t.Fatal(err)
			}
			c.now = c.now.Add(PurgeAfter - time.Second)
			purge(2500, 1)
			c.now = c.now.Add(time.Second)
			if after := purge(0, 0); after.PurgeAt.IsZero() {
				t.Error("the tenant counts as purged, although rows were there")
			}
			after := purge(0, 0)
			if !after.PurgeAt.IsZero() || after.Name != "" || after.Slug != "gone" || after.State != TenantDecommissioned {
				t.Errorf("%+v after the purge", after)
			}
			purge(0, 0)
			if a, b := rows("things", kept), rows("singles", kept); a != 2500 || b != 1 {
				t.Errorf("%d and %d rows of another tenant are left", a, b)
			}
			events, err := eventlog.Open(eventlog.Config{DB: db})
			if err != nil {
				t.Fatal(err)
			}
			logged, err := events.Read(ctx, gone.OrgID, 2, 10) // after those of the creation
			if err != nil || len(logged) != 2 || logged[1].Type != TenantPurgedEvent {
				t.Errorf("%+v, %v", logged, err)
			}
			if _, err := create(t, d, db, "gone", "https://other.example.com"); !errors.Is(err, ErrSlugTaken) {
				t.Errorf("the slug of a purged tenant: %v", err)
			}
		})
	}
}

func TestTenants(t *testing.T) {
	d, db, _ := open(t)
	for _, slug := range []string{"b", "c", "a"} {
		if _, err := create(t, d, db, slug, "https://"+slug+".example.com"); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for after := ""; ; {
		page, err := d.Tenants(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, tenant := range page {
			got, after = append(got, tenant.Slug), tenant.Slug
		}
		if len(page) < 2 {
			break
		}
	}
	if strings.Join(got, " ") != "a b c" {
		t.Errorf("%q", got)
	}
	o, err := d.OrganizationBySlug(t.Context(), "org-of-a")
	if err != nil || o.Name != "Org" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := d.OrganizationBySlug(t.Context(), "none"); !errors.Is(err, ErrOrganizationNotFound) {
		t.Errorf("%v", err)
	}
}
