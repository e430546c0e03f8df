package transfer

import (
	"path/filepath"
	"slices"
	"testing"

	"stonetown/internal/sqldb"
	"stonetown/server"
)

// Every table with a tenant is in one of the two lists, and both name tables that exist. For a new
// table decide whether its rows are a part of the tenant.
func TestEveryTableIsListed(t *testing.T) {
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := server.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	all, err := db.TenantTables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var have, listed []string
	for _, table := range all {
		have = append(have, table.Name)
	}
	listed = append(listed, moved...)
	for name := range stays {
		listed = append(listed, name)
	}
	slices.Sort(listed)
	if !slices.Equal(have, listed) {
		t.Errorf("in no list: %q; no tables: %q", without(have, listed), without(listed, have))
	}
	if list, err := tables(t.Context(), db); err != nil || len(list) != len(moved) {
		t.Errorf("%d tables move, %v, want %d", len(list), err, len(moved))
	}
}
