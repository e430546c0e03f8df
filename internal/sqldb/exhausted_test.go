package sqldb

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"stonetown/internal/pgtest"
)

// A full disk is an error of its own. The database works again when there is space.
func TestFullDisk(t *testing.T) {
	db := open(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"))
	exec(t, db, `CREATE TABLE texts (text TEXT NOT NULL)`)
	room := func(pages int) {
		t.Helper()
		err := db.Tx(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(t.Context(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	insert := func() error {
		return db.Tx(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO texts VALUES ($1)`, strings.Repeat("x", 1<<16))
			return err
		})
	}
	room(1) // as many as there are
	for range 3 {
		if err := insert(); !IsExhausted(err) || IsUnavailable(err) {
			t.Errorf("without room: %v", err)
		}
	}
	room(1 << 20)
	if err := insert(); err != nil {
		t.Errorf("with room again: %v", err)
	}
	var n int64
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM texts`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}

	server := open(t, pgtest.URL(t))
	for code, want := range map[string]bool{"53100": true, "53200": true, "53300": true, "23505": false, "57P01": false} {
		_, err := server.Exec(t.Context(), `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '`+code+`'; END $$`)
		if err == nil || IsExhausted(err) != want {
			t.Errorf("%s: %v", code, err)
		}
	}
}
