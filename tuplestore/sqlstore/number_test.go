package sqlstore

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// The migration gives a tenant the number that its tuples have, and no other tenant gets it.
func TestTenantNumbers(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		s := open(t, Config{DB: db})
		if _, err := s.Write(t.Context(), "tënant", tuplestore.Write{Ops: []tuplestore.Op{creation("1", "ann")}}); err != nil {
			t.Fatal(err)
		}
		want := sqldb.TenantNumber("tënant")
		numbers := func() (head, tuple int64) {
			t.Helper()
			if err := db.QueryRow(t.Context(), `SELECT h.tenant_number, t.tenant_number FROM tenant_heads AS h CROSS JOIN tuples AS t`).Scan(&head, &tuple); err != nil {
				t.Fatal(err)
			}
			return head, tuple
		}
		if head, tuple := numbers(); head != want || tuple != want {
			t.Errorf("numbers %d and %d, want %d", head, tuple, want)
		}
		if db.Dialect() != sqldb.Cockroach { // which has no such migration
			update, err := fs.ReadFile(Migrations().FS, db.Dialect().String()+"/01001_tenant_heads_numbers.sql")
			if err != nil {
				t.Fatal(err)
			}
			exec(t, db, `UPDATE tenant_heads SET tenant_number = 0`)
			exec(t, db, strings.TrimPrefix(string(update), "-- +goose NO TRANSACTION\n-- +goose Up\n"))
			if head, _ := numbers(); head != want {
				t.Errorf("the migration has %d, want %d", head, want)
			}
		}
		exec(t, db, `UPDATE tenant_heads SET tenant_number = 0`)
		var b sqldb.Batch
		BeginTenantEpoch(&b, "tënant")
		if err := db.Tx(t.Context(), func(tx *sqldb.Tx) error { return tx.Send(t.Context(), &b) }); err != nil {
			t.Fatal(err)
		}
		if head, _ := numbers(); head != want {
			t.Errorf("an imported tenant has %d, want %d", head, want)
		}
		exec(t, db, `UPDATE tenant_heads SET tenant_number = $1`, sqldb.TenantNumber("other"))
		if _, err := s.Write(t.Context(), "other", tuplestore.Write{Ops: []tuplestore.Op{creation("1", "ann")}}); !errors.Is(err, errNoHead) {
			t.Errorf("a tenant has the number of another one: %v", err)
		}
	})
}
