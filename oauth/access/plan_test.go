package access_test

import (
	"testing"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/internal/sqldb/sqltest"
	"stonetown/oauth"
	"stonetown/oauth/access"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Statements use indexes.
func TestPlansUseIndexes(t *testing.T) {
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: pgtest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), oauth.Migrations()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO grants (tenant_id, id, client_id, user_id, session_id, scope, audience, nonce, methods, auth_time, second_factor_at, created_at, expires_at, revoked_at, name_id)
			SELECT 't' || (g % 5), 'g' || g, 'c' || (g % 50), 'u' || (g % 5000), 's' || (g % 10000), '', '', '', '', g, 0, g, g, 0, CASE WHEN g % 2 = 0 THEN '' ELSE 'n' || (g % 5000) END
			FROM generate_series(1, 40000) g`,
		`INSERT INTO applications (tenant_id, client_id, id, name, type, state, allowed_scopes, audience, access_token_ttl_s, signing_alg, secret_hash, previous_secret_hash, previous_expires_at, created_at, entity_id)
			SELECT 't' || (g % 5), 'c' || g, 'a' || g, 'n', 'saml', 'enabled', '', '', 1, 'ES256', '', '', 0, g, CASE WHEN g % 2 = 0 THEN '' ELSE 'e' || g END
			FROM generate_series(1, 20000) g`,
		`INSERT INTO authorizations (tenant_id, user_id, client_id, scopes, created_at, used_at)
			SELECT 't' || (g % 5), 'u' || g, 'c' || (g % 20), '', g, g FROM generate_series(1, 40000) g`,
		`ANALYZE grants`, `ANALYZE applications`, `ANALYZE authorizations`,
	} {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		statement string
		args      []any
		index     string
	}{
		{access.SelectSignIn, []any{"t1", "s1", "c1", "n1", int64(0)}, "grants_by_"},
		{access.SelectSignIns, []any{"t1", "c1", "n1", int64(100)}, "grants_by_name_id"},
		{access.SelectUsers, []any{"t1", "c1", "u1", int64(50)}, "authorizations_of_client"},
		{access.SelectParticipants, []any{"t1", "s1", int64(100)}, "grants_by_session"},
		{`SELECT id FROM applications WHERE tenant_id = $1 AND entity_id = $2 AND entity_id <> '' ORDER BY created_at, id LIMIT 1`, []any{"t1", "e1"}, "applications_by_entity_id"},
	} {
		sqltest.UsesIndex(t, db, tc.index, tc.statement, tc.args...)
	}
}
