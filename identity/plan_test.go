package identity

import (
	"testing"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/internal/sqldb/sqltest"
)

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
	for statement, index := range map[string]string{
		`SELECT ` + userColumns + ` FROM users u WHERE u.tenant_id = $1 AND u.id = $2`:                                                                                          "users_pkey",
		`SELECT ` + userColumns + ` FROM users u WHERE u.tenant_id = $1 AND u.email_norm = $2 AND u.email_norm <> ''`:                                                           "users_by_email",
		`SELECT ` + userColumns + ` FROM users u WHERE u.tenant_id = $1 AND u.created_at > 0 AND u.id <> $2 ORDER BY u.created_at DESC, u.id DESC LIMIT 50`:                     "users_by_creation",
		`SELECT ` + userColumns + ` FROM users u WHERE u.tenant_id = $1 AND u.created_at > 0 AND u.state = $2 AND u.state <> '' ORDER BY u.created_at DESC, u.id DESC LIMIT 50`: "users_by_state",
		`SELECT ` + groupColumns + ` FROM user_groups WHERE tenant_id = $1 AND id = $2`:                                                                                         "user_groups_pkey",
		`SELECT ` + groupColumns + ` FROM user_groups WHERE tenant_id = $1 AND slug = $2 AND slug <> ''`:                                                                        "user_groups_by_slug",
	} {
		sqltest.UsesIndex(t, db, index, statement, "t", "x")
	}
}
