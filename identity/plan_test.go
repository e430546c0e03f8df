package identity

import (
	"strings"
	"testing"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
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
		rows, err := db.Query(t.Context(), `EXPLAIN `+statement, "t", "x")
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan.String(), "using "+index+" on") {
			t.Errorf("%s does not use %s:\n%s", statement, index, plan.String())
		}
	}
}
