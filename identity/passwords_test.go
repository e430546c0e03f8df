package identity

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/internal/sqldb"
)

// listed is the only password on the list of these tests.
const listed = "correct horse"

// openWithBreached returns a directory with a list of breached passwords, whose service
// responds with status, and a function that advances its clock.
func openWithBreached(t *testing.T, status int) (d *Directory, db *sqldb.DB, later func(time.Duration)) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, "3523B62ABC141A2B4D6019D23CBA835DBD0:12\n")
	}))
	t.Cleanup(server.Close)
	client, err := breached.New(breached.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	d, db = open(t)
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	d.breached, d.clock = client, func() time.Time { return now }
	return d, db, func(by time.Duration) { now = now.Add(by) }
}

func TestBreachedPasswordsAreRefused(t *testing.T) {
	d, _, _ := openWithBreached(t, http.StatusOK)
	_, err := d.NewPassword(t.Context(), "tnt_a", listed, User{})
	if policy, ok := errors.AsType[*password.PolicyError](err); !ok || !slices.Equal(policy.Violations, []password.Rule{password.RuleBreached}) || policy.Policy.MinLength == 0 {
		t.Errorf("%v", err)
	}
	if hash, err := d.NewPassword(t.Context(), "tnt_a", listed+" battery", User{}); err != nil || hash == "" {
		t.Errorf("another: %v", err)
	}
	// A password that violates another rule is not looked up.
	before := d.breached.Stats().Lookups
	if _, err := d.NewPassword(t.Context(), "tnt_a", "short", User{}); err == nil || d.breached.Stats().Lookups != before {
		t.Errorf("a short one: %v, %d lookups", err, d.breached.Stats().Lookups-before)
	}
}

func TestPasswordsDoNotDependOnTheService(t *testing.T) {
	d, _, _ := openWithBreached(t, http.StatusInternalServerError)
	var log bytes.Buffer
	d.log = slog.New(slog.NewTextHandler(&log, nil))
	if _, err := d.NewPassword(t.Context(), "tnt_a", listed, User{}); err != nil {
		t.Error(err)
	}
	if n := d.breached.Stats().Failures; n != 1 {
		t.Errorf("%d failures are counted", n)
	}
	if text := log.String(); !strings.Contains(text, "level=WARN") || strings.Contains(text, listed) || strings.Contains(strings.ToUpper(text), "2F9E5") {
		t.Errorf("logged: %s", text)
	}
}

// A password in use is looked up at the first sign-in, and then at intervals until it is found.
func TestPasswordsAreLookedUp(t *testing.T) {
	d, db, later := openWithBreached(t, http.StatusOK)
	u, err := create(t.Context(), d, db, "tnt_a", NewUser{Email: "ann@example.com", PasswordHash: "hash"})
	if err != nil {
		t.Fatal(err)
	}
	due := func(want bool) {
		t.Helper()
		now, err := d.User(t.Context(), "tnt_a", u.ID)
		if got := d.PasswordCheckDue(now); err != nil || got != want {
			t.Errorf("it is to be looked up: %t, %v; want %t", got, err, want)
		}
	}
	checked := func(hash password.Hash, found, want bool) {
		t.Helper()
		err := db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			tell, err := d.PasswordChecked(t.Context(), tx, "tnt_a", u.ID, hash, found)
			if tell != want {
				t.Errorf("the user is told: %t, want %t", tell, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	change := func(change func(*User)) {
		t.Helper()
		err := db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, err := d.UpdateIn(t.Context(), tx, "tnt_a", u.ID, change)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	due(true)
	checked("hash", false, false)
	due(false)
	later(recheckAfter)
	due(true)
	checked("another", true, false) // that was another password
	due(true)
	checked("hash", true, true)
	checked("hash", true, false)
	checked("hash", false, false) // the result of an earlier lookup
	later(100 * recheckAfter)
	due(false)
	change(func(u *User) { u.Name = "Ann" })
	change(func(u *User) { u.PasswordHash = "rehashed" }) // the same password
	due(false)
	change(func(u *User) { u.SetPassword("another") })
	due(true)
	d.breached = breached.None{}
	due(false)
}
