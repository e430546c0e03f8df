package keys_test

import (
	"testing"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/internal/sqldb/sqltest"
	"stonetown/oauth"
	"stonetown/oauth/keys"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// No statement reads the keys of all tenants.
func TestPlansUseIndexes(t *testing.T) {
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: pgtest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), oauth.Migrations()); err != nil {
		t.Fatal(err)
	}
	fill := `
		INSERT INTO signing_keys (tenant_id, kid, alg, state, private_sealed, created_at, due_at)
		SELECT 't' || g, 'k' || g, 'ES256', 'active', 'x', g, g FROM generate_series(1, 20000) g`
	for _, statement := range []string{fill, `ANALYZE signing_keys`} {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		index, statement string
		args             []any
	}{
		{"signing_keys_", keys.SelectTenantKeys, []any{"t1"}},
		{"signing_keys_active", keys.CountActive, []any{"t1", "ES256"}},
		{"signing_keys_by_due_at", keys.SelectDueKeys, []any{int64(50), int64(0), "", 100}},
		{"signing_keys_by_due_at", keys.DeleteRecords, []any{int64(50)}},
	} {
		sqltest.UsesIndex(t, db, tc.index, tc.statement, tc.args...)
	}
}
