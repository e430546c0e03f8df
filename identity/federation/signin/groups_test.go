package signin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stonetown/engine"
	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/federation"
	"stonetown/identity/onetime"
	"stonetown/identity/password/breached"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const tenant = "tnt_a"

// members is a service with a directory and its engine, and a user who signs in.
type members struct {
	testing.TB
	*Service
	directory *identity.Directory
	writes    int // by sign-ins
	user      identity.User
	log       *bytes.Buffer
}

// counted is a directory that counts writes.
type counted struct {
	*identity.Directory
	writes *int
}

func (c counted) AddMembers(ctx context.Context, tenantID, groupID string, userIDs []string, commitID string) (map[string]identity.Outcome, error) {
	*c.writes++
	return c.Directory.AddMembers(ctx, tenantID, groupID, userIDs, commitID)
}

func (c counted) RemoveMembers(ctx context.Context, tenantID, groupID string, userIDs []string, commitID string) (map[string]identity.Outcome, error) {
	*c.writes++
	return c.Directory.RemoveMembers(ctx, tenantID, groupID, userIDs, commitID)
}

// anyScope is a registry that has every scope.
type anyScope struct{}

func (anyScope) UnknownScopes(context.Context, *sqldb.Tx, string, []string) ([]string, error) {
	return nil, nil
}

func onEach(t *testing.T, test func(m *members)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			m := &members{TB: t, log: new(bytes.Buffer)}
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url(t)})
			m.must(err)
			t.Cleanup(func() { db.Close() })
			m.must(db.Migrate(t.Context(), sqlstore.Migrations(), identity.Migrations(), session.Migrations(), onetime.Migrations(), factor.Migrations(), external.Migrations(), eventlog.Migrations()))
			store, err := sqlstore.New(sqlstore.Config{DB: db})
			m.must(err)
			t.Cleanup(func() { store.Close() })
			e, err := engine.New(engine.Config{Store: store})
			m.must(err)
			t.Cleanup(e.Close)
			m.directory, err = identity.New(identity.Config{
				DB: db, Relations: e, Authority: authority.New(e, []string{"groups:write", "users:write"}), Breached: breached.None{}, Scopes: anyScope{},
				Verification: identity.NoVerification{}, Logger: slog.New(slog.DiscardHandler),
			})
			m.must(err)
			m.Service = &Service{Config: Config{Groups: counted{m.directory, &m.writes}, Logger: slog.New(slog.NewTextHandler(m.log, nil))}}
			m.user, err = m.directory.Create(t.Context(), tenant, identity.NewUser{Email: "ann@example.com", EmailVerified: true})
			m.must(err)
			test(m)
		})
	}
}

func (m *members) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// group adds a group with scopes.
func (m *members) group(slug string, scopes ...string) string {
	m.Helper()
	g, err := m.directory.CreateGroup(m.Context(), tenant, identity.NewGroup{Slug: slug, Name: slug, Scopes: scopes}, "")
	m.must(err)
	return g.ID
}

// joins makes the user a member, as an administrator does.
func (m *members) joins(groupID string) {
	m.Helper()
	_, err := m.directory.AddMembers(m.Context(), tenant, groupID, []string{m.user.ID}, "")
	m.must(err)
}

// signIn changes the groups at a sign-in for which the provider sends values.
func (m *members) signIn(ctx context.Context, c federation.Connection, values ...any) error {
	m.Helper()
	u, _, err := c.User(map[string]any{"sub": "1", "groups": values})
	m.must(err)
	return m.joinGroups(ctx, tenant, c, m.user.ID, u.GroupIDs)
}

// want fails the test unless the user is a member of some groups among all.
func (m *members) want(what string, all []string, of ...string) {
	m.Helper()
	for i, groupID := range all {
		_, err := m.directory.Member(m.Context(), tenant, groupID, m.user.ID)
		if err != nil && !errors.Is(err, identity.ErrMemberNotFound) {
			m.Fatal(err)
		}
		if member := err == nil; member != slices.Contains(of, groupID) {
			m.Errorf("%s: member of group %d: %t", what, i, member)
		}
	}
}

// connection has a mapping of values and groups, in pairs.
func connection(pairs ...string) federation.Connection {
	c := federation.OIDC.Defaults()
	for pair := range slices.Chunk(pairs, 2) {
		c.GroupMapping = append(c.GroupMapping, federation.GroupRule{Value: pair[0], GroupID: pair[1]})
	}
	return c
}

// The groups of the mapping are those of the latest sign-in, and other groups stay.
func TestJoinGroups(t *testing.T) {
	onEach(t, func(m *members) {
		staff, leads, other := m.group("staff"), m.group("leads", "users:write"), m.group("other")
		all := []string{staff, leads, other}
		m.joins(other)
		c := connection("staff", staff, "contractors", staff, "leads", leads)
		for _, test := range []struct {
			what   string
			values []any
			want   []string
		}{
			{"no values", nil, []string{other}},
			{"values without a rule", []any{"Staff", "other", other, staff, 1, ""}, []string{other}},
			{"two groups", []any{"staff", "leads"}, all},
			{"the same again", []any{"leads", "staff", "x"}, all},
			{"one group less", []any{"staff"}, []string{staff, other}},
			{"another value of the group", []any{"contractors"}, []string{staff, other}},
			{"both values of the group", []any{"contractors", "staff"}, []string{staff, other}},
			{"the other group", []any{"leads"}, []string{leads, other}},
			{"none", nil, []string{other}},
		} {
			m.must(m.signIn(m.Context(), c, test.values...))
			m.want(test.what, all, test.want...)
		}

		// A sign-in that changes nothing writes nothing.
		m.must(m.signIn(m.Context(), c, "staff"))
		before := m.writes
		m.must(m.signIn(m.Context(), c, "staff"))
		if before == 0 || m.writes != before {
			m.Errorf("%d writes, and then %d", before, m.writes)
		}

		// Without a mapping, the values have no effect.
		m.must(m.signIn(m.Context(), connection(), "leads"))
		m.want("no mapping", all, staff, other)
	})
}

// A user gets the groups of the mapping without the right to give them.
func TestJoinGroupsAsUser(t *testing.T) {
	onEach(t, func(m *members) {
		leads := m.group("leads", "users:write")
		ctx := authority.With(m.Context(), func() authority.Caller {
			return authority.Caller{Type: schema.UserType, ID: m.user.ID, Scopes: []string{"me:write"}}
		})
		_, err := m.directory.AddMembers(ctx, tenant, leads, []string{m.user.ID}, "")
		if _, ok := errors.AsType[*authority.DeniedError](err); !ok {
			m.Errorf("the user joins by themselves: %v", err)
		}
		m.must(m.signIn(ctx, connection("leads", leads), "leads"))
		m.want("after the sign-in", []string{leads}, leads)
	})
}

// A rule without effect does not prevent a sign-in, nor the other rules.
func TestJoinGroupsWithoutEffect(t *testing.T) {
	onEach(t, func(m *members) {
		gone, staff := m.group("gone"), m.group("staff")
		m.must(m.directory.DeleteGroup(m.Context(), tenant, gone, ""))
		m.must(m.signIn(m.Context(), connection("all", gone, "all", staff), "all"))
		m.want("after a deleted group", []string{gone, staff}, staff)

		m.must(m.directory.Administrators(m.Context(), tenant, []string{"users:write"}))
		groups, err := m.directory.Groups(m.Context(), tenant, "", "", nil, 10)
		m.must(err)
		i := slices.IndexFunc(groups, identity.Group.IsBuiltin)
		if i < 0 {
			m.Fatalf("no administrators in %v", groups)
		}
		administrators := groups[i].ID
		m.want("the first user", []string{administrators}, administrators)
		if m.log.Len() > 0 {
			m.Errorf("logged: %s", m.log)
		}
		m.must(m.signIn(m.Context(), connection("administrators", administrators, "all", staff)))
		m.want("the last administrator", []string{administrators, staff}, administrators)
		if !strings.Contains(m.log.String(), "last administrator") || !strings.Contains(m.log.String(), m.user.ID) {
			m.Errorf("logged: %s", m.log)
		}
	})
}

// A sign-in fails if the groups cannot be read, because the user could keep rights.
func TestJoinGroupsFails(t *testing.T) {
	onEach(t, func(m *members) {
		staff := m.group("staff")
		ctx, cancel := context.WithCancel(m.Context())
		cancel()
		if err := m.signIn(ctx, connection("staff", staff), "staff"); !errors.Is(err, context.Canceled) {
			m.Errorf("%v", err)
		}
		m.want("after a failure", []string{staff})
	})
}
