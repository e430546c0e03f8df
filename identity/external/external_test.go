package external

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/internal/sqldb/sqltest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixture is a store on one of the databases.
type fixture struct {
	testing.TB
	*Store
	at time.Time
}

func open(t testing.TB, url string) *fixture {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), Migrations()); err != nil {
		t.Fatal(err)
	}
	f := &fixture{TB: t, at: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	f.Store = NewStore(db, key, func() time.Time { return f.at })
	return f
}

func sqlite(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") }

func everywhere(t *testing.T, test func(f *fixture)) {
	for name, url := range map[string]func(testing.TB) string{"SQLite": sqlite, "PostgreSQL": pgtest.URL} {
		t.Run(name, func(t *testing.T) { test(open(t, url(t))) })
	}
}

// of parses an identity: tenant, user, connection, subject.
func of(text string) Identity {
	w := strings.Fields(text)
	return Identity{TenantID: w[0], UserID: w[1], ConnectionID: w[2], Slug: w[2], Kind: "oidc", Subject: w[3], Email: w[1] + "@example.com"}
}

func (f *fixture) link(i Identity) (added bool, err error) {
	err = f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
		added, err = f.Link(f.Context(), tx, i)
		return err
	})
	return added, err
}

// linked links an identity, which must not be linked yet.
func (f *fixture) linked(text string) Identity {
	f.Helper()
	i := of(text)
	if added, err := f.link(i); !added || err != nil {
		f.Fatalf("link %s: %v, %v", text, added, err)
	}
	i.LinkedAt = f.at
	return i
}

// send runs the statements that a function queues.
func (f *fixture) send(queue func(b *sqldb.Batch)) {
	f.Helper()
	err := f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		queue(&b)
		return tx.Send(f.Context(), &b)
	})
	if err != nil {
		f.Fatal(err)
	}
}

// owner returns the user of a subject; empty if there is none.
func (f *fixture) owner(tenant, connection, subject string) string {
	f.Helper()
	i, err := f.Find(f.Context(), tenant, connection, subject)
	if err != nil && !errors.Is(err, ErrNotFound) {
		f.Fatal(err)
	}
	return i.UserID
}

func (f *fixture) equal(what string, got, want any) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestIdentities(t *testing.T) {
	everywhere(t, func(f *fixture) {
		first := f.linked("a ann google 1")
		f.at = f.at.Add(time.Hour)
		second := f.linked("a ann staff ann@example.com")
		f.linked("a bob google 2")
		f.linked("b eve google 1") // in another tenant

		list := func() []Identity {
			f.Helper()
			all, err := f.List(f.Context(), "a", "ann")
			if err != nil {
				f.Fatal(err)
			}
			return all
		}
		f.equal("list", list(), []Identity{first, second})

		// Linking again changes nothing. A subject keeps its user, and a user has one subject
		// at a connection.
		added, err := f.link(of("a ann google 1"))
		f.equal("again", []any{added, err}, []any{false, error(nil)})
		for text, want := range map[string]error{"a eve google 1": ErrTaken, "a ann google 3": ErrOther, "a ann google 2": ErrOther} {
			if added, err := f.link(of(text)); added || !errors.Is(err, want) {
				f.Errorf("link %s: %v, %v, want %v", text, added, err, want)
			}
		}
		f.equal("list", list(), []Identity{first, second})
		f.equal("found", []string{f.owner("a", "google", "1"), f.owner("b", "google", "1"), f.owner("a", "google", "2")}, []string{"ann", "eve", "bob"})

		// An identity is found only by exactly its subject.
		for _, subject := range []string{"ann@example.com", "ANN@example.com", "", "01", "1 ", "%", "a\x00", "\xff", strings.Repeat("x", 1<<16)} {
			f.equal(subject, f.owner("a", "google", subject), "")
		}
		f.equal("case", f.owner("a", "staff", "Ann@example.com"), "")
		f.equal("connection", f.owner("a", "\xff", "1"), "")

		// A use updates the time and the address.
		used := first
		used.Email = "new@example.com"
		f.send(func(b *sqldb.Batch) { f.Used(b, used) })
		used.LastUsedAt = f.at
		f.equal("used", list(), []Identity{used, second})
		used.Email = strings.Repeat("x", 300)
		f.send(func(b *sqldb.Batch) { f.Used(b, used) })
		used.Email = ""
		f.equal("without an address", list(), []Identity{used, second})

		unlink := func(tenant, user, connection string) error {
			return f.db.Tx(f.Context(), func(tx *sqldb.Tx) error { return Unlink(f.Context(), tx, tenant, user, connection) })
		}
		for _, missing := range [][3]string{{"a", "bob", "staff"}, {"b", "ann", "google"}, {"a", "ann", "x"}, {"a", "ann", "\x00"}} {
			if err := unlink(missing[0], missing[1], missing[2]); !errors.Is(err, ErrNotFound) {
				f.Errorf("unlink %v: %v", missing, err)
			}
		}
		f.equal("unlink", unlink("a", "ann", "google"), error(nil))
		f.equal("list", list(), []Identity{second})
		f.linked("a eve google 1") // the subject has no user any more

		f.send(func(b *sqldb.Batch) { RemoveAll(b, "a", "ann") })
		f.equal("removed", list(), []Identity(nil))
		f.equal("others", []string{f.owner("a", "google", "1"), f.owner("a", "google", "2"), f.owner("b", "google", "1")}, []string{"eve", "bob", "eve"})
		f.linked("a bob staff bob")
		f.send(func(b *sqldb.Batch) { RemoveConnection(b, "a", "google") })
		f.equal("of a connection", []string{f.owner("a", "google", "1"), f.owner("a", "google", "2"), f.owner("a", "staff", "bob"), f.owner("b", "google", "1")},
			[]string{"", "", "bob", "eve"})
	})
}

func TestSubjectsAreTexts(t *testing.T) {
	everywhere(t, func(f *fixture) {
		for _, subject := range []string{"", "a\x00b", "\xff", strings.Repeat("x", maxSubject+1)} {
			i := of("a ann google x")
			i.Subject = subject
			if _, err := f.link(i); !errors.Is(err, ErrSubject) {
				f.Errorf("%.20q: %v", subject, err)
			}
		}
		i := of("a ann google " + strings.Repeat("😀", maxSubject/4))
		i.Email = "\x00"
		if added, err := f.link(i); !added || err != nil {
			f.Error(err)
		}
		all, err := f.List(f.Context(), "a", "ann")
		f.equal("the longest", []any{len(all), all[0].Subject == i.Subject, all[0].Email, err}, []any{1, true, "", error(nil)})
	})
}

func TestAUserHasSoMany(t *testing.T) {
	everywhere(t, func(f *fixture) {
		for n := range MostPerUser {
			f.linked(fmt.Sprintf("a ann c%d 1", n))
		}
		if _, err := f.link(of("a ann another 1")); !errors.Is(err, ErrLimit) {
			f.Error(err)
		}
	})
}

// Of many concurrent links of a subject one succeeds.
func TestConcurrentLinks(t *testing.T) {
	everywhere(t, func(f *fixture) {
		const users = 8
		results := make(chan error, users)
		var wg sync.WaitGroup
		for n := range users {
			wg.Go(func() {
				_, err := f.link(of(fmt.Sprintf("a user%d google 1", n)))
				results <- err
			})
		}
		wg.Wait()
		close(results)
		succeeded := 0
		for err := range results {
			if err == nil {
				succeeded++
			} else if !errors.Is(err, ErrTaken) {
				f.Error(err)
			}
		}
		f.equal("succeeded", succeeded, 1)
	})
}

// PostgreSQL plans statements for empty tables, and keeps the plans for a while. Each must use its
// index.
func TestPlansUseIndexes(t *testing.T) {
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: pgtest.URL(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context(), Migrations()); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		statement string
		args      []any
		index     string
	}{
		{selectOne, []any{"t", "c", "s"}, "external_identities_pkey"},
		{selectAny, []any{"t", "c"}, "external_identities_pkey"},
		{selectAll, []any{"t", "u"}, "external_identities_by_user"},
		{updateOne, []any{"t", "c", "s", int64(1), "e"}, "external_identities_pkey"},
		{deleteOne, []any{"t", "u", "c"}, "external_identities_by_user"},
		{deleteOfUser, []any{"t", "u"}, "external_identities_by_user"},
		{deleteOfConnection, []any{"t", "c"}, "external_identities_pkey"},
		{selectSession, []any{"t", "s"}, "external_sessions_pkey"},
		{selectSessionsAt, []any{"t", "c", "s", "p"}, "external_sessions_by_"},
		{selectSessionsBy, []any{"t", "c", "p"}, "external_sessions_by_"},
		{deleteSession, []any{"t", "s"}, "external_sessions_pkey"},
		{deleteExpired, []any{int64(1)}, "external_sessions_by_expiry"},
	} {
		sqltest.UsesIndex(t, db, tc.index, tc.statement, tc.args...)
	}
}

// A subject is either refused or found again bytewise.
func FuzzSubject(f *testing.F) {
	for _, subject := range []string{"", "1", "ann@example.com", "a\x00b", "\xff", "é", "é", "'; --", strings.Repeat("x", maxSubject)} {
		f.Add(subject)
	}
	opened := open(f, sqlite(f))
	f.Fuzz(func(t *testing.T, subject string) {
		s := &fixture{TB: t, Store: opened.Store}
		i := of("a ann google x")
		i.Subject = subject
		_, err := s.link(i)
		found, missing := s.Find(t.Context(), "a", "google", subject)
		switch {
		case errors.Is(err, ErrSubject):
			if !errors.Is(missing, ErrNotFound) {
				t.Errorf("%q was refused, and found: %v, %v", subject, found, missing)
			}
			return
		case err != nil || missing != nil || found.Subject != subject:
			t.Fatalf("%q: linked %v, found %q %v", subject, err, found.Subject, missing)
		}
		s.send(func(b *sqldb.Batch) { RemoveAll(b, "a", "ann") })
	})
}
