package sqlstore

import (
	"testing"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

// The changes and events of commits are compressed with LZ4 if the server has it.
func TestCompression(t *testing.T) {
	db := openDB(t, pgtest.URL(t))
	if db.Dialect() == sqldb.Cockroach {
		return // it compresses its files
	}
	var has bool
	if err := db.QueryRow(t.Context(), `SELECT COALESCE((SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'), FALSE)`).Scan(&has); err != nil {
		t.Fatal(err)
	}
	var columns int
	if err := db.QueryRow(t.Context(), `
		SELECT COUNT(*) FROM pg_attribute
		WHERE attrelid = 'tenant_commits'::regclass AND attname IN ('changes', 'event') AND attcompression = 'l'`).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	want := 0
	if has {
		want = 2
	}
	if columns != want {
		t.Errorf("%d columns are compressed with LZ4, want %d", columns, want)
	}
}
