package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// purgedTenants purges a tenant that has rows in most tables, and then looks for it in every column
// of every table.
func purgedTenants(t *testing.T, w *world, _ *client) {
	w.ahead.Store(0)
	h := w.household(t, "purged")
	ctx := t.Context()
	tenant, err := w.tenants.TenantByHost(ctx, h.admin.host)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := w.db.TenantTables(ctx)
	if err != nil {
		t.Fatal(err)
	}
	count := func(query string, args ...any) (n int) {
		t.Helper()
		if err := w.db.QueryRow(ctx, query, args...).Scan(&n); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return n
	}
	filled := 0
	for _, table := range tables {
		if count(fmt.Sprintf(`SELECT COUNT(*) FROM "%s" WHERE %s = $1`, table.Name, table.Column), table.Tenant(tenant.ID)) > 0 {
			filled++
		}
	}
	if filled < 15 {
		t.Errorf("the tenant has rows in %d tables only", filled)
	}
	if _, err := w.tenants.Decommission(ctx, tenant.ID, eventlog.Origin{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Exec(ctx, `UPDATE tenants SET purge_at = 1 WHERE id = $1`, tenant.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "the tenant is purged", func() bool {
		if err := w.tenants.Purge(ctx); err != nil {
			t.Fatal(err)
		}
		return count(`SELECT COUNT(*) FROM tenants WHERE id = $1 AND purge_at = 0`, tenant.ID) == 1
	})
	var found []string
	for _, table := range tables { // some name the tenant by its number
		if count(fmt.Sprintf(`SELECT COUNT(*) FROM "%s" WHERE %s = $1`, table.Name, table.Column), table.Tenant(tenant.ID)) > 0 {
			found = append(found, table.Name)
		}
	}
	for _, column := range columns(t, w.db) {
		table, name, _ := strings.Cut(column, ".")
		if n := count(fmt.Sprintf(`SELECT COUNT(*) FROM "%s" WHERE CAST("%s" AS TEXT) LIKE $1`, table, name), "%"+tenant.ID+"%"); n > 0 {
			found = append(found, column)
		}
	}
	// What stays says that there was a tenant: its slug and host are never used again.
	equal(t, "columns with its id", slices.Sorted(slices.Values(found)), []string{"events.data", "tenants.id"})
	equal(t, "events with its id", count(`SELECT COUNT(*) FROM events WHERE tenant_id <> $1 AND data LIKE $2`, w.org, "%"+tenant.ID+"%"), 0)
}

// columns lists table.column of the tables.
func columns(t *testing.T, db *sqldb.DB) []string {
	t.Helper()
	query := `SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = current_schema()`
	if db.Dialect() == sqldb.SQLite {
		query = `SELECT m.name || '.' || c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'`
	}
	list, err := sqldb.Texts(db.Query(t.Context(), query))
	if err != nil || len(list) < 100 {
		t.Fatalf("%d columns, %v", len(list), err)
	}
	return list
}
