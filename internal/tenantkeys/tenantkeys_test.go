package tenantkeys

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func testKey(t *testing.T, fill byte) *seal.Key {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{fill}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A value of another deployment is opened while a transaction holds every connection of the pool.
func TestKeys(t *testing.T) {
	for name, url := range map[string]string{"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "test.db"), "PostgreSQL": pgtest.URL(t)} {
		t.Run(name, func(t *testing.T) {
			config := sqldb.Config{URL: url, MaxConns: 1}
			db, err := sqldb.Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.Migrate(t.Context(), Migrations()); err != nil {
				t.Fatal(err)
			}
			origin, between, master := testKey(t, 1), testKey(t, 2), testKey(t, 3)
			err = db.Tx(t.Context(), func(tx *sqldb.Tx) error {
				var b sqldb.Batch
				Add(&b, master, "tnt_a", []*seal.TenantKey{origin.Tenant("tnt_a"), between.Tenant("tnt_a")})
				return tx.Send(t.Context(), &b)
			})
			if err != nil {
				t.Fatal(err)
			}
			store, err := New(master, config)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			key := master.WithImported(store)
			err = db.Tx(t.Context(), func(*sqldb.Tx) error {
				for want, from := range map[string]*seal.Key{"origin": origin, "between": between, "here": key} {
					for range 2 { // the second one from memory
						got, err := key.Open("tnt_a", "row", from.Seal("tnt_a", "row", []byte(want)))
						if err != nil || string(got) != want {
							t.Errorf("Open = %q, %v, want %q", got, err, want)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if keys, err := store.Keys("tnt_b"); err != nil || len(keys) != 0 {
				t.Errorf("%d keys of a tenant that was not imported, %v", len(keys), err)
			}
			if _, err := Read(t.Context(), db, testKey(t, 4), "tnt_a"); !errors.Is(err, seal.ErrWrongKey) {
				t.Errorf("with another master key: %v, want ErrWrongKey", err)
			}
		})
	}
}
