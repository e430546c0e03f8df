package server

import (
	"context"
	"encoding/json"
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
	"stonetown/engine"
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
	mails sentMails
	mu    sync.Mutex
	ahead time.Duration
}

// sentMails keeps the messages that were sent.
type sentMails struct {
	mu   sync.Mutex
	sent []notify.Mail
}

func (m *sentMails) SendMail(_ context.Context, mail notify.Mail) error {
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

// eventually waits until the background work has done something.
func (d *deployment) eventually(what string, done func() bool) {
	d.t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("not in time: %s", what)
		}
	}
}

func (d *deployment) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Add(d.ahead)
}

func (d *deployment) later(by time.Duration) { d.mu.Lock(); d.ahead += by; d.mu.Unlock() }

// config configures a server on a database.
func (d *deployment) config(url string) Config {
	c := testConfig(d.t, "", 1)
	c.Database.URL, c.ControlURL, c.OpenOrganizations, c.Mail = url, "https://control.example.com", true, &d.mails
	c.Clock = d.clock
	return c
}

// databases are the backends of the tests, each with the URL of a new database.
var databases = map[string]func(testing.TB) string{
	"SQLite":     func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
	"PostgreSQL": pgtest.URL,
}

// onBackends runs a test on a deployment of each database.
func onBackends(t *testing.T, change func(*Config), test func(t *testing.T, d *deployment)) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			d := &deployment{t: t}
			c := d.config(url(t))
			if change != nil {
				change(&c)
			}
			d.open(c)
			stop := d.run()
			t.Cleanup(func() {
				stop()
				d.must(d.Close())
			})
			test(t, d)
		})
	}
}

// open starts a server.
func (d *deployment) open(c Config) {
	d.t.Helper()
	var err error
	d.Server, err = Open(d.t.Context(), c)
	d.must(err)
}

// run runs the background work of the server until it is stopped.
func (d *deployment) run() (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
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

// The creator of an organisation owns it. On a deployment that is not open, only owners create
// others.
func TestCreateOrganization(t *testing.T) {
	onBackends(t, func(c *Config) { c.OpenOrganizations = false }, func(t *testing.T, d *deployment) {
		ctx, m := t.Context(), d.Management
		first := d.user("first")
		_, err := m.CreateOrganization(ctx, first, "acme", "Acme")
		d.refused("forbidden", err)
		var org controlplane.Organization
		d.must(d.DB.Tx(ctx, func(tx *sqldb.Tx) (err error) {
			org, err = d.Organizations.CreateOrganization(ctx, tx, "acme", "Acme")
			return err
		}))
		for range 2 { // as every start of a server does
			d.must(m.Adopt(ctx, org.ID))
		}
		if got := d.member(org.ID, first); got.Role != management.Owner || got.Email != address("first") || got.Name != "first" || got.MFAEnrolled {
			t.Errorf("the first user is %+v", got)
		}
		first.CommitID = "commit_1"
		var ids []string
		for range 2 { // the second is the same request, sent again
			o, err := m.CreateOrganization(ctx, first, "other", "Other")
			d.must(err)
			ids = append(ids, o.ID)
		}
		if ids[0] != ids[1] {
			t.Errorf("one request created %v", ids)
		}
		first.CommitID = ""
		_, err = m.CreateOrganization(ctx, first, "other", "Other")
		d.refused("conflict", err)
		_, err = m.CreateOrganization(ctx, first, "Not a slug", "Other")
		if !errors.Is(err, controlplane.ErrSlugInvalid) {
			t.Error(err)
		}
		list, err := m.Organizations(ctx, first, nil, 10)
		if err != nil || len(list) != 2 || list[0].Slug != "other" || list[1].Slug != "acme" {
			t.Errorf("%+v, %v", list, err)
		}
		list, err = m.Organizations(ctx, first, &management.Position{At: list[0].CreatedAt, ID: list[0].ID}, 10)
		if err != nil || len(list) != 1 || list[0].Slug != "acme" {
			t.Errorf("the second page: %+v, %v", list, err)
		}
		want := []eventlog.Type{controlplane.OrganizationCreatedEvent, management.MemberJoinedEvent}
		if got := d.types(first, ids[0], management.EventFilter{}); !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
		unverified := d.user("unverified")
		_, err = d.Users.Update(ctx, controlplane.SystemTenant, unverified.Subject.ID, func(u *identity.User) { u.VerifyEmail(false) })
		d.must(err)
		d.refused("forbidden", func() error { _, err := m.CreateOrganization(ctx, unverified, "third", "Third"); return err }())
	})
}

// A user is in 100 organisations at most, so the list of them has all.
func TestMembershipLimit(t *testing.T) {
	onBackends(t, nil, func(t *testing.T, d *deployment) {
		ctx, m := t.Context(), d.Management
		org, owner, _ := d.organization("acme")
		busy := d.user("busy")
		for n := range 100 {
			_, err := d.DB.Exec(ctx, `INSERT INTO organization_members (org_id, id, user_id, invited_by, joined_at) VALUES ($1, 'mem_x', $2, '', 0)`, fmt.Sprint(n), busy.Subject.ID)
			d.must(err)
		}
		_, err := m.CreateOrganization(ctx, busy, "more", "More")
		d.refused("conflict", err)
		_, err = m.Add(ctx, org.ID, address("busy"), management.Viewer)
		d.refused("conflict", err)
		_, err = m.Invite(ctx, owner, org.ID, address("busy"), management.Viewer)
		d.must(err)
		token := d.token(address("busy"), 1)
		_, err = m.AcceptInvitation(ctx, busy, token)
		d.refused("conflict", err)
		_, err = d.DB.Exec(ctx, `DELETE FROM organization_members WHERE org_id = '7'`)
		d.must(err)
		_, err = m.AcceptInvitation(ctx, busy, token)
		d.must(err)
	})
}

// An organisation keeps an owner who is a user, also if all owners leave at the same time.
func TestLastOwner(t *testing.T) {
	onBackends(t, nil, func(t *testing.T, d *deployment) {
		ctx, m := t.Context(), d.Management
		org, owner, _ := d.organization("acme")
		only := d.member(org.ID, owner)
		d.refused("conflict", m.RemoveMember(ctx, owner, org.ID, only.ID))
		_, err := m.ChangeRole(ctx, owner, org.ID, only.ID, management.Viewer)
		d.refused("conflict", err)
		_, _, err = m.CreateServiceAccount(ctx, owner, org.ID, "robot", management.Owner)
		d.must(err)
		d.refused("conflict", m.RemoveMember(ctx, owner, org.ID, only.ID))

		owners := []management.Caller{owner}
		for i := range 4 {
			owners = append(owners, d.join(org.ID, owner, fmt.Sprintf("owner%d", i), management.Owner))
		}
		var callers sync.WaitGroup
		var mu sync.Mutex
		left := map[string]int{}
		for i, by := range owners {
			id := d.member(org.ID, by).ID
			callers.Go(func() {
				var err error
				if i%2 == 0 {
					err = m.RemoveMember(ctx, by, org.ID, id)
				} else {
					_, err = m.ChangeRole(ctx, by, org.ID, id, management.Viewer)
				}
				mu.Lock()
				defer mu.Unlock()
				left[refusal(err)]++
			})
		}
		callers.Wait()
		if left[""] != 4 || left["conflict"] != 1 {
			t.Errorf("of 5 owners that left: %v", left)
		}
	})
}

// An invitation is accepted once, by the verified address that it was sent to, while it is pending.
func TestInvitations(t *testing.T) {
	onBackends(t, nil, func(t *testing.T, d *deployment) {
		ctx, m := t.Context(), d.Management
		org, owner, others := d.organization("acme", management.Admin)
		ann, eve := d.user("ann"), d.user("eve")
		for email, want := range map[string]string{"": "invalid email", "ann": "invalid email", "Ann <ann@example.com>": "invalid email", address("owner-of-acme"): "conflict"} {
			_, err := m.Invite(ctx, owner, org.ID, email, management.Viewer)
			d.refused(want, err)
		}
		_, err := m.Invite(ctx, owner, org.ID, address("ann"), "emperor")
		d.refused("invalid role", err)

		i, err := m.Invite(ctx, owner, org.ID, "Ann@Example.com", management.Viewer)
		d.must(err)
		_, err = m.Invite(ctx, owner, org.ID, address("ann"), management.Admin)
		d.refused("conflict", err)
		first := d.token("Ann@Example.com", 1)
		_, err = m.ResendInvitation(ctx, owner, org.ID, i.ID)
		d.must(err)
		second := d.token("Ann@Example.com", 2)
		_, err = m.AcceptInvitation(ctx, ann, first)
		d.refused("not found", err) // the second mail replaced it
		_, err = m.AcceptInvitation(ctx, eve, second)
		d.refused("forbidden", err)
		_, err = m.AcceptInvitation(ctx, ann, "it_wrong")
		d.refused("not found", err)

		outcomes := make(chan string, 8)
		var callers sync.WaitGroup
		for range cap(outcomes) {
			callers.Go(func() {
				_, err := m.AcceptInvitation(ctx, ann, second)
				outcomes <- refusal(err)
			})
		}
		callers.Wait()
		close(outcomes)
		won := 0
		for outcome := range outcomes {
			switch outcome {
			case "":
				won++
			case "not found", "conflict":
			default:
				t.Errorf("accept: %q", outcome)
			}
		}
		if got := d.member(org.ID, ann); won != 1 || got.Role != management.Viewer || got.InvitedBy != owner.Subject.ID {
			t.Errorf("%d accepted; %+v", won, got)
		}
		if got, err := m.Invitation(ctx, owner, org.ID, i.ID); err != nil || got.State != management.InvitationAccepted || got.AcceptedAt.IsZero() {
			t.Errorf("%+v, %v", got, err)
		}
		d.refused("conflict", m.RevokeInvitation(ctx, owner, org.ID, i.ID))

		// One that has expired is gone, and another one takes its place.
		bob := d.user("bob")
		_, err = m.Invite(ctx, owner, org.ID, address("bob"), management.Operator)
		d.must(err)
		late := d.token(address("bob"), 1)
		d.later(8 * 24 * time.Hour)
		_, err = m.AcceptInvitation(ctx, bob, late)
		d.refused("not found", err)
		_, err = m.Invite(ctx, owner, org.ID, address("bob"), management.Operator)
		d.must(err)
		_, err = m.AcceptInvitation(ctx, bob, d.token(address("bob"), 2))
		d.must(err)
		list, err := m.Invitations(ctx, owner, org.ID, management.InvitationExpired, nil, 10)
		if err != nil || len(list) != 1 || list[0].Email != address("bob") {
			t.Errorf("expired: %+v, %v", list, err)
		}

		// Those of a member who loses the right to invite end.
		admin := others[management.Admin]
		by, err := m.Invite(ctx, admin, org.ID, address("eve"), management.Viewer)
		d.must(err)
		token := d.token(address("eve"), 1)
		_, err = m.ChangeRole(ctx, owner, org.ID, d.member(org.ID, admin).ID, management.Viewer)
		d.must(err)
		_, err = m.AcceptInvitation(ctx, eve, token)
		d.refused("not found", err)
		if got, err := m.Invitation(ctx, owner, org.ID, by.ID); err != nil || got.State != management.InvitationRevoked {
			t.Errorf("%+v, %v", got, err)
		}
		events := d.types(owner, org.ID, management.EventFilter{})
		for _, want := range []eventlog.Type{
			management.InvitationCreatedEvent, management.InvitationResentEvent, management.InvitationAcceptedEvent, management.InvitationExpiredEvent,
			management.InvitationRevokedEvent, management.MemberJoinedEvent, management.MemberRoleChangedEvent,
		} {
			if !slices.Contains(events, want) {
				t.Errorf("no event %s in %v", want, events)
			}
		}
		// The background ends those whose time is over.
		_, err = m.Invite(ctx, owner, org.ID, address("dave"), management.Viewer)
		d.must(err)
		before := len(d.types(owner, org.ID, management.EventFilter{Type: string(management.InvitationExpiredEvent)}))
		d.later(8 * 24 * time.Hour)
		d.eventually("an invitation expires", func() bool {
			return len(d.types(owner, org.ID, management.EventFilter{Type: string(management.InvitationExpiredEvent)})) > before
		})
		// A request to accept that is sent again has the same member.
		frank := d.user("frank")
		_, err = m.Invite(ctx, owner, org.ID, address("frank"), management.Viewer)
		d.must(err)
		token, frank.CommitID = d.token(address("frank"), 1), "commit_accept"
		var joined []string
		for range 2 {
			member, err := m.AcceptInvitation(ctx, frank, token)
			d.must(err)
			joined = append(joined, member.ID)
		}
		if joined[0] != joined[1] {
			t.Errorf("one request made the members %v", joined)
		}
		// A resent request to invite is one invitation.
		owner.CommitID = "commit_2"
		for range 2 {
			_, err := m.Invite(ctx, owner, org.ID, address("carol"), management.Viewer)
			d.must(err)
		}
		if list, err := m.Invitations(ctx, owner, org.ID, management.InvitationPending, nil, 10); err != nil || len(list) != 1 {
			t.Errorf("pending: %+v, %v", list, err)
		}
	})
}

// A tenant has the values of its request and the defaults of the deployment, and a repeated request
// returns a secret that works.
func TestCreateTenant(t *testing.T) {
	onBackends(t, func(c *Config) { c.MaxTenants, c.Regions = 3, []string{"eu", "us"} }, func(t *testing.T, d *deployment) {
		ctx, m := t.Context(), d.Management
		org, owner, _ := d.organization("acme")
		owner.CommitID = "commit_1"
		var secrets []string
		var created management.CreatedTenant
		for range 2 {
			var err error
			created, err = m.CreateTenant(ctx, owner, org.ID, management.NewTenant{Slug: "one", Name: "One"})
			d.must(err)
			secrets = append(secrets, created.ClientSecret)
		}
		if secrets[0] == "" || secrets[1] == "" || secrets[0] == secrets[1] {
			t.Errorf("secrets %q", secrets)
		}
		if created.BaseURL != "https://one.example.com" || created.Region != "eu" || created.State != controlplane.TenantActive || created.CreatedBy != owner.Subject.ID {
			t.Errorf("%+v", created.Tenant)
		}
		if found, err := d.Organizations.TenantByHost(ctx, "one.example.com"); err != nil || found.ID != created.ID {
			t.Errorf("%+v, %v", found, err)
		}
		owner.CommitID = ""
		for slug, want := range map[string]string{"one": "conflict", "": "slug", "control": "slug", "A": "slug"} {
			_, err := m.CreateTenant(ctx, owner, org.ID, management.NewTenant{Slug: slug, Name: "T"})
			if got := refusal(err); want == "slug" && !errors.Is(err, controlplane.ErrSlugInvalid) || want != "slug" && got != want {
				t.Errorf("slug %q: %v", slug, err)
			}
		}
		_, err := m.CreateTenant(ctx, owner, org.ID, management.NewTenant{Slug: "far", Name: "T", Region: "moon"})
		d.refused("invalid region", err)

		// A process died after the transaction of the creation.
		var left controlplane.Tenant
		d.must(d.DB.Tx(ctx, func(tx *sqldb.Tx) (err error) {
			left, err = d.Organizations.CreateTenant(ctx, tx, controlplane.NewTenant{OrgID: org.ID, Slug: "left", Name: "Left", BaseURL: "https://left.example.com", Provisioning: true})
			return err
		}))
		if found, err := d.Organizations.TenantByHost(ctx, "left.example.com"); err != nil || found.State != controlplane.TenantProvisioning {
			t.Errorf("%+v, %v", found, err)
		}
		_, err = m.SuspendTenant(ctx, owner, org.ID, left.ID, "")
		d.refused("conflict", err)
		d.later(time.Hour)
		d.must(m.Resume(ctx))
		if found, err := d.Organizations.TenantByHost(ctx, "left.example.com"); err != nil || found.State != controlplane.TenantActive {
			t.Errorf("after a restart: %+v, %v", found, err)
		}
		groups, err := d.Users.Groups(ctx, left.ID, "", "", nil, 10)
		if err != nil || len(groups) != 1 || groups[0].Slug != identity.AdministratorsSlug {
			t.Errorf("groups %+v, %v", groups, err)
		}
		_, err = m.CreateTenant(ctx, owner, org.ID, management.NewTenant{Slug: "three", Name: "T"})
		d.must(err)
		_, err = m.CreateTenant(ctx, owner, org.ID, management.NewTenant{Slug: "four", Name: "T"})
		d.refused("conflict", err)

		list, err := m.Tenants(ctx, owner, org.ID, controlplane.TenantActive, nil, 2)
		if err != nil || len(list) != 2 || list[0].Slug != "three" || list[1].Slug != "left" {
			t.Errorf("%+v, %v", list, err)
		}
		list, err = m.Tenants(ctx, owner, org.ID, "", &management.Position{At: list[1].CreatedAt, ID: list[1].ID}, 2)
		if err != nil || len(list) != 1 || list[0].ID != created.ID {
			t.Errorf("%+v, %v", list, err)
		}
		_, err = m.DecommissionTenant(ctx, owner, org.ID, created.ID, "two")
		d.refused("invalid confirm", err)
		want := []eventlog.Type{controlplane.TenantCreatedEvent}
		if got := d.types(owner, org.ID, management.EventFilter{TenantID: created.ID}); !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
		// Members of another organisation have no access, with the id of either.
		rivals, rival, _ := d.organization("rival")
		_, err = m.Tenant(ctx, rival, org.ID, created.ID)
		d.refused("no organisation", err)
		_, err = m.Tenant(ctx, rival, rivals.ID, created.ID)
		d.refused("not found", err)
		_, err = m.SuspendTenant(ctx, rival, rivals.ID, created.ID, "")
		d.refused("not found", err)
	})
}

// A service account has a role as a member has, and none after it is deleted.
func TestServiceAccounts(t *testing.T) {
	onBackends(t, nil, func(t *testing.T, d *deployment) {
		ctx, m := t.Context(), d.Management
		org, owner, _ := d.organization("acme")
		owner.CommitID = "commit_1"
		a, first, err := m.CreateServiceAccount(ctx, owner, org.ID, "CI", management.Operator)
		d.must(err)
		again, second, err := m.CreateServiceAccount(ctx, owner, org.ID, "CI", management.Operator)
		d.must(err)
		if again != a || first == "" || second == "" || first == second {
			t.Errorf("%+v with %q, and again %+v with %q", a, first, again, second)
		}
		owner.CommitID = ""
		robot := management.Caller{Subject: tuplestore.Subject{Type: schema.ApplicationType, ID: a.ClientID}}
		if got, err := m.Permissions(ctx, robot, org.ID); err != nil || !slices.Equal(got, []string{"read", "suspend_tenant", "open_console"}) {
			t.Errorf("an operator has %v, %v", got, err)
		}
		after, err := m.UpdateServiceAccount(ctx, owner, org.ID, a.ID, management.ServiceAccountChange{Role: new(management.Admin), Name: new("Deploy")})
		if err != nil || after.Role != management.Admin || after.Name != "Deploy" {
			t.Errorf("%+v, %v", after, err)
		}
		if got, err := m.Permissions(ctx, robot, org.ID); err != nil || !slices.Contains(got, "create_tenant") {
			t.Errorf("an admin has %v, %v", got, err)
		}
		_, err = m.UpdateServiceAccount(ctx, owner, org.ID, a.ID, management.ServiceAccountChange{Name: new("")})
		d.refused("invalid name", err)
		_, err = m.CreateOrganization(ctx, robot, "robots", "Robots")
		d.refused("forbidden", err)
		if list, err := m.Organizations(ctx, robot, nil, 10); err != nil || len(list) != 1 || list[0].ID != org.ID {
			t.Errorf("%+v, %v", list, err)
		}
		d.must(m.DeleteServiceAccount(ctx, owner, org.ID, a.ID))
		_, err = m.Organization(ctx, robot, org.ID)
		d.refused("no organisation", err)
		d.refused("not found", m.DeleteServiceAccount(ctx, owner, org.ID, a.ID))
		// What an interrupted deletion left is deleted.
		b, _, err := m.CreateServiceAccount(ctx, owner, org.ID, "CI", management.Operator)
		d.must(err)
		d.must(d.OAuth.Clients.Delete(ctx, controlplane.SystemTenant, b.ID, ""))
		d.must(m.DeleteServiceAccount(ctx, owner, org.ID, b.ID))
		if list, err := m.ServiceAccounts(ctx, owner, org.ID, nil, 10); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// A role is one more relation of the type, and stays at the next start.
func TestCustomRole(t *testing.T) {
	onBackends(t, nil, func(t *testing.T, d *deployment) {
		ctx, m := t.Context(), d.Management
		before, err := d.Engine.Type(ctx, controlplane.SystemTenant, "organization")
		d.must(err)
		d.must(m.Prepare(ctx))
		if again, err := d.Engine.Type(ctx, controlplane.SystemTenant, "organization"); err != nil || !again.UpdatedAt.Equal(before.UpdatedAt) {
			t.Errorf("a start defined the type again: %v", err)
		}
		org, owner, _ := d.organization("acme")
		custom := before
		custom.Relations = append(slices.Clone(custom.Relations), schema.Relation{Name: "auditor", Subjects: []schema.SubjectType{{Type: schema.UserType}}})
		for i, r := range custom.Relations {
			if r.Name == "read" {
				custom.Relations[i].Rewrites = append(slices.Clone(r.Rewrites), schema.Rewrite{Kind: schema.Computed, Relation: "auditor"})
			}
		}
		_, _, _, err = d.Engine.PutType(ctx, controlplane.SystemTenant, custom, engine.Origin{})
		d.must(err)
		d.must(m.Prepare(ctx))
		auditor := d.join(org.ID, owner, "auditor", "auditor")
		if got, err := m.Permissions(ctx, auditor, org.ID); err != nil || !slices.Equal(got, []string{"read"}) {
			t.Errorf("an auditor has %v, %v", got, err)
		}
		expanded, err := d.Engine.Expand(ctx, controlplane.SystemTenant, engine.ExpandRequest{
			Resource: tuplestore.Object{Type: "organization", ID: org.ID}, Action: "read",
		})
		d.must(err)
		if text, err := json.Marshal(expanded.Root); err != nil || !strings.Contains(string(text), auditor.Subject.ID) {
			t.Errorf("expand: %s, %v", text, err)
		}
		// The engine keeps a role that a member has. Without permissions, and then without the role,
		// a member can still get another one and be removed.
		second := d.join(org.ID, owner, "second", "auditor")
		_, _, err = m.CreateServiceAccount(ctx, owner, org.ID, "robot", "auditor") // a role for users
		d.refused("invalid role", err)
		invited := d.user("invited")
		invitation, err := m.Invite(ctx, owner, org.ID, address("invited"), "auditor")
		d.must(err)
		_, _, _, err = d.Engine.PutType(ctx, controlplane.SystemTenant, before, engine.Origin{})
		if used := (*engine.TypeInUseError)(nil); !errors.As(err, &used) {
			t.Errorf("the role of a member was removed: %v", err)
		}
		for i := range custom.Relations {
			if custom.Relations[i].Name == "read" {
				custom.Relations[i].Rewrites = before.Relations[i].Rewrites
			}
		}
		_, _, _, err = d.Engine.PutType(ctx, controlplane.SystemTenant, custom, engine.Origin{})
		d.must(err)
		_, err = m.Permissions(ctx, auditor, org.ID)
		d.refused("no organisation", err)
		members := map[string]management.Member{}
		list, err := m.Members(ctx, owner, org.ID, nil, 10)
		d.must(err)
		for _, one := range list {
			members[one.UserID] = one
		}
		for user, ofRole := range map[string]management.Role{auditor.Subject.ID: "auditor", second.Subject.ID: ""} {
			if ofRole == "" { // the operator has deleted the relation
				_, err := d.Engine.Write(ctx, controlplane.SystemTenant, engine.WriteRequest{Ops: []engine.WriteOp{{
					Delete: true, Resource: tuplestore.Object{Type: "organization", ID: org.ID}, Relation: "auditor", Subject: second.Subject,
				}}})
				d.must(err)
			}
			got, err := m.Member(ctx, owner, org.ID, members[user].ID)
			if err != nil || got.Role != ofRole {
				t.Errorf("%+v, %v", got, err)
			}
			got, err = m.ChangeRole(ctx, owner, org.ID, got.ID, management.Viewer)
			if err != nil || got.Role != management.Viewer {
				t.Errorf("%+v, %v", got, err)
			}
		}
		if got, err := m.Permissions(ctx, second, org.ID); err != nil || !slices.Equal(got, []string{"read"}) {
			t.Errorf("a viewer has %v, %v", got, err)
		}
		d.must(m.RemoveMember(ctx, owner, org.ID, members[second.Subject.ID].ID))
		// The role of an invitation can be removed.
		_, _, _, err = d.Engine.PutType(ctx, controlplane.SystemTenant, before, engine.Origin{})
		d.must(err)
		_, err = m.AcceptInvitation(ctx, invited, d.token(address("invited"), 1))
		d.refused("conflict", err)
		d.must(m.RevokeInvitation(ctx, owner, org.ID, invitation.ID))
	})
}
