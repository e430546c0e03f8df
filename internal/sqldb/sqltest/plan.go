// Package sqltest has what tests of tables share.
package sqltest

import (
	"strings"
	"testing"

	"stonetown/internal/sqldb"
)

// UsesIndex fails the test unless PostgreSQL plans a statement without a scan of a whole table, by
// an index whose name begins with index.
func UsesIndex(t testing.TB, db *sqldb.DB, index, statement string, args ...any) {
	t.Helper()
	lines, err := sqldb.Texts(db.Query(t.Context(), `EXPLAIN `+statement, args...))
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	plan := strings.Join(lines, "\n")
	used := strings.Contains(plan, "using "+index) || strings.Contains(plan, "Bitmap Index Scan on "+index)
	if !used || strings.Contains(plan, "Seq Scan") {
		t.Errorf("%s does not use the index %s:\n%s", statement, index, plan)
	}
}
