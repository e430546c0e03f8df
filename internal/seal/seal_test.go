package seal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testKey(t *testing.T, fill byte) *Key {
	t.Helper()
	key, err := NewKey(bytes.Repeat([]byte{fill}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSealOpen(t *testing.T) {
	key := testKey(t, 1)
	for _, plaintext := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("long "), 1000)} {
		sealed := key.Seal("tnt_a", "row1", plaintext)
		if len(plaintext) > 1 && bytes.Contains(sealed, plaintext) {
			t.Error("the sealed value holds the plaintext")
		}
		got, err := key.Open("tnt_a", "row1", sealed)
		if err != nil || !bytes.Equal(got, plaintext) {
			t.Errorf("Open = %q, %v, want %q", got, err, plaintext)
		}
	}
	if bytes.Equal(key.Seal("t", "r", nil), key.Seal("t", "r", nil)) {
		t.Error("two seals of one value are equal: the nonce is not random")
	}
}

func TestOpenRefuses(t *testing.T) {
	key := testKey(t, 1)
	sealed := key.Seal("tnt_a", "row1", []byte("secret"))

	if _, err := key.Open("tnt_b", "row1", sealed); !errors.Is(err, ErrCorrupt) {
		t.Errorf("another tenant: %v, want ErrCorrupt", err)
	}
	if _, err := key.Open("tnt_a", "row2", sealed); !errors.Is(err, ErrCorrupt) {
		t.Errorf("another row: %v, want ErrCorrupt", err)
	}
	if _, err := testKey(t, 2).Open("tnt_a", "row1", sealed); !errors.Is(err, ErrWrongKey) {
		t.Errorf("another key: %v, want ErrWrongKey", err)
	}
	for n := range sealed {
		if _, err := key.Open("tnt_a", "row1", sealed[:n]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v, want ErrCorrupt", n, err)
		}
		flipped := bytes.Clone(sealed)
		flipped[n] ^= 1
		if _, err := key.Open("tnt_a", "row1", flipped); err == nil {
			t.Fatalf("opened with byte %d changed", n)
		}
	}
}

func TestDerive(t *testing.T) {
	key := testKey(t, 1)
	if a, b := key.Derive("cursors"), testKey(t, 1).Derive("cursors"); !bytes.Equal(a, b) || len(a) != KeySize {
		t.Errorf("derived %x and %x, want the same %d bytes", a, b, KeySize)
	}
	for name, other := range map[string][]byte{
		"another purpose": key.Derive("cursor"), "another key": testKey(t, 2).Derive("cursors"), "the key itself": bytes.Repeat([]byte{1}, KeySize),
	} {
		if bytes.Equal(key.Derive("cursors"), other) {
			t.Errorf("derived the same bytes as %s", name)
		}
	}
}

// moved are the keys of one tenant.
type moved struct {
	tenant string
	keys   []*TenantKey
	err    error
}

func (m moved) Keys(tenant string) ([]*TenantKey, error) {
	if m.err != nil || tenant != m.tenant {
		return nil, m.err
	}
	return m.keys, nil
}

// A tenant that has moved twice keeps what was sealed and derived for it, and other tenants get
// nothing of it.
func TestImportedKeys(t *testing.T) {
	first, second, third := testKey(t, 1), testKey(t, 2), testKey(t, 3)
	inFirst := first.Seal("tnt_a", "row", []byte("first"))
	inSecond := second.Seal("tnt_a", "row", []byte("second"))
	var keys []*TenantKey
	for _, from := range []*Key{first, second} {
		own := from.Tenant("tnt_a")
		key, err := NewTenantKey(own.ID(), own.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	here := third.WithImported(moved{tenant: "tnt_a", keys: keys})
	for want, sealed := range map[string][]byte{"first": inFirst, "second": inSecond, "third": here.Seal("tnt_a", "row", []byte("third"))} {
		if got, err := here.Open("tnt_a", "row", sealed); err != nil || string(got) != want {
			t.Errorf("Open = %q, %v, want %q", got, err, want)
		}
		if _, err := here.Open("tnt_a", "other", sealed); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s, in another row: %v, want ErrCorrupt", want, err)
		}
	}
	if _, err := here.Open("tnt_b", "row", first.Seal("tnt_b", "row", nil)); !errors.Is(err, ErrWrongKey) {
		t.Errorf("a tenant that was not imported: %v, want ErrWrongKey", err)
	}
	if _, err := third.Open("tnt_a", "row", inFirst); !errors.Is(err, ErrWrongKey) {
		t.Errorf("without the keys: %v, want ErrWrongKey", err)
	}
	for tenant, want := range map[string]*Key{"tnt_a": first, "tnt_b": third} {
		expected, err := want.DeriveFor(tenant, "names")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := here.DeriveFor(tenant, "names"); err != nil || !bytes.Equal(got, expected) {
			t.Errorf("%s: derived %x, %v, want %x", tenant, got, err, expected)
		}
	}
	unreadable := third.WithImported(moved{err: os.ErrDeadlineExceeded})
	if _, err := unreadable.Open("tnt_a", "row", inFirst); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrWrongKey) {
		t.Errorf("keys that cannot be read: %v", err)
	}
	if _, err := unreadable.DeriveFor("tnt_a", "names"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("keys that cannot be read: %v", err)
	}
}

func TestKeyID(t *testing.T) {
	id := testKey(t, 1).Tenant("tnt_a").ID()
	if got, err := ParseKeyID(id.String()); err != nil || got != id {
		t.Errorf("%v, %v, want %v", got, err, id)
	}
	for _, text := range []string{"", "00", "0011223344", "zz112233"} {
		if _, err := ParseKeyID(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if _, err := NewTenantKey(id, make([]byte, 16)); err == nil {
		t.Error("a short key is accepted")
	}
}

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	if _, err := ReadKeyFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("ReadKeyFile of a missing file: %v, want ErrNotExist", err)
	}
	first, err := OpenKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("key file has mode %v, want 0600", mode)
	}
	second, err := OpenKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := second.Open("t", "r", first.Seal("t", "r", []byte("kept"))); err != nil || string(got) != "kept" {
		t.Errorf("a second start read another key: %q, %v", got, err)
	}
}

func TestKeyFileInvalid(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "short": "c2hvcnQ=\n", "not base64": "hunter2 hunter2!\n",
	} {
		path := filepath.Join(t.TempDir(), "master.key")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenKeyFile(path)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %q should name the file and not its content", name, err)
		}
	}
}

func TestKeyPrintsNothing(t *testing.T) {
	key := testKey(t, 7)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, key); got != "seal.Key(redacted)" {
			t.Errorf("%s prints %q", verb, got)
		}
		if got := fmt.Sprintf(verb, key.Tenant("tnt_a")); got != "seal.TenantKey(redacted)" {
			t.Errorf("%s prints %q", verb, got)
		}
	}
}

func BenchmarkSealOpen(b *testing.B) {
	key, err := NewKey(make([]byte, KeySize))
	if err != nil {
		b.Fatal(err)
	}
	secret := make([]byte, 100)
	for b.Loop() {
		if _, err := key.Open("tnt_a", "row", key.Seal("tnt_a", "row", secret)); err != nil {
			b.Fatal(err)
		}
	}
}
