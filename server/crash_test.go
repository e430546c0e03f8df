package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"stonetown/controlplane"
	"stonetown/controlplane/management"
	"stonetown/identity"
	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

// line is the connection of a server to its database, which can be cut as the death of the server
// does.
type line struct {
	url string
	// cutAfter lets n more steps pass: commits on SQLite, which are all that its file shows of a
	// process that died, and batches of statements on PostgreSQL. The channel is closed at the next
	// one.
	cutAfter func(n int) (cut <-chan struct{})
	mend     func()
}

// lines opens a line to a new database of each kind.
var lines = map[string]func(t *testing.T) line{
	"SQLite": func(t *testing.T) line {
		url := databases["SQLite"](t)
		c := new(commits)
		path := strings.TrimPrefix(url, "sqlite:")
		counted.Store(path, c)
		t.Cleanup(func() { counted.Delete(path) })
		return line{url, c.refuseAfter, c.allow}
	},
	"PostgreSQL": func(t *testing.T) line {
		faulty := pgtest.NewFaulty(t, databases["PostgreSQL"](t))
		return line{faulty.URL, faulty.DropAfter, faulty.Heal}
	},
}

// commits refuses the commits of an SQLite database after some of them.
type commits struct {
	mu    sync.Mutex
	left  int
	first chan struct{} // is closed when the first one is refused; nil: all are allowed
}

// counted has the commits to count, by the paths of databases.
var counted sync.Map

func init() {
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, dsn string) error {
		u, err := url.Parse(dsn)
		if err != nil {
			return err
		}
		if c, ok := counted.Load(u.Path); ok {
			conn.(sqlite.HookRegisterer).RegisterCommitHook(c.(*commits).commit)
		}
		return nil
	})
}

// commit returns zero for a commit that is allowed.
func (c *commits) commit() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == nil {
		return 0
	}
	if c.left--; c.left >= 0 {
		return 0
	}
	if c.left == -1 {
		close(c.first)
	}
	return 1
}

func (c *commits) refuseAfter(n int) (refused <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.first = n, make(chan struct{})
	return c.first
}

func (c *commits) allow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = nil
}

// crash is an operation on servers that die.
type crash struct {
	// prepare makes what the n-th operation needs.
	prepare func(d *deployment, n int)
	// operation is stopped after n steps.
	operation func(ctx context.Context, d *deployment, n int) error
	// check examines a server that was started after the n-th operation.
	check func(d *deployment, n int)
	// done is called after the first operation that was not stopped.
	done func(d *deployment)
}

// onLines runs an operation on servers that die after no step, after the first, after the second
// and so on, until one does not die. begin returns the operation for one database.
func onLines(t *testing.T, begin func() crash) {
	for name, open := range lines {
		t.Run(name, func(t *testing.T) {
			l, d, op := open(t), &deployment{t: t}, begin()
			c := d.config(l.url)
			c.MaxTenants = 1000
			d.open(c)
			defer func() { d.must(d.Close()) }()
			for n, dead := 0, true; dead; n++ {
				op.prepare(d, n)
				cut, ended := l.cutAfter(n), make(chan error, 1)
				go func() { ended <- op.operation(t.Context(), d, n) }()
				select {
				case err := <-ended:
					ended <- err
				case <-cut:
				}
				closed := d.Close()
				err := <-ended
				select {
				case <-cut:
				default:
					dead = false
					d.must(errors.Join(err, closed))
				}
				l.mend()
				d.open(c)
				if op.check(d, n); t.Failed() {
					t.Fatalf("after a crash at step %d", n)
				}
				if !dead {
					t.Logf("%d steps", n)
				}
			}
			op.done(d)
		})
	}
}

// rows counts the rows of a tenant, by table.
func (d *deployment) rows(tenantID string) map[string]int {
	d.t.Helper()
	tables, err := d.DB.TenantTables(d.t.Context())
	d.must(err)
	if len(tables) < 40 {
		d.t.Fatalf("only %d tables have rows of tenants", len(tables))
	}
	counts := map[string]int{}
	for _, table := range tables {
		if n := d.count(fmt.Sprintf(`SELECT COUNT(*) FROM "%s" WHERE %s = $1`, table.Name, table.Column), table.Tenant(tenantID)); n > 0 {
			counts[table.Name] = n
		}
	}
	return counts
}

// count returns the number that a query selects.
func (d *deployment) count(query string, args ...any) (n int) {
	d.t.Helper()
	d.must(d.DB.QueryRow(d.t.Context(), query, args...).Scan(&n))
	return n
}

// bearer gets an access token by client credentials; empty if they are refused.
func (d *deployment) bearer(h http.Handler, baseURL, clientID, secret string) string {
	d.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {secret}}
	r := httptest.NewRequestWithContext(d.t.Context(), "POST", baseURL+"/oauth2/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var body struct {
		AccessToken string `json:"access_token"`
	}
	d.must(json.Unmarshal(w.Body.Bytes(), &body))
	return body.AccessToken
}

// status returns the status of a GET request.
func (d *deployment) status(h http.Handler, target, bearer string) int {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), "GET", target, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+bearer)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// A tenant whose creation was interrupted becomes active by itself, or does not exist. The request
// that is sent again has the credentials of its administration.
func TestCreateTenantCrash(t *testing.T) {
	onLines(t, func() crash {
		var org controlplane.Organization
		var owner management.Caller
		outcomes := map[controlplane.TenantState]int{}
		slug := func(n int) string { return fmt.Sprintf("t%d", n) }
		create := func(ctx context.Context, d *deployment, n int) (management.CreatedTenant, error) {
			return d.Management.CreateTenant(ctx, once(owner, n), org.ID, management.NewTenant{Slug: slug(n), Name: "T"})
		}
		return crash{
			prepare: func(d *deployment, n int) {
				if n == 0 {
					org, owner, _ = d.organization("acme")
				}
			},
			operation: func(ctx context.Context, d *deployment, n int) error {
				_, err := create(ctx, d, n)
				return err
			},
			check: func(d *deployment, n int) {
				ctx := d.t.Context()
				state := func() controlplane.TenantState {
					found, err := d.Organizations.TenantBySlug(ctx, slug(n))
					if !errors.Is(err, controlplane.ErrTenantNotFound) {
						d.must(err)
					}
					return found.State
				}
				left := state()
				outcomes[left]++
				if left == controlplane.TenantProvisioning {
					d.later(time.Minute)
					stop := d.run()
					d.eventually("the tenant is active", func() bool { return state() == controlplane.TenantActive })
					stop()
				}
				created, err := create(ctx, d, n)
				d.must(err)
				h, err := d.Handler()
				d.must(err)
				token := d.bearer(h, created.BaseURL, created.ClientID, created.ClientSecret)
				if status := d.status(h, created.BaseURL+"/api/v1/settings", token); created.State != controlplane.TenantActive || status != http.StatusOK {
					d.t.Errorf("the tenant is %s; its settings are answered with %d", created.State, status)
				}
				groups, err := d.Users.Groups(ctx, created.ID, "", "", nil, 10)
				if err != nil || len(groups) != 1 || groups[0].Slug != identity.AdministratorsSlug {
					d.t.Errorf("groups %+v, %v", groups, err)
				}
				if got := d.types(owner, org.ID, management.EventFilter{TenantID: created.ID}); !slices.Equal(got, []eventlog.Type{controlplane.TenantCreatedEvent}) {
					d.t.Errorf("events %v", got)
				}
				if got := d.count(`SELECT COUNT(DISTINCT tenant_id) FROM applications`); got != n+1 {
					d.t.Errorf("%d tenants have applications, and %d exist", got, n+1)
				}
			},
			done: func(d *deployment) {
				for _, state := range []controlplane.TenantState{"", controlplane.TenantProvisioning, controlplane.TenantActive} {
					if outcomes[state] == 0 {
						d.t.Errorf("no crash left a tenant that is %q: %v", state, outcomes)
					}
				}
			},
		}
	})
}

// A purge that was interrupted goes on, until no table has a row of the tenant. Of two tenants one
// is purged.
func TestPurgeCrash(t *testing.T) {
	for name, open := range lines {
		t.Run(name, func(t *testing.T) {
			l, d := open(t), &deployment{t: t}
			d.open(d.config(l.url))
			defer func() { d.must(d.Close()) }()
			ctx := t.Context()
			org, owner, _ := d.organization("acme")
			h, err := d.Handler()
			d.must(err)
			var tenants []management.CreatedTenant
			for _, slug := range []string{"gone", "kept"} {
				created, err := d.Management.CreateTenant(ctx, owner, org.ID, management.NewTenant{Slug: slug, Name: "T"})
				d.must(err)
				if d.bearer(h, created.BaseURL, created.ClientID, created.ClientSecret) == "" { // it makes keys
					t.Error("no token")
				}
				d.must(d.DB.Tx(ctx, func(tx *sqldb.Tx) error {
					_, err := d.Users.CreateUser(ctx, tx, created.ID, identity.NewUser{Email: address("ann"), EmailVerified: true})
					return err
				}))
				tenants = append(tenants, created)
			}
			gone, kept := tenants[0], tenants[1]
			_, err = d.Management.DecommissionTenant(ctx, owner, org.ID, gone.ID, gone.Slug)
			d.must(err)
			d.later(controlplane.PurgeAfter)
			of := d.rows(kept.ID)
			if left := d.rows(gone.ID); len(left) < 8 {
				t.Errorf("only %d tables have rows of the tenant: %v", len(left), left)
			}
			pending := func() bool { return d.count(`SELECT COUNT(*) FROM tenants WHERE purge_at > 0`) == 1 }
			n := 0
			for ; pending(); n++ { // each crash leaves the next purge less to delete
				d.must(d.Close())
				d.Server = new(Server) // a process that does nothing else
				d.DB, err = sqldb.Open(ctx, sqldb.Config{URL: l.url})
				d.must(err)
				d.Organizations, err = controlplane.New(controlplane.Config{DB: d.DB, Clock: d.clock})
				d.must(err)
				cut := l.cutAfter(n)
				err := d.Organizations.Purge(ctx)
				l.mend()
				select {
				case <-cut:
				default:
					d.must(err)
				}
			}
			t.Logf("%d steps", n)
			if n < 50 {
				t.Errorf("a purge has only %d steps", n)
			}
			if left := d.rows(gone.ID); len(left) > 0 {
				t.Errorf("the tenant is purged and has the rows %v", left)
			}
			if left := d.rows(kept.ID); !maps.Equal(left, of) {
				t.Errorf("another tenant had the rows %v and has %v", of, left)
			}
			if got := d.count(`SELECT COUNT(*) FROM events WHERE type = $1`, string(controlplane.TenantPurgedEvent)); got != 1 {
				t.Errorf("%d events of the purge", got)
			}
		})
	}
}

// once is a caller with a request that is the same whenever it is sent.
func once(by management.Caller, n int) management.Caller {
	by.CommitID = fmt.Sprintf("commit_%s_%d", by.Subject.ID, n)
	return by
}

// An organisation whose creation was interrupted has its owner, or does not exist.
func TestCreateOrganizationCrash(t *testing.T) {
	onLines(t, func() crash {
		var founder management.Caller
		create := func(ctx context.Context, d *deployment, n int) (controlplane.Organization, error) {
			return d.Management.CreateOrganization(ctx, once(founder, n), fmt.Sprintf("org%d", n), "Organisation")
		}
		never := 0
		return crash{
			prepare: func(d *deployment, n int) { founder = d.user(fmt.Sprintf("founder%d", n)) },
			operation: func(ctx context.Context, d *deployment, n int) error {
				_, err := create(ctx, d, n)
				return err
			},
			check: func(d *deployment, n int) {
				ctx := d.t.Context()
				list, err := d.Management.Organizations(ctx, founder, nil, 10)
				d.must(err)
				if exists := d.count(`SELECT COUNT(*) FROM organizations WHERE slug = $1`, fmt.Sprintf("org%d", n)); exists != len(list) {
					d.t.Errorf("%d organisations exist, and their founder owns %d", exists, len(list))
				} else if exists == 0 {
					never++
				}
				created, err := create(ctx, d, n)
				d.must(err)
				if m := d.member(created.ID, founder); m.Role != management.Owner {
					d.t.Errorf("the founder is %+v", m)
				}
				want := []eventlog.Type{controlplane.OrganizationCreatedEvent, management.MemberJoinedEvent}
				if got := d.types(founder, created.ID, management.EventFilter{}); !slices.Equal(got, want) {
					d.t.Errorf("events %v, want %v", got, want)
				}
			},
			done: func(d *deployment) {
				if never == 0 {
					d.t.Error("no crash prevented an organisation")
				}
			},
		}
	})
}

// An invitation that was being accepted has made a member, or can still be accepted.
func TestAcceptInvitationCrash(t *testing.T) {
	onLines(t, func() crash {
		var org controlplane.Organization
		var owner, guest management.Caller
		var token string
		accept := func(ctx context.Context, d *deployment, n int) error {
			_, err := d.Management.AcceptInvitation(ctx, once(guest, n), token)
			return err
		}
		never := 0
		return crash{
			prepare: func(d *deployment, n int) {
				stop := d.run() // it sends the invitation
				defer stop()
				if n == 0 {
					org, owner, _ = d.organization("acme")
				}
				name := fmt.Sprintf("guest%d", n)
				guest = d.user(name)
				_, err := d.Management.Invite(d.t.Context(), owner, org.ID, address(name), management.Viewer)
				d.must(err)
				token = d.token(address(name), 1)
			},
			operation: accept,
			check: func(d *deployment, n int) {
				ctx := d.t.Context()
				members := func() int {
					return d.count(`SELECT COUNT(*) FROM organization_members WHERE user_id = $1`, guest.Subject.ID)
				}
				_, err := d.Management.Permissions(ctx, guest, org.ID)
				if want := map[int]string{0: "no organisation", 1: ""}[members()]; refusal(err) != want {
					d.t.Errorf("%d members, and their permissions: %v", members(), err)
				} else if want != "" {
					never++
				}
				d.must(accept(ctx, d, n))
				if m := d.member(org.ID, guest); m.Role != management.Viewer || members() != 1 {
					d.t.Errorf("%d members; %+v", members(), m)
				}
				if pending, err := d.Management.Invitations(ctx, owner, org.ID, management.InvitationPending, nil, 10); err != nil || len(pending) > 0 {
					d.t.Errorf("pending: %+v, %v", pending, err)
				}
				joined := d.types(owner, org.ID, management.EventFilter{Type: string(management.MemberJoinedEvent)})
				if len(joined) != n+2 {
					d.t.Errorf("%d events of %d members", len(joined), n+2)
				}
			},
			done: func(d *deployment) {
				if never == 0 {
					d.t.Error("no crash prevented a member")
				}
			},
		}
	})
}

// A service account whose creation was interrupted works when the request is sent again, and one
// whose deletion was interrupted is gone.
func TestServiceAccountCrash(t *testing.T) {
	var org controlplane.Organization
	var owner management.Caller
	var account management.ServiceAccount
	bearer := func(d *deployment, secret string) string {
		d.t.Helper()
		h, err := d.Handler()
		d.must(err)
		return d.bearer(h, "https://control.example.com", account.ClientID, secret)
	}
	found := func(d *deployment) [3]int {
		d.t.Helper()
		return [3]int{
			d.count(`SELECT COUNT(*) FROM service_accounts`), d.count(`SELECT COUNT(*) FROM applications`),
			d.count(`SELECT COUNT(*) FROM tuples WHERE object LIKE 'organization:%' AND subject LIKE 'application:%'`),
		}
	}
	create := func(ctx context.Context, d *deployment, n int) (secret string, err error) {
		account, secret, err = d.Management.CreateServiceAccount(ctx, once(owner, n), org.ID, "CI", management.Viewer)
		return secret, err
	}
	prepare := func(d *deployment, n int) {
		if n == 0 {
			org, owner, _ = d.organization("acme")
		}
	}
	t.Run("create", func(t *testing.T) {
		onLines(t, func() crash {
			return crash{
				prepare: prepare,
				operation: func(ctx context.Context, d *deployment, n int) error {
					_, err := create(ctx, d, n)
					return err
				},
				check: func(d *deployment, n int) {
					if got := found(d); got != [3]int{n, n, n} && got != [3]int{n + 1, n + 1, n + 1} {
						d.t.Errorf("rows %v after %d creations", got, n+1)
					}
					secret, err := create(d.t.Context(), d, n)
					d.must(err)
					if got := found(d); got != [3]int{n + 1, n + 1, n + 1} || bearer(d, secret) == "" {
						d.t.Errorf("rows %v after %d creations", got, n+1)
					}
				},
				done: func(*deployment) {},
			}
		})
	})
	t.Run("delete", func(t *testing.T) {
		onLines(t, func() crash {
			var secret string
			return crash{
				prepare: func(d *deployment, n int) {
					prepare(d, n)
					var err error
					secret, err = create(d.t.Context(), d, n)
					d.must(err)
				},
				operation: func(ctx context.Context, d *deployment, _ int) error {
					return d.Management.DeleteServiceAccount(ctx, owner, org.ID, account.ID)
				},
				check: func(d *deployment, n int) {
					err := d.Management.DeleteServiceAccount(d.t.Context(), owner, org.ID, account.ID)
					if !errors.Is(err, management.ErrServiceAccountNotFound) {
						d.must(err)
					}
					if got := found(d); got != [3]int{} || bearer(d, secret) != "" {
						d.t.Errorf("rows %v are left", got)
					}
					events := d.types(owner, org.ID, management.EventFilter{Type: string(management.ServiceAccountDeletedEvent)})
					if len(events) != n+1 {
						d.t.Errorf("%d events of %d deletions", len(events), n+1)
					}
				},
				done: func(*deployment) {},
			}
		})
	})
}
