package identity

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/fair"
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
	d, err := New(Config{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	return d, db
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
	hash, err := HashPassword(ctx, "correct horse")
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
		"long password":   {"tnt_a", "ann@example.com", strings.Repeat("x", maxPassword+1)},
		"unknown address": {"tnt_a", "bob@example.com", "correct horse"},
		"without hash":    {"tnt_b", "ann@example.com", ""},
	} {
		if u, err := d.VerifyPassword(ctx, try[0], try[1], try[2]); !errors.Is(err, ErrUserNotFound) || u.ID != "" {
			t.Errorf("%s: %+v, %v, want ErrUserNotFound", name, u, err)
		}
	}
}

func TestPasswordHash(t *testing.T) {
	ctx := t.Context()
	a, err := HashPassword(ctx, "é")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(a), "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("hash is %q", string(a))
	}
	if b, _ := HashPassword(ctx, "é"); a == b {
		t.Error("two hashes of one password are equal: no salt")
	}
	if ok, err := a.Verify(ctx, "e\u0301"); !ok || err != nil {
		t.Errorf("decomposed form: %v, %v, want true", ok, err)
	}
	if _, err := HashPassword(ctx, strings.Repeat("x", maxPassword+1)); !errors.Is(err, ErrPasswordTooLong) {
		t.Errorf("long password: %v", err)
	}
	if got := fmt.Sprintf("%v %s", a, User{PasswordHash: a}.PasswordHash); strings.Contains(got, "argon2") {
		t.Errorf("a hash prints as %q", got)
	}
}

// The reference implementation's test vector, with version 0x13:
// https://github.com/P-H-C/phc-winner-argon2/blob/master/src/test.c
func TestPasswordHashVector(t *testing.T) {
	h := PasswordHash("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	if ok, err := h.Verify(t.Context(), "password"); !ok || err != nil {
		t.Errorf("Verify = %v, %v, want true", ok, err)
	}
}

func TestPasswordHashDamaged(t *testing.T) {
	for _, h := range []PasswordHash{
		"x", "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=4000000000,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=262145,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=262144,t=5,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=17$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=0$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$", "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ",
	} {
		ok, err := h.Verify(t.Context(), "password")
		if ok || err == nil || strings.Contains(err.Error(), "c29t") {
			t.Errorf("%q: %v, %v, want an error that does not quote it", string(h), ok, err)
		}
	}
}

// Hashing waits for its turn, and gives up when the caller does.
func TestHashPasswordWaits(t *testing.T) {
	var places []fair.Place
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		place, err := hashing.Enter(t.Context(), fair.Caller{})
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, place)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := HashPassword(ctx, "x")
	for _, place := range places {
		place.Leave()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("HashPassword = %v, want context.Canceled", err)
	}
}
