package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/engine"
	"stonetown/engine/authority"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/onetime"
	"stonetown/identity/password/breached"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/sqlstore"
)

const tenant = "tnt_a"

// guarded are the scopes that callers can give only if they hold them.
var guarded = []string{"users:write", "groups:write", "settings:write"}

// world is a directory with an engine.
type world struct {
	*Directory
	testing.TB
	sessions *session.Store

	mu      sync.Mutex
	mails   []string // the addresses of new users to verify
	woken   int
	deleted []string // the ids of deleted users
}

func (w *world) Queue(_ *sqldb.Batch, u User) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mails = append(w.mails, u.Email)
}

func (w *world) Wake() { w.woken++ }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) wantErr(what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s: %v, want %v", what, err, want)
	}
}

// denied fails unless err is an [*authority.DeniedError] for a scope.
func (w *world) denied(what string, err error, scope string) {
	w.Helper()
	if e, ok := errors.AsType[*authority.DeniedError](err); !ok || e.Scope != scope {
		w.Errorf("%s: %v, want it denied for %s", what, err, scope)
	}
}

// registered are scopes without those that begin with x.
type registered struct{}

func (registered) UnknownScopes(_ context.Context, _ *sqldb.Tx, _ string, scopes []string) (unknown []string, err error) {
	for _, scope := range scopes {
		if scope[0] == 'x' {
			unknown = append(unknown, scope)
		}
	}
	return unknown, nil
}

// onEach runs a test on every database.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			w := &world{TB: t}
			db, err := sqldb.Open(ctx, sqldb.Config{URL: url(t)})
			w.must(err)
			t.Cleanup(func() { db.Close() })
			w.must(db.Migrate(ctx, sqlstore.Migrations(), Migrations(), session.Migrations(), onetime.Migrations(), factor.Migrations(), external.Migrations(), eventlog.Migrations()))
			store, err := sqlstore.New(sqlstore.Config{DB: db})
			w.must(err)
			t.Cleanup(func() { store.Close() })
			e, err := engine.New(engine.Config{Store: store})
			w.must(err)
			t.Cleanup(e.Close)
			w.sessions = session.NewStore(db, session.NoOrigins{}, time.Now)
			w.Directory, err = New(Config{
				DB: db, Relations: e, Authority: authority.New(e, guarded), Breached: breached.None{}, Scopes: registered{}, Verification: w,
				OnDelete: []func(*sqldb.Batch, string, string){func(_ *sqldb.Batch, _, userID string) { w.deleted = append(w.deleted, userID) }},
				Logger:   slog.New(slog.DiscardHandler),
			})
			w.must(err)
			test(t, w)
		})
	}
}

// user adds an active user.
func (w *world) user(email string) User {
	w.Helper()
	u, err := w.Create(w.Context(), tenant, NewUser{Email: email, EmailVerified: true})
	w.must(err)
	return u
}

// group adds a group with scopes and members.
func (w *world) group(slug string, scopes []string, members ...User) Group {
	w.Helper()
	g, err := w.CreateGroup(w.Context(), tenant, NewGroup{Slug: slug, Name: slug, Scopes: scopes}, "")
	w.must(err)
	if len(members) > 0 {
		_, err = w.AddMembers(w.Context(), tenant, g.ID, ids(members...), "")
		w.must(err)
	}
	return g
}

func ids(users ...User) (ids []string) {
	for _, u := range users {
		ids = append(ids, u.ID)
	}
	return ids
}

// as returns the context of a user whose token has scopes.
func (w *world) as(u User, scopes ...string) context.Context {
	return authority.With(w.Context(), func() authority.Caller { return authority.Caller{Type: schema.UserType, ID: u.ID, Scopes: scopes} })
}

// signIn begins a session.
func (w *world) signIn(u User) session.Session {
	w.Helper()
	var s session.Session
	w.must(w.db.Tx(w.Context(), func(tx *sqldb.Tx) (err error) {
		s, _, err = w.sessions.Begin(w.Context(), tx, session.New{TenantID: tenant, UserID: u.ID, Lifetimes: session.Lifetimes{Idle: time.Hour, Absolute: time.Hour}})
		return err
	}))
	return s
}

func (w *world) live(s session.Session) bool {
	_, err := w.sessions.ByID(w.Context(), tenant, s.ID)
	return err == nil
}

// wantEvents fails unless the events of the tenant have the given types.
func (w *world) wantEvents(want map[eventlog.Type]int) {
	w.Helper()
	log, err := eventlog.Open(eventlog.Config{DB: w.db})
	w.must(err)
	got := map[eventlog.Type]int{}
	w.must(log.All(w.Context(), tenant, func(e eventlog.Event) error { got[e.Type]++; return nil }))
	if !maps.Equal(got, want) {
		w.Errorf("events %v, want %v", got, want)
	}
}

func TestNewRequiresDependencies(t *testing.T) {
	if d, err := New(Config{}); d != nil || err == nil {
		t.Errorf("a directory without dependencies: %v", err)
	}
}

func TestCreate(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		u, err := w.Create(t.Context(), tenant, NewUser{Email: "ann@example.com"})
		if err != nil || u.State != Pending || !slices.Equal(w.mails, []string{"ann@example.com"}) || w.woken != 1 {
			t.Errorf("%+v, %v, mails to %v", u, err, w.mails)
		}
		if u := w.user("bob@example.com"); u.State != Active || len(w.mails) != 1 || w.woken != 1 {
			t.Errorf("a verified address: %+v, mails to %v", u, w.mails)
		}
		_, err = w.Create(t.Context(), tenant, NewUser{Email: "ANN@example.com"})
		w.wantErr("an address with an account", err, ErrUserExists)
		_, err = w.Create(t.Context(), tenant, NewUser{Email: "x"})
		w.wantErr("an invalid address", err, ErrEmailInvalid)
		w.wantEvents(map[eventlog.Type]int{eventlog.UserCreated: 2})
	})
}

func TestUpdate(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		ann, bob := w.user("ann@example.com"), w.user("bob@example.com")
		s := w.signIn(ann)
		same, err := w.Update(t.Context(), tenant, ann.ID, func(*User) {})
		if err != nil || !same.UpdatedAt.Equal(ann.UpdatedAt) {
			t.Errorf("without a change: %+v, %v", same, err)
		}
		named, err := w.Update(t.Context(), tenant, ann.ID, func(u *User) { u.Name = "Ann" })
		if err != nil || named.Name != "Ann" || !w.live(s) {
			t.Errorf("%+v, %v", named, err)
		}
		if _, err := w.Update(t.Context(), tenant, ann.ID, func(u *User) { u.SetPassword("hash"); u.GivenName = "Ann" }); err != nil || w.live(s) {
			t.Errorf("a new password does not end the session: %v", err)
		}
		_, err = w.Update(t.Context(), tenant, bob.ID, func(u *User) { u.Email = "ANN@example.com" })
		w.wantErr("the address of another user", err, ErrUserExists)
		_, err = w.Update(t.Context(), tenant, "usr_x", func(*User) {})
		w.wantErr("an unknown user", err, ErrUserNotFound)
		w.wantEvents(map[eventlog.Type]int{eventlog.UserCreated: 2, eventlog.UserUpdated: 2, eventlog.UserPasswordChanged: 1, eventlog.SessionRevoked: 1})

		// A caller cannot act as a user with more rights.
		w.group("crew", []string{"settings:write"}, ann)
		w.group("help-desk", []string{"users:write"}, bob)
		for what, change := range map[string]func(*User){
			"the password":                    func(u *User) { u.SetPassword("another") },
			"whether it must be replaced":     func(u *User) { u.PasswordMustBeReset = true },
			"whether the address is verified": func(u *User) { u.VerifyEmail(false) },
		} {
			_, err := w.Update(w.as(bob, "users:write"), tenant, ann.ID, change)
			w.denied(what, err, "settings:write")
		}
		if _, err := w.Update(w.as(bob, "users:write"), tenant, ann.ID, func(u *User) { u.Name = "Bob was here" }); err != nil {
			t.Errorf("the name: %v", err)
		}
	})
}

func TestDisable(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		ann, bob := w.user("ann@example.com"), w.user("bob@example.com")
		s := w.signIn(ann)
		for range 2 {
			u, err := w.Disable(t.Context(), tenant, ann.ID, "")
			if err != nil || u.State != Disabled || w.live(s) {
				t.Errorf("%+v, %v", u, err)
			}
		}
		u, err := w.Update(t.Context(), tenant, ann.ID, (*User).Enable)
		if err != nil || u.State != Active {
			t.Errorf("%+v, %v", u, err)
		}
		_, err = w.Disable(t.Context(), tenant, "usr_x", "")
		w.wantErr("an unknown user", err, ErrUserNotFound)
		w.wantEvents(map[eventlog.Type]int{eventlog.UserCreated: 2, eventlog.UserDisabled: 1, eventlog.UserEnabled: 1, eventlog.SessionRevoked: 1})
		w.group("crew", []string{"settings:write"}, ann)
		w.group("help-desk", []string{"users:write"}, bob)
		_, err = w.Disable(w.as(bob, "users:write"), tenant, ann.ID, "")
		w.denied("a user with more rights", err, "settings:write")
		w.denied("a user with more rights", w.Delete(w.as(bob, "users:write"), tenant, ann.ID, ""), "settings:write")
	})
}

func TestDelete(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		ann := w.user("ann@example.com")
		g := w.group("crew", nil, ann, w.user("bob@example.com"))
		w.must(w.Delete(t.Context(), tenant, ann.ID, "commit"))
		_, err := w.User(t.Context(), tenant, ann.ID)
		w.wantErr("the deleted user", err, ErrUserNotFound)
		w.wantErr("deleting again", w.Delete(t.Context(), tenant, ann.ID, ""), ErrUserNotFound)
		if g, err = w.Group(t.Context(), tenant, g.ID); err != nil || g.MemberCount != 1 {
			t.Errorf("%+v, %v", g, err)
		}
		if !slices.Equal(w.deleted, []string{ann.ID}) {
			t.Errorf("data of other modules: %v", w.deleted)
		}
		if again := w.user("ann@example.com"); again.ID == ann.ID {
			t.Error("the id is used again")
		}
		w.wantEvents(map[eventlog.Type]int{
			eventlog.UserCreated: 3, eventlog.GroupCreated: 1, eventlog.GroupMemberAdded: 2, eventlog.GroupMemberRemoved: 1, eventlog.UserDeleted: 1,
		})
	})
}

func TestGroups(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		ann := w.user("ann@example.com")
		n := NewGroup{Slug: "crew", Name: "Crew", Description: "All of us", Scopes: []string{"b", "a", "b"}}
		g, err := w.CreateGroup(t.Context(), tenant, n, "commit")
		if err != nil || !slices.Equal(g.Scopes, []string{"a", "b"}) || g.MemberCount != 0 || g.IsBuiltin() {
			t.Errorf("%+v, %v", g, err)
		}
		if again, err := w.CreateGroup(t.Context(), tenant, n, "commit"); err != nil || again.ID != g.ID {
			t.Errorf("the same request again: %+v, %v", again, err)
		}
		for what, c := range map[string]struct {
			n    NewGroup
			want error
		}{
			"a taken slug":    {NewGroup{Slug: "crew"}, ErrSlugTaken},
			"a reserved slug": {NewGroup{Slug: "new"}, ErrSlugInvalid},
			"an invalid slug": {NewGroup{Slug: "A"}, ErrSlugInvalid},
			"two hyphens":     {NewGroup{Slug: "a--b"}, ErrSlugInvalid},
		} {
			_, err := w.CreateGroup(t.Context(), tenant, c.n, "")
			w.wantErr(what, err, c.want)
		}
		_, err = w.CreateGroup(t.Context(), tenant, NewGroup{Slug: "other", Scopes: []string{"a", "x1", "x2"}}, "")
		if unknown, ok := errors.AsType[*UnknownScopesError](err); !ok || !slices.Equal(unknown.Scopes, []string{"x1", "x2"}) {
			t.Errorf("unknown scopes: %v", err)
		}

		// Callers give only scopes that they hold.
		bob := w.user("bob@example.com")
		w.group("help-desk", []string{"groups:write"}, bob)
		_, err = w.CreateGroup(w.as(bob, "groups:write"), tenant, NewGroup{Slug: "other", Scopes: []string{"settings:write"}}, "")
		w.denied("a new group", err, "settings:write")
		_, err = w.UpdateGroup(w.as(bob, "groups:write"), tenant, g.ID, func(g *Group) { g.Scopes = append(g.Scopes, "settings:write") }, "")
		w.denied("another scope", err, "settings:write")
		strong := w.group("strong", []string{"settings:write"})
		_, err = w.AddMembers(w.as(bob, "groups:write"), tenant, strong.ID, ids(bob), "")
		w.denied("a membership", err, "settings:write")

		_, err = w.AddMembers(t.Context(), tenant, g.ID, ids(ann), "")
		w.must(err)
		changed, err := w.UpdateGroup(t.Context(), tenant, g.ID, func(g *Group) { g.Name, g.Scopes = "The crew", []string{"b", "c"} }, "")
		if err != nil || changed.Name != "The crew" || !slices.Equal(changed.Scopes, []string{"b", "c"}) || changed.MemberCount != 1 {
			t.Errorf("%+v, %v", changed, err)
		}
		if same, err := w.UpdateGroup(t.Context(), tenant, g.ID, func(g *Group) { g.Scopes = []string{"c", "b"} }, ""); err != nil || !same.UpdatedAt.Equal(changed.UpdatedAt) {
			t.Errorf("without a change: %+v, %v", same, err)
		}
		if found, err := w.Groups(t.Context(), tenant, "CREW", ann.ID, nil, 10); err != nil || len(found) != 1 || found[0].ID != g.ID {
			t.Errorf("%+v, %v", found, err)
		}
		if found, err := w.Groups(t.Context(), tenant, "zebra", "", nil, 10); err != nil || len(found) != 0 {
			t.Errorf("%+v, %v", found, err)
		}
		w.must(w.DeleteGroup(t.Context(), tenant, g.ID, ""))
		w.wantErr("deleting again", w.DeleteGroup(t.Context(), tenant, g.ID, ""), ErrGroupNotFound)
		w.wantEvents(map[eventlog.Type]int{
			eventlog.UserCreated: 2, eventlog.GroupCreated: 3, eventlog.GroupMemberAdded: 2, eventlog.GroupUpdated: 1, eventlog.GroupDeleted: 1,
		})
	})
}

func TestMembers(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		ann, bob := w.user("ann@example.com"), w.user("bob@example.com")
		g := w.group("crew", nil)
		got, err := w.AddMembers(w.as(bob, "groups:write"), tenant, g.ID, []string{ann.ID, "usr_x", ann.ID}, "")
		if diff := cmp.Diff(map[string]Outcome{ann.ID: Succeeded, "usr_x": UnknownUser}, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		got, err = w.AddMembers(t.Context(), tenant, g.ID, ids(ann, bob), "")
		if diff := cmp.Diff(map[string]Outcome{ann.ID: AlreadyMember, bob.ID: Succeeded}, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		m, err := w.Member(t.Context(), tenant, g.ID, ann.ID)
		if err != nil || m.Email != "ann@example.com" || m.AddedBy != bob.ID || m.AddedAt.IsZero() {
			t.Errorf("%+v, %v", m, err)
		}
		page, err := w.Members(t.Context(), tenant, g.ID, nil, 1)
		if err != nil || len(page) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		rest, err := w.Members(t.Context(), tenant, g.ID, &MemberPosition{page[0].ID}, 10)
		if err != nil || len(rest) != 1 || rest[0].ID == page[0].ID {
			t.Errorf("%+v, %v", rest, err)
		}
		got, err = w.RemoveMembers(t.Context(), tenant, g.ID, []string{ann.ID, "usr_x"}, "")
		if diff := cmp.Diff(map[string]Outcome{ann.ID: Succeeded, "usr_x": NotMember}, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		_, err = w.Member(t.Context(), tenant, g.ID, ann.ID)
		w.wantErr("a former member", err, ErrMemberNotFound)
		_, err = w.AddMembers(t.Context(), tenant, "grp_x", ids(ann), "")
		w.wantErr("an unknown group", err, ErrGroupNotFound)
		_, err = w.RemoveMembers(t.Context(), tenant, "grp_x", ids(ann), "")
		w.wantErr("an unknown group", err, ErrGroupNotFound)
		_, err = w.Members(t.Context(), tenant, "grp_x", nil, 1)
		w.wantErr("an unknown group", err, ErrGroupNotFound)
		if g, err = w.Group(t.Context(), tenant, g.ID); err != nil || g.MemberCount != 1 {
			t.Errorf("%+v, %v", g, err)
		}
	})
}

// A tenant always keeps an active administrator, also if two are removed at the same time.
func TestLastAdministrator(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		ann, bob := w.user("ann@example.com"), w.user("bob@example.com")
		for range 2 {
			w.must(w.Administrators(t.Context(), tenant, guarded))
		}
		groups, err := w.Groups(t.Context(), tenant, "", "", nil, 10)
		if err != nil || len(groups) != 1 || !groups[0].IsBuiltin() || groups[0].MemberCount != 1 {
			t.Fatalf("%+v, %v", groups, err)
		}
		g := groups[0]
		if _, err := w.Member(t.Context(), tenant, g.ID, ann.ID); err != nil {
			t.Errorf("the first user is no administrator: %v", err)
		}
		w.wantErr("deleting the group", w.DeleteGroup(t.Context(), tenant, g.ID, ""), ErrBuiltin)
		_, err = w.UpdateGroup(t.Context(), tenant, g.ID, func(g *Group) { g.Scopes = nil }, "")
		w.wantErr("changing its scopes", err, ErrBuiltin)

		_, err = w.RemoveMembers(t.Context(), tenant, g.ID, ids(ann), "")
		w.wantErr("removing the last", err, ErrLastAdministrator)
		_, err = w.Disable(t.Context(), tenant, ann.ID, "")
		w.wantErr("disabling the last", err, ErrLastAdministrator)
		w.wantErr("deleting the last", w.Delete(t.Context(), tenant, ann.ID, ""), ErrLastAdministrator)
		_, err = w.AddMembers(t.Context(), tenant, g.ID, ids(bob), "")
		w.must(err)
		_, err = w.Disable(t.Context(), tenant, bob.ID, "")
		w.must(err)
		_, err = w.RemoveMembers(t.Context(), tenant, g.ID, ids(ann), "")
		w.wantErr("removing the last who is active", err, ErrLastAdministrator)
		_, err = w.Update(t.Context(), tenant, bob.ID, (*User).Enable)
		w.must(err)

		var both sync.WaitGroup
		errs := make([]error, 2)
		for i, u := range []User{ann, bob} {
			both.Go(func() { _, errs[i] = w.RemoveMembers(t.Context(), tenant, g.ID, ids(u), "") })
		}
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), ErrLastAdministrator) {
			t.Errorf("removing both: %v", errs)
		}
	})
}

func TestListUsers(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		var all []User
		for i := range 5 {
			u, err := w.Create(t.Context(), tenant, NewUser{
				Email: fmt.Sprintf("user%d@example.com", i), EmailVerified: i%2 == 0,
				Profile: Profile{Name: fmt.Sprintf("Número %d", i), Attributes: []byte(fmt.Sprintf(`{"office":["Wien",%d],"nested":{"a":"100%% sure"}}`, 100+i))},
			})
			w.must(err)
			all = append(all, u)
			time.Sleep(2 * time.Millisecond) // so that the order is that of creation
		}
		slices.Reverse(all)
		list := func(f Filter, after *Position, limit int) []string {
			t.Helper()
			found, err := w.Users(t.Context(), tenant, f, after, limit)
			w.must(err)
			return ids(found...)
		}
		for what, c := range map[string]struct {
			f    Filter
			want []User
		}{
			"all":                    {Filter{}, all},
			"by address":             {Filter{Email: "USER3@example.com"}, all[1:2]},
			"by state":               {Filter{State: Pending}, []User{all[1], all[3]}},
			"later":                  {Filter{CreatedAfter: all[2].CreatedAt}, all[:2]},
			"words in any order":     {Filter{Query: "wien NUMERO"}, nil}, // ú is another letter
			"words":                  {Filter{Query: "WIEN número"}, all},
			"decomposed":             {Filter{Query: "nu\u0301mero 4"}, all[:1]},
			"a number":               {Filter{Query: "103"}, all[1:2]},
			"characters of patterns": {Filter{Query: "100%"}, all},
			"none":                   {Filter{Query: "1_0"}, nil},
			"words and a state":      {Filter{Query: "wien", State: Pending}, []User{all[1], all[3]}},
		} {
			if got := list(c.f, nil, 10); !slices.Equal(got, ids(c.want...)) {
				t.Errorf("%s: %v, want %v", what, got, ids(c.want...))
			}
		}
		if got := list(Filter{}, &Position{all[1].CreatedAt, all[1].ID}, 2); !slices.Equal(got, ids(all[2:4]...)) {
			t.Errorf("a page: %v", got)
		}
	})
}

func TestSettings(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		update := func(change func(*Settings)) (before, after Settings) {
			t.Helper()
			w.must(w.db.Tx(t.Context(), func(tx *sqldb.Tx) (err error) {
				before, after, err = w.UpdateSettings(t.Context(), tx, tenant, change)
				return err
			}))
			return before, after
		}
		if s, err := w.Settings(t.Context(), tenant); err != nil || cmp.Diff(DefaultSettings(), s) != "" {
			t.Errorf("%+v, %v", s, err)
		}
		if before, after := update(func(*Settings) {}); cmp.Diff(before, after) != "" {
			t.Errorf("without a change: %s", cmp.Diff(before, after))
		}
		before, after := update(func(s *Settings) { s.MFA.Kinds[0], s.SignUp, s.Session.IdleS = "sms", SignUpClosed, 300 })
		if cmp.Diff(DefaultSettings(), before) != "" || after.SignUp != SignUpClosed || after.Session.Lifetimes().Idle != 5*time.Minute {
			t.Errorf("%+v, %+v", before, after)
		}
		if s, err := w.Settings(t.Context(), tenant); err != nil || cmp.Diff(after, s) != "" {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestCreateMany(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		crew := w.group("crew", nil)
		w.group("strong", []string{"settings:write"})
		w.user("taken@example.com")
		caller := w.user("caller@example.com")
		w.group("help-desk", []string{"groups:write"}, caller)
		w.mails = nil
		bulk := func(users ...BulkUser) (got []error) {
			t.Helper()
			w.must(w.CreateMany(w.as(caller, "groups:write"), tenant, Bulk{
				Users: users, Actor: "job_a", Source: FromImport, SendVerification: true,
				Commit: func(_ context.Context, _ *sqldb.Tx, _ *sqldb.Batch, errs []error) error {
					got = slices.Clone(errs)
					return nil
				},
			}))
			return got
		}
		of := func(email string, groups ...string) BulkUser {
			return BulkUser{NewUser: NewUser{Email: email}, Groups: groups}
		}
		got := bulk(of("a@example.com", "crew", "crew"), of("b@example.com"), of("x"), of("A@example.com"), of("taken@example.com"), of("c@example.com", "crew", "unknown"), of("d@example.com", "strong"))
		for i, want := range []error{nil, nil, ErrEmailInvalid, ErrUserExists, ErrUserExists} {
			w.wantErr(fmt.Sprint("user ", i), got[i], want)
		}
		if unknown, ok := errors.AsType[*UnknownGroupError](got[5]); !ok || unknown.Slug != "unknown" {
			t.Errorf("an unknown group: %v", got[5])
		}
		w.denied("a group with a scope that the caller lacks", got[6], "settings:write")
		if !slices.Equal(w.mails, []string{"a@example.com", "b@example.com"}) {
			t.Errorf("mails to %v", w.mails)
		}
		members, err := w.Members(t.Context(), tenant, crew.ID, nil, 10)
		if err != nil || len(members) != 1 || members[0].Email != "a@example.com" || members[0].AddedBy != "job_a" {
			t.Errorf("%+v, %v", members, err)
		}
		if crew, err = w.Group(t.Context(), tenant, crew.ID); err != nil || crew.MemberCount != 1 {
			t.Errorf("%+v, %v", crew, err)
		}

		// An error of Commit creates none. A user that another request creates meanwhile is
		// an error of that user only.
		failed := errors.New("failed")
		err = w.CreateMany(t.Context(), tenant, Bulk{Users: []BulkUser{of("e@example.com")}, Commit: func(context.Context, *sqldb.Tx, *sqldb.Batch, []error) error { return failed }})
		w.wantErr("an error of Commit", err, failed)
		_, err = w.UserByEmail(t.Context(), tenant, "e@example.com")
		w.wantErr("the user", err, ErrUserNotFound)
		var many sync.WaitGroup
		created := make(chan int, 4)
		for range cap(created) {
			many.Go(func() {
				n := 0
				err := w.CreateMany(t.Context(), tenant, Bulk{Users: []BulkUser{of("f@example.com", "crew"), of("g@example.com")}, Commit: func(_ context.Context, _ *sqldb.Tx, _ *sqldb.Batch, errs []error) error {
					n = len(slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err != nil }))
					return nil
				}})
				if err != nil {
					t.Error(err)
				}
				created <- n
			})
		}
		many.Wait()
		close(created)
		total := 0
		for n := range created {
			total += n
		}
		if total != 2 {
			t.Errorf("%d of 2 users are reported as created", total)
		}
	})
}

// Lock keeps a user from being deleted until the transaction ends.
func TestLock(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		u := w.user("ann@example.com")
		var deleting sync.WaitGroup
		w.must(w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			if _, err := w.Lock(t.Context(), tx, tenant, u.ID); err != nil {
				return err
			}
			_, err := w.Lock(t.Context(), tx, tenant, "usr_x")
			w.wantErr("an unknown user", err, ErrUserNotFound)
			deleting.Go(func() {
				if err := w.Delete(context.WithoutCancel(t.Context()), tenant, u.ID, ""); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(50 * time.Millisecond)
			_, err = w.UserIn(t.Context(), tx, tenant, u.ID)
			return err
		}))
		deleting.Wait()
		_, err := w.User(t.Context(), tenant, u.ID)
		w.wantErr("after the transaction", err, ErrUserNotFound)
	})
}

func TestManaged(t *testing.T) {
	for _, c := range []struct {
		typ, id, relation, scope string
		managed                  bool
	}{
		{schema.UserType, "usr_a", "", "users:write", true},
		{schema.UserType, "usr_a", schema.ActAs, "users:write", false},
		{schema.UserType, "ann", "", "", false}, // the application's own
		{schema.GroupType, "grp_a", schema.GroupMember, "groups:write", true},
		{schema.GroupType, "crew", schema.GroupMember, "", false},
		{schema.ScopeType, "users:read", schema.ScopeHolder, "groups:write", true},
		{"document", "readme", "viewer", "", false},
	} {
		scope, managed := Managed(tuplestore.Object{Type: c.typ, ID: c.id}, c.relation)
		if scope != c.scope || managed != c.managed {
			t.Errorf("%s:%s#%s: %q, %v", c.typ, c.id, c.relation, scope, managed)
		}
	}
}
