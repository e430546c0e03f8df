package sqlstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// When the disk is full, writes fail with an error that names the cause, and reads work. No
// acknowledged write is lost, and writes work again when there is space.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db := openDB(t, "sqlite://"+path)
	s := open(t, Config{DB: db})
	pages := func(most int64) {
		t.Helper()
		err := db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			return tx.QueryRow(t.Context(), fmt.Sprintf("PRAGMA max_page_count(%d)", most)).Scan(&most)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(id string) error {
		_, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{op(tuplestore.Create, id+strings.Repeat("x", 400))}})
		return err
	}
	pages(120)
	var there []string
	var err error
	for i := 0; err == nil; i++ {
		if id := fmt.Sprint(i); i > 10_000 {
			t.Fatal("it never fills up")
		} else if err = write(id); err == nil {
			there = append(there, id)
		}
	}
	if !strings.Contains(err.Error(), "full") || len(there) < 20 {
		t.Fatalf("after %d writes: %v", len(there), err)
	}
	exact := func() {
		t.Helper()
		head, err := s.Head(t.Context(), "t")
		if err != nil || int(head.Revision) != len(there) {
			t.Fatalf("head %+v, %v, want %d", head, err, len(there))
		}
		n := 0
		for _, err := range s.Snapshot("t", head.Revision).Scan(t.Context(), tuplestore.Filter{}) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != len(there) {
			t.Errorf("%d tuples, want %d", n, len(there))
		}
	}
	exact()
	for i := range 50 { // some may still fit
		if id := fmt.Sprint("late ", i); write(id) == nil {
			there = append(there, id)
		}
	}
	exact()
	pages(100_000)
	if err := write("room"); err != nil {
		t.Fatal(err)
	}
	there = append(there, "room")
	exact()
	if err := db.CheckIntegrity(t.Context()); err != nil {
		t.Error(err)
	}
}
