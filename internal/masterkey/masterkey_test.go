package masterkey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var now = time.Unix(1_700_000_000, 0)

// newKey returns a key whose bytes are all equal.
func newKey(t *testing.T, fill byte) *seal.Key {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{fill}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// onEach runs a test on each kind of database, with tables of the shape of the product's.
func onEach(t *testing.T, test func(t *testing.T, db *sqldb.DB)) {
	for name, url := range map[string]string{"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "test.db"), "PostgreSQL": pgtest.URL(t)} {
		t.Run(name, func(t *testing.T) {
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(t.Context(), Migrations()); err != nil {
				t.Fatal(err)
			}
			binary := "BYTEA"
			if db.Dialect() == sqldb.SQLite {
				binary = "BLOB"
			}
			made := map[string]bool{}
			for _, c := range sealed {
				kind := "TEXT"
				if c.of == "scope_hash" {
					kind = binary
				}
				if made[c.table] {
					exec(t, db, fmt.Sprintf(`ALTER TABLE %s ADD COLUMN %s %s NOT NULL DEFAULT ''`, c.table, c.name, binary))
					continue
				}
				made[c.table] = true
				exec(t, db, fmt.Sprintf(`CREATE TABLE %s (tenant_id TEXT NOT NULL, %s %s NOT NULL, %s %s NOT NULL DEFAULT '', PRIMARY KEY (tenant_id, %[2]s))`, c.table, c.of, kind, c.name, binary))
			}
			test(t, db)
		})
	}
}

func exec(t *testing.T, db *sqldb.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// put stores a value in a column, sealed under a key.
func put(t *testing.T, db *sqldb.DB, key *seal.Key, c column, tenant, of, value string) {
	t.Helper()
	var arg any = of
	if c.of == "scope_hash" {
		arg = []byte(of)
	}
	exec(t, db, fmt.Sprintf(`INSERT INTO %s (tenant_id, %s, %s) VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id, %[2]s) DO UPDATE SET %[3]s = excluded.%[3]s`, c.table, c.of, c.name),
		tenant, arg, key.Seal(tenant, c.idOf(of), []byte(value)))
}

// get opens all values of a column, by tenant and row.
func get(t *testing.T, db *sqldb.DB, key *seal.Key, c column) map[string]string {
	t.Helper()
	values := map[string]string{}
	rows, err := db.Query(t.Context(), fmt.Sprintf(`SELECT tenant_id, %s, %s FROM %s`, c.of, c.name, c.table))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var tenant string
		var of, value []byte
		if err := rows.Scan(&tenant, &of, &value); err != nil {
			t.Fatal(err)
		}
		plain, err := key.Open(tenant, c.idOf(string(of)), value)
		if err != nil {
			t.Errorf("%s.%s of %s: %v", c.table, c.name, of, err)
		}
		values[tenant+" "+string(of)] = string(plain)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

func open(t *testing.T, db *sqldb.DB, key *seal.Key) *seal.Key {
	t.Helper()
	key, err := Open(t.Context(), db, key, now)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A rotation seals every value again, keeps what is derived, and ends with the old key refused.
func TestRotation(t *testing.T) {
	onEach(t, func(t *testing.T, db *sqldb.DB) {
		before, after := newKey(t, 1), newKey(t, 2)
		old := open(t, db, before)
		derived := old.Derive("x")
		ofTenant, err := old.DeriveFor("tnt_a", "x")
		if err != nil {
			t.Fatal(err)
		}
		const n = 2*pageSize + 7 // three pages
		for _, c := range sealed {
			for i := range n {
				put(t, db, old, c, fmt.Sprintf("tnt_%d", i%3), fmt.Sprintf("row%04d", i), fmt.Sprintf("%s %d", c.name, i))
			}
		}
		// Every process can open the new key's values first; nothing is sealed under it yet.
		first := open(t, db, before.WithOthers(after))
		if done, err := (Rotation{db, first, slog.New(slog.DiscardHandler)}).Pass(t.Context()); err != nil || done != 0 {
			t.Fatalf("a pass before the new key is first: %d, %v", done, err)
		}
		rotating := open(t, db, after.WithOthers(before))
		// A process with the former order does not reverse the direction.
		put(t, db, rotating, sealed[1], "tnt_a", "fresh", "fresh")
		if done, err := (Rotation{db, first, slog.New(slog.DiscardHandler)}).Pass(t.Context()); err != nil || done != 0 {
			t.Fatalf("a pass of a process with the former order: %d, %v", done, err)
		}
		if _, err := Open(t.Context(), db, before, now); !errors.Is(err, ErrMissing) {
			t.Errorf("a file with the old key alone: %v", err)
		}
		if _, err := Open(t.Context(), db, after, now); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "tenant_keys") {
			t.Errorf("a file with the new key alone, too early: %v", err)
		}
		for name, key := range map[string]*seal.Key{"old": before, "new": after} {
			if _, err := Load(t.Context(), db, key); !errors.Is(err, ErrMissing) {
				t.Errorf("the %s key alone, for reading: %v", name, err)
			}
		}
		if _, err := Load(t.Context(), db, newKey(t, 3)); !errors.Is(err, seal.ErrWrongKey) {
			t.Errorf("a key of another database, for reading: %v", err)
		}
		pass := Rotation{db, rotating, slog.New(slog.DiscardHandler)}
		if done, err := pass.Pass(t.Context()); err != nil || done != n*len(sealed) {
			t.Fatalf("sealed %d values again, %v, want %d", done, err, n*len(sealed))
		}
		if done, err := pass.Pass(t.Context()); err != nil || done != 0 {
			t.Errorf("a second pass: %d, %v", done, err)
		}
		use, err := Status(t.Context(), db, rotating)
		if err != nil || len(use) != 2 || use[0].Values != int64(n*len(sealed))+1 || use[1].Values != 0 || !use[1].Known || use[1].Retired {
			t.Errorf("status %+v, %v", use, err)
		}
		last := open(t, db, after)
		if _, err := Open(t.Context(), db, before, now); !errors.Is(err, ErrRetired) {
			t.Errorf("the old key: %v", err)
		}
		if _, err := Open(t.Context(), db, before.WithOthers(after), now); !errors.Is(err, ErrRetired) {
			t.Errorf("the old key, first: %v", err)
		}
		if _, err := Load(t.Context(), db, before); !errors.Is(err, ErrRetired) {
			t.Errorf("the old key, for reading: %v", err)
		}
		for _, c := range sealed {
			values := get(t, db, last, c)
			for i := range n {
				if name := fmt.Sprintf("tnt_%d row%04d", i%3, i); values[name] != fmt.Sprintf("%s %d", c.name, i) {
					t.Fatalf("%s.%s of %s is %q", c.table, c.name, name, values[name])
				}
			}
		}
		loaded, err := Load(t.Context(), db, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []*seal.Key{last, loaded} {
			if !bytes.Equal(key.Derive("x"), derived) {
				t.Error("values that are derived for the deployment have changed")
			}
			if got, err := key.DeriveFor("tnt_a", "x"); err != nil || !bytes.Equal(got, ofTenant) {
				t.Errorf("values that are derived for a tenant have changed, %v", err)
			}
		}
		if bytes.Equal(derived, before.Derive("x")) {
			t.Error("the root of a new database is its master key")
		}
	})
}

// What an older version derived from the master key remains, whichever key is first by then.
func TestRootOfOlderDatabase(t *testing.T) {
	onEach(t, func(t *testing.T, db *sqldb.DB) {
		before, after := newKey(t, 1), newKey(t, 2)
		put(t, db, before, sealed[1], "tnt_a", "kid", "private")
		if _, err := Open(t.Context(), db, after, now); !errors.Is(err, seal.ErrWrongKey) {
			t.Fatalf("a wrong key: %v", err)
		}
		key := open(t, db, after.WithOthers(before))
		if !bytes.Equal(key.Derive("x"), before.Derive("x")) {
			t.Error("the root is not the key under which the values were sealed")
		}
	})
}

// A value that changes during the pass is not overwritten, and a damaged one stays.
func TestPassBesideWrites(t *testing.T) {
	onEach(t, func(t *testing.T, db *sqldb.DB) {
		before, after := newKey(t, 1), newKey(t, 2)
		old := open(t, db, before)
		c := sealed[1]
		for i := range 50 {
			put(t, db, old, c, "tnt_a", fmt.Sprintf("row%02d", i), "0")
		}
		exec(t, db, `INSERT INTO signing_keys (tenant_id, kid, private_sealed) VALUES ('tnt_a', 'damaged', $1)`, old.Seal("tnt_a", "another row", nil))
		rotating := open(t, db, after.WithOthers(before))
		ctx, stop := context.WithCancel(t.Context())
		written := make(chan int)
		go func() {
			n := 0
			for ctx.Err() == nil {
				n++
				for i := range 50 { // a process that still seals under the old key
					put(t, db, old, c, "tnt_a", fmt.Sprintf("row%02d", i), fmt.Sprint(n))
				}
			}
			written <- n
		}()
		pass := Rotation{db, rotating, slog.New(slog.DiscardHandler)}
		for range 20 {
			if _, err := pass.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), "1 sealed values are damaged") {
				t.Errorf("a pass with a damaged value: %v", err)
			}
		}
		stop()
		want := fmt.Sprint(<-written)
		exec(t, db, `DELETE FROM signing_keys WHERE kid = 'damaged'`)
		if _, err := pass.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		for row, value := range get(t, db, after, c) {
			if value != want {
				t.Errorf("%s is %s, want the last write, %s", row, value, want)
			}
		}
	})
}
