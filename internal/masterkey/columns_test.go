package masterkey_test

import (
	"path/filepath"
	"slices"
	"testing"

	"stonetown/internal/masterkey"
	"stonetown/internal/sqldb"
	"stonetown/server"
)

// Every column of bytes is sealed, or known to be of another kind: a column that a rotation does
// not know would be lost with the old key.
func TestSealedColumns(t *testing.T) {
	notSealed := []string{
		"applications.previous_secret_hash", "applications.secret_hash", "idempotency_keys.request_hash", "idempotency_keys.scope_hash",
		"branding_pictures.data", "saml_keys.certificate", "sessions.token_hash", "tenant_receipts.request_hash", "tenant_schemas.document",
		"threat_lists.data",
	}
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := server.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	tables, err := db.TablesWith(t.Context(), "tenant_id")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, table := range tables {
		columns, err := db.Columns(t.Context(), table.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range columns {
			if name := table.Name + "." + c.Name; c.Type == sqldb.Bytes && !slices.Contains(notSealed, name) {
				have = append(have, name)
			}
		}
	}
	want := masterkey.Sealed()
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the database has the columns %q, a rotation knows %q", have, want)
	}
}
