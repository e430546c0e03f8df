package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"stonetown/tuplestore"
)

// A collection costs one statement while tenants are idle, however many there are, and continues
// one that was not finished.
func TestCollectionOfIdleTenants(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		s := open(t, Config{DB: db})
		write := func(tenant, doc string) {
			t.Helper()
			op := tuplestore.Op{Kind: tuplestore.Create, Tuple: tupleOf([6]string{"doc", doc, "viewer", "user", "ann", ""})}
			if _, err := s.Write(t.Context(), tenant, tuplestore.Write{Ops: []tuplestore.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 20 {
			write(fmt.Sprint("t", n), "1")
			write(fmt.Sprint("t", n), "2")
		}
		later := time.Now().Add(time.Hour)
		pass := func() int64 {
			t.Helper()
			before := db.Stats().Statements
			if err := s.Collect(t.Context(), later, later); err != nil {
				t.Fatal(err)
			}
			if err := s.Expire(t.Context(), later); err != nil {
				t.Fatal(err)
			}
			return db.Stats().Statements - before
		}
		commits := func(tenant string) (n int) {
			t.Helper()
			if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM tenant_commits WHERE tenant_id = $1`, tenant).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		pass()
		if n := commits("t3"); n != 1 {
			t.Fatalf("%d commits are left, want 1", n)
		}
		if n := pass(); n != 2 {
			t.Errorf("%d statements for idle tenants, want 1 for each kind of row", n)
		}
		write("t3", "3")
		exec(t, db, `UPDATE tenant_heads SET min_rev = rev WHERE tenant_id = 't3'`) // and the process died
		exec(t, db, `DELETE FROM tenant_receipts`)
		if pass(); commits("t3") != 1 {
			t.Error("a collection that was not finished is not continued")
		}
	})
}
