package identity

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/engine/authority"
	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/internal/sqldb"
)

func open(t *testing.T) (*Directory, *sqldb.DB) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), Migrations()); err != nil {
		t.Fatal(err)
	}
	d, err := New(testConfig(db, time.Now))
	if err != nil {
		t.Fatal(err)
	}
	return d, db
}

// noRelations are for tests that use users only.
type (
	relations   = Relations // a name that does not hide the method
	noRelations struct{ relations }
)

// anyScope is a registry that has every scope.
type anyScope struct{}

func (anyScope) UnknownScopes(context.Context, *sqldb.Tx, string, []string) ([]string, error) {
	return nil, nil
}

func testConfig(db *sqldb.DB, clock func() time.Time) Config {
	return Config{
		DB: db, Relations: noRelations{}, Authority: authority.New(nil, nil), Breached: breached.None{}, Scopes: anyScope{},
		Verification: NoVerification{}, Clock: clock, Logger: slog.New(slog.DiscardHandler),
	}
}

func create(ctx context.Context, d *Directory, db *sqldb.DB, tenantID string, n NewUser) (u User, err error) {
	err = db.Tx(ctx, func(tx *sqldb.Tx) error {
		u, err = d.CreateUser(ctx, tx, tenantID, n)
		return err
	})
	return u, err
}

func TestUsers(t *testing.T) {
	d, db := open(t)
	ctx := t.Context()
	hash, err := password.NewHash(ctx, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	want, err := create(ctx, d, db, "tnt_a", NewUser{Email: "Ann@Example.com", EmailVerified: true, Profile: Profile{Name: "Ann"}, PasswordHash: hash})
	if err != nil {
		t.Fatal(err)
	}

	got, err := d.UserByEmail(ctx, "tnt_a", "ann@example.COM")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("UserByEmail: %v\n%s", err, diff)
	}
	if _, err := d.UserByEmail(ctx, "tnt_b", "ann@example.com"); !errors.Is(err, ErrUserNotFound) {
		t.Errorf("in another tenant: %v, want ErrUserNotFound", err)
	}
	if _, err := create(ctx, d, db, "tnt_a", NewUser{Email: "ANN@example.com"}); !errors.Is(err, ErrUserExists) {
		t.Errorf("second account: %v, want ErrUserExists", err)
	}
	if _, err := create(ctx, d, db, "tnt_b", NewUser{Email: "ann@example.com"}); err != nil {
		t.Errorf("same address in another tenant: %v", err)
	}
	for _, email := range []string{"", "ann", "Ann <ann@example.com>", "a@b\r\nBcc: c@d", "a@" + strings.Repeat("x", 260)} {
		if _, err := create(ctx, d, db, "tnt_a", NewUser{Email: email}); !errors.Is(err, ErrEmailInvalid) {
			t.Errorf("email %q: %v, want ErrEmailInvalid", email, err)
		}
	}

	if u, err := d.VerifyPassword(ctx, "tnt_a", "ann@example.com", "correct horse"); err != nil || u.ID != want.ID {
		t.Errorf("VerifyPassword: %+v, %v", u, err)
	}
	for name, try := range map[string][3]string{
		"wrong password":  {"tnt_a", "ann@example.com", "wrong horse"},
		"empty password":  {"tnt_a", "ann@example.com", ""},
		"long password":   {"tnt_a", "ann@example.com", strings.Repeat("x", 1025)},
		"unknown address": {"tnt_a", "bob@example.com", "correct horse"},
		"without hash":    {"tnt_b", "ann@example.com", ""},
	} {
		if u, err := d.VerifyPassword(ctx, try[0], try[1], try[2]); !errors.Is(err, ErrUserNotFound) || u.ID != "" {
			t.Errorf("%s: %+v, %v, want ErrUserNotFound", name, u, err)
		}
	}
}
