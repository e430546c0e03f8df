package sqldb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// After readers have read more than all caches hold, the writer soon has its pages in the cache
// again.
func TestWriterCache(t *testing.T) {
	db := open(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"))
	exec(t, db, `CREATE TABLE large (id BIGINT PRIMARY KEY, text TEXT NOT NULL)`)
	exec(t, db, `CREATE TABLE small (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)`)
	exec(t, db, `INSERT INTO small VALUES (1, 0)`)
	const mib = 64 // the caches have 32, and 4 for each reader
	exec(t, db, `INSERT INTO large WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < $1)
		SELECT id, $2 FROM n`, mib*1024/2, strings.Repeat("x", 1900))
	write := func() {
		p, err := db.Pipeline(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Rollback()
		b := new(Batch)
		for id := range 20 {
			b.Queue(`UPDATE large SET text = $2 WHERE id = $1`, []any{1 + id*1500, fmt.Sprintf("%1900d", id)}, nil)
		}
		if err := p.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		write()
		var n int64
		if err := db.QueryRow(t.Context(), `SELECT SUM(LENGTH(text)) FROM large`).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	for range commitsOfCache {
		write()
	}
	before := reads(t)
	for range 100 {
		write()
	}
	if n := reads(t) - before; n > 100 {
		t.Errorf("100 commits read %d times from files", n)
	}
}

// reads returns how often the process has read from files.
func reads(t *testing.T) (n int) {
	io, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(io), "syscr: ")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
