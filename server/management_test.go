package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/controlplane"
	"stonetown/controlplane/management"
	"stonetown/identity"
	"stonetown/internal/eventlog"
	"stonetown/internal/notify"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// deployment is a server with a control plane, on one database.
type deployment struct {
	*Server
	t     *testing.T
	mails mails
	mu    sync.Mutex
	ahead time.Duration
}

// mails keeps the messages that were sent.
type mails struct {
	mu   sync.Mutex
	sent []notify.Mail
}

func (m *mails) SendMail(_ context.Context, mail notify.Mail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, mail)
	return nil
}

// token waits for the n-th invitation to an address, and returns the token of its link.
func (d *deployment) token(to string, n int) string {
	d.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		d.mails.mu.Lock()
		var found []string
		for _, m := range d.mails.sent {
			if _, rest, ok := strings.Cut(m.Text, "/invitation?token="); ok && m.To == to {
				token, _, _ := strings.Cut(rest, "\n")
				found = append(found, token)
			}
		}
		d.mails.mu.Unlock()
		if len(found) >= n {
			return found[n-1]
		}
	}
	d.t.Fatalf("%s was sent fewer than %d invitations", to, n)
	return ""
}

func (d *deployment) later(by time.Duration) { d.mu.Lock(); d.ahead += by; d.mu.Unlock() }

// onBackends runs a test on a deployment of each database.
func onBackends(t *testing.T, change func(*Config), test func(t *testing.T, d *deployment)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			d := &deployment{t: t}
			c := testConfig(t, "", 1)
			c.Database.URL, c.ControlURL, c.OpenOrganizations, c.Mail = url(t), "https://control.example.com", true, &d.mails
			c.Clock = func() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return time.Now().Add(d.ahead) }
			if change != nil {
				change(&c)
			}
			var err error
			if d.Server, err = Open(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { d.Run(ctx) })
			t.Cleanup(func() {
				stop()
				running.Wait()
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, d)
		})
	}
}

// user creates a user of the system tenant with a verified address.
func (d *deployment) user(name string) management.Caller {
	d.t.Helper()
	var u identity.User
	err := d.DB.Tx(d.t.Context(), func(tx *sqldb.Tx) (err error) {
		u, err = d.Users.CreateUser(d.t.Context(), tx, controlplane.SystemTenant, identity.NewUser{
			Email: address(name), EmailVerified: true, Profile: identity.Profile{Name: name},
		})
		return err
	})
	d.must(err)
	return management.Caller{Subject: tuplestore.Subject{Type: schema.UserType, ID: u.ID}}
}

func address(name string) string { return name + "@example.com" }

func (d *deployment) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// organization creates an organisation, and members with some roles.
func (d *deployment) organization(slug string, roles ...management.Role) (org controlplane.Organization, owner management.Caller, others map[management.Role]management.Caller) {
	d.t.Helper()
	ctx := d.t.Context()
	owner = d.user("owner-of-" + slug)
	org, err := d.Management.CreateOrganization(ctx, owner, slug, "Organisation "+slug)
	d.must(err)
	others = map[management.Role]management.Caller{}
	for i, role := range roles {
		others[role] = d.join(org.ID, owner, fmt.Sprintf("%s-%d-of-%s", role, i, slug), role)
	}
	return org, owner, others
}

// join makes a new user a member by an invitation.
func (d *deployment) join(orgID string, by management.Caller, name string, role management.Role) management.Caller {
	d.t.Helper()
	member := d.user(name)
	_, err := d.Management.Invite(d.t.Context(), by, orgID, address(name), role)
	d.must(err)
	_, err = d.Management.AcceptInvitation(d.t.Context(), member, d.token(address(name), 1))
	d.must(err)
	return member
}

// member returns the member that a caller is.
func (d *deployment) member(orgID string, c management.Caller) management.Member {
	d.t.Helper()
	list, err := d.Management.Members(d.t.Context(), c, orgID, nil, 250)
	d.must(err)
	for _, m := range list {
		if m.UserID == c.Subject.ID {
			return m
		}
	}
	d.t.Fatalf("%s is no member", c.Subject.ID)
	return management.Member{}
}

// refusal names the kind of an error.
func refusal(err error) string {
	var forbidden *management.ForbiddenError
	var conflict *management.ConflictError
	var field *management.FieldError
	var state *controlplane.StateError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &forbidden):
		return "forbidden"
	case errors.As(err, &conflict), errors.As(err, &state), errors.Is(err, controlplane.ErrSlugTaken):
		return "conflict"
	case errors.As(err, &field):
		return "invalid " + field.Field
	case errors.Is(err, management.ErrOrganizationNotFound):
		return "no organisation"
	case errors.Is(err, management.ErrMemberNotFound), errors.Is(err, management.ErrTenantNotFound), errors.Is(err, management.ErrInvitationNotFound), errors.Is(err, management.ErrServiceAccountNotFound):
		return "not found"
	}
	return err.Error()
}

func (d *deployment) refused(want string, err error) {
	d.t.Helper()
	if got := refusal(err); got != want {
		d.t.Errorf("%q, want %q", got, want)
	}
}

// types lists the types of the events of an organisation, the oldest first.
func (d *deployment) types(by management.Caller, orgID string, f management.EventFilter) (types []eventlog.Type) {
	d.t.Helper()
	list, err := d.Management.Events(d.t.Context(), by, orgID, f, 0, 250)
	d.must(err)
	for _, e := range slices.Backward(list) {
		types = append(types, e.Type)
	}
	return types
}

// Each role permits what the table of the documentation says, and another user does not learn that
// the organisation exists.
func TestRoles(t *testing.T) {
	onBackends(t, nil, func(t *testing.T, d *deployment) {
		ctx, m := t.Context(), d.Management
		org, owner, others := d.organization("acme", management.Admin, management.Operator, management.Viewer)
		others[management.Owner] = owner
		others["stranger"] = d.user("stranger")
		_, rival, _ := d.organization("rival")
		others["rival"] = rival
		serial := 0
		name := func() string { serial++; return fmt.Sprintf("t%d", serial) }
		tenant := func() string {
			created, err := m.CreateTenant(ctx, owner, org.ID, management.NewTenant{Slug: name(), Name: "T"})
			d.must(err)
			return created.ID
		}
		viewer := func() string {
			name := name()
			return d.member(org.ID, d.join(org.ID, owner, name, management.Viewer)).ID
		}
		extra := func() string {
			name := name()
			return d.member(org.ID, d.join(org.ID, owner, name, management.Owner)).ID
		}
		account := func(role management.Role) string {
			a, _, err := m.CreateServiceAccount(ctx, owner, org.ID, name(), role)
			d.must(err)
			return a.ID
		}
		invitation := func(role management.Role) string {
			i, err := m.Invite(ctx, owner, org.ID, address(name()), role)
			d.must(err)
			return i.ID
		}
		for _, test := range []struct {
			what    string
			allowed string // the first letters of the roles
			do      func(by management.Caller) error
		}{
			{"read organisation", "oapv", func(by management.Caller) error { _, err := m.Organization(ctx, by, org.ID); return err }},
			{"read permissions", "oapv", func(by management.Caller) error { _, err := m.Permissions(ctx, by, org.ID); return err }},
			{"list tenants", "oapv", func(by management.Caller) error { _, err := m.Tenants(ctx, by, org.ID, "", nil, 10); return err }},
			{"read tenant", "oapv", func(by management.Caller) error { _, err := m.Tenant(ctx, by, org.ID, tenant()); return err }},
			{"list members", "oapv", func(by management.Caller) error { _, err := m.Members(ctx, by, org.ID, nil, 10); return err }},
			{"list invitations", "oapv", func(by management.Caller) error { _, err := m.Invitations(ctx, by, org.ID, "", nil, 10); return err }},
			{"list service accounts", "oapv", func(by management.Caller) error { _, err := m.ServiceAccounts(ctx, by, org.ID, nil, 10); return err }},
			{"list events", "oapv", func(by management.Caller) error {
				_, err := m.Events(ctx, by, org.ID, management.EventFilter{}, 0, 10)
				return err
			}},
			{"create tenant", "oa", func(by management.Caller) error {
				_, err := m.CreateTenant(ctx, by, org.ID, management.NewTenant{Slug: name(), Name: "T"})
				return err
			}},
			{"rename tenant", "oa", func(by management.Caller) error {
				_, err := m.RenameTenant(ctx, by, org.ID, tenant(), name())
				return err
			}},
			{"suspend tenant", "oap", func(by management.Caller) error {
				_, err := m.SuspendTenant(ctx, by, org.ID, tenant(), "late")
				return err
			}},
			{"resume tenant", "oap", func(by management.Caller) error {
				id := tenant()
				_, err := m.SuspendTenant(ctx, owner, org.ID, id, "")
				d.must(err)
				_, err = m.ResumeTenant(ctx, by, org.ID, id)
				return err
			}},
			{"decommission tenant", "o", func(by management.Caller) error {
				created, err := m.CreateTenant(ctx, owner, org.ID, management.NewTenant{Slug: name(), Name: "T"})
				d.must(err)
				_, err = m.DecommissionTenant(ctx, by, org.ID, created.ID, created.Slug)
				return err
			}},
			{"rename organisation", "o", func(by management.Caller) error {
				_, err := m.UpdateOrganization(ctx, by, org.ID, func(o *controlplane.Organization) { o.Name = name() })
				return err
			}},
			{"invite a viewer", "oa", func(by management.Caller) error {
				_, err := m.Invite(ctx, by, org.ID, address(name()), management.Viewer)
				return err
			}},
			{"invite an owner", "o", func(by management.Caller) error {
				_, err := m.Invite(ctx, by, org.ID, address(name()), management.Owner)
				return err
			}},
			{"resend an invitation", "oa", func(by management.Caller) error {
				_, err := m.ResendInvitation(ctx, by, org.ID, invitation(management.Viewer))
				return err
			}},
			{"revoke an invitation", "oa", func(by management.Caller) error {
				return m.RevokeInvitation(ctx, by, org.ID, invitation(management.Viewer))
			}},
			{"revoke an invitation of an owner", "o", func(by management.Caller) error {
				return m.RevokeInvitation(ctx, by, org.ID, invitation(management.Owner))
			}},
			{"give a role", "oa", func(by management.Caller) error {
				_, err := m.ChangeRole(ctx, by, org.ID, viewer(), management.Operator)
				return err
			}},
			{"give the role owner", "o", func(by management.Caller) error {
				_, err := m.ChangeRole(ctx, by, org.ID, viewer(), management.Owner)
				return err
			}},
			{"take the role owner", "o", func(by management.Caller) error {
				_, err := m.ChangeRole(ctx, by, org.ID, extra(), management.Viewer)
				return err
			}},
			{"remove a member", "oa", func(by management.Caller) error { return m.RemoveMember(ctx, by, org.ID, viewer()) }},
			{"remove an owner", "o", func(by management.Caller) error { return m.RemoveMember(ctx, by, org.ID, extra()) }},
			{"create a service account", "oa", func(by management.Caller) error {
				_, _, err := m.CreateServiceAccount(ctx, by, org.ID, name(), management.Admin)
				return err
			}},
			{"create a service account that owns", "o", func(by management.Caller) error {
				_, _, err := m.CreateServiceAccount(ctx, by, org.ID, name(), management.Owner)
				return err
			}},
			{"rotate a secret", "oa", func(by management.Caller) error {
				_, err := m.RotateServiceAccountSecret(ctx, by, org.ID, account(management.Admin))
				return err
			}},
			{"rotate a secret of an owner", "o", func(by management.Caller) error {
				_, err := m.RotateServiceAccountSecret(ctx, by, org.ID, account(management.Owner))
				return err
			}},
			{"rename a service account", "oa", func(by management.Caller) error {
				_, err := m.UpdateServiceAccount(ctx, by, org.ID, account(management.Viewer), management.ServiceAccountChange{Name: new(name())})
				return err
			}},
			{"delete a service account", "oa", func(by management.Caller) error {
				return m.DeleteServiceAccount(ctx, by, org.ID, account(management.Viewer))
			}},
		} {
			for role, letter := range map[management.Role]string{management.Owner: "o", management.Admin: "a", management.Operator: "p", management.Viewer: "v", "stranger": "-", "rival": "-"} {
				want := "forbidden"
				switch {
				case letter == "-":
					want = "no organisation"
				case strings.Contains(test.allowed, letter):
					want = ""
				}
				if got := refusal(test.do(others[role])); got != want {
					t.Errorf("%s, %s: %q, want %q", role, test.what, got, want)
				}
			}
		}
	})
}
