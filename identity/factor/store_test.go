package factor

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

const tenant, ann = "tnt_a", "usr_ann"

// fixture is a store on SQLite with a clock.
type fixture struct {
	*Store
	testing.TB
	at time.Time
}

func open(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{TB: t, at: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "test.db")})
	f.must(err)
	t.Cleanup(func() { db.Close() })
	f.must(db.Migrate(t.Context(), Migrations()))
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	f.must(err)
	f.Store = NewStore(db, key, func() time.Time { return f.at })
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) wantErr(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Errorf("%s: %v, want %v", what, err, want)
	}
}

// tx runs a function in a transaction.
func (f *fixture) tx(do func(tx *sqldb.Tx) error) error {
	return f.db.Tx(f.Context(), do)
}

// phone adds a phone.
func (f *fixture) phone(userID, label string) (added Factor, err error) {
	err = f.tx(func(tx *sqldb.Tx) error {
		added, err = f.AddNumber(f.Context(), tx, tenant, userID, label, "+4930123456")
		return err
	})
	return added, err
}

// list returns the labels of the factors of a user.
func (f *fixture) list(userID string) (labels []string) {
	f.Helper()
	all, err := f.List(f.Context(), tenant, userID)
	f.must(err)
	for _, one := range all {
		labels = append(labels, one.Label)
	}
	return labels
}

func TestTOTP(t *testing.T) {
	f := open(t)
	key, err := NewKey("Example & Co", "ann@example.com")
	if err != nil || len(key.Secret) != 32 || !strings.HasPrefix(key.URI, "otpauth://totp/Example%20&%20Co:ann@example.com?") || !strings.HasPrefix(key.QR, "data:image/png;base64,") {
		t.Fatalf("%+v, %v", key, err)
	}
	code := func() string {
		text, err := totp.GenerateCode(key.Secret, f.at)
		f.must(err)
		return text
	}
	var added Factor
	add := func(code string) error {
		return f.tx(func(tx *sqldb.Tx) (err error) {
			added, err = f.AddTOTP(t.Context(), tx, tenant, ann, "App", key.Secret, code)
			return err
		})
	}
	f.wantErr("a wrong code", add("000000"), ErrWrong)
	f.must(add(code()))
	var sealed []byte
	f.must(f.db.QueryRow(t.Context(), `SELECT secret FROM factors`).Scan(&sealed))
	if bytes.Contains(sealed, []byte(key.Secret)) {
		t.Error("the secret is not encrypted")
	}
	// verify reads the factor as two concurrent requests do, before either is accepted.
	verify := func(read Factor, code string) error {
		return f.tx(func(tx *sqldb.Tx) error { return f.VerifyTOTP(t.Context(), tx, read, code) })
	}
	f.wantErr("the code of the enrolment", verify(added, code()), ErrWrong)
	f.at = f.at.Add(totpPeriod * time.Second)
	f.must(verify(added, code()))
	f.wantErr("the code again, with the factor as read before", verify(added, code()), ErrWrong)
	found, err := f.Find(t.Context(), tenant, ann, added.ID)
	if err != nil || !found.LastUsedAt.Equal(f.at) {
		t.Errorf("%+v, %v", found, err)
	}
	other := found
	other.TenantID = "tnt_b"
	if err := verify(other, code()); err == nil {
		t.Error("the secret is decrypted for another tenant")
	}
}

func TestBackupCodes(t *testing.T) {
	f := open(t)
	renew := func(userID string) (codes []string) {
		f.must(f.tx(func(tx *sqldb.Tx) error {
			var b sqldb.Batch
			var err error
			codes, err = f.NewBackupCodes(&b, tenant, userID)
			return errors.Join(err, tx.Send(t.Context(), &b))
		}))
		return codes
	}
	use := func(userID, code string) error {
		return f.tx(func(tx *sqldb.Tx) error { return f.UseBackupCode(t.Context(), tx, tenant, userID, code) })
	}
	old := renew(ann)
	codes := renew(ann)
	if len(codes) != BackupCodes || len(slices.Compact(slices.Sorted(slices.Values(codes)))) != BackupCodes || len(codes[0]) != codeLen+1 {
		t.Errorf("%q", codes)
	}
	f.wantErr("a replaced code", use(ann, old[0]), ErrWrong)
	f.wantErr("the code of another user", use("usr_bob", codes[0]), ErrWrong)
	f.wantErr("no code", use(ann, ""), ErrWrong)
	look := strings.NewReplacer("0", "O", "1", "l").Replace(strings.ToUpper(strings.ReplaceAll(codes[0], "-", " ")))
	f.must(use(ann, look))
	f.wantErr("the code again", use(ann, codes[0]), ErrWrong)
	if n, err := f.BackupCodesLeft(t.Context(), tenant, ann); n != BackupCodes-1 || err != nil {
		t.Errorf("%d codes are left, %v", n, err)
	}
}

func TestFactors(t *testing.T) {
	f := open(t)
	first, err := f.phone(ann, "first")
	f.must(err)
	if number, err := f.Number(first); err != nil || number != "+4930123456" {
		t.Errorf("%s, %v", number, err)
	}
	f.at = f.at.Add(time.Hour)
	second, err := f.phone(ann, "second")
	f.must(err)
	_, err = f.phone("usr_bob", "another user's")
	f.must(err)
	if got := f.list(ann); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("%q", got)
	}
	_, err = f.Find(t.Context(), tenant, "usr_bob", first.ID)
	f.wantErr("the factor of another user", err, ErrNotFound)
	first.Label = "renamed"
	f.must(f.tx(func(tx *sqldb.Tx) error { return Rename(t.Context(), tx, first) }))
	unknown := first
	unknown.ID = "factor_x"
	f.wantErr("renaming an unknown factor", f.tx(func(tx *sqldb.Tx) error { return Rename(t.Context(), tx, unknown) }), ErrNotFound)
	f.wantErr("removing an unknown factor", f.tx(func(tx *sqldb.Tx) error { return Remove(t.Context(), tx, unknown) }), ErrNotFound)
	f.must(f.tx(func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		f.Used(&b, second)
		_, err := f.NewBackupCodes(&b, tenant, ann)
		return errors.Join(err, tx.Send(t.Context(), &b))
	}))
	if found, err := f.Find(t.Context(), tenant, ann, second.ID); err != nil || !found.LastUsedAt.Equal(f.at) {
		t.Errorf("%+v, %v", found, err)
	}

	// Credentials that were added since an instant, and all backup codes, are removed.
	var removed []Factor
	f.must(f.tx(func(tx *sqldb.Tx) (err error) {
		removed, err = RemoveSince(t.Context(), tx, tenant, ann, f.at)
		return err
	}))
	if len(removed) != 1 || removed[0].ID != second.ID || !slices.Equal(f.list(ann), []string{"renamed"}) {
		t.Errorf("removed %+v, left %q", removed, f.list(ann))
	}
	if n, err := f.BackupCodesLeft(t.Context(), tenant, ann); n != 0 || err != nil {
		t.Errorf("%d backup codes are left, %v", n, err)
	}
	f.must(f.tx(func(tx *sqldb.Tx) error { return Remove(t.Context(), tx, first) }))
	if left, others := f.list(ann), f.list("usr_bob"); len(left) != 0 || len(others) != 1 {
		t.Errorf("left %q and %q", left, others)
	}

	for range MostPerUser {
		_, err := f.phone(ann, "phone")
		f.must(err)
	}
	_, err = f.phone(ann, "one too many")
	f.wantErr("one too many", err, ErrLimit)
}
