//go:build rehearsal

package sqldb

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// With the build tag rehearsal a PostgreSQL server is taken for CockroachDB: the
// tests then send the statements that CockroachDB would get. Transactions are still
// retried as PostgreSQL needs it. Each distinct statement is written to a file in the folder
// STONETOWN_REHEARSAL, to be read by tools/cockroach.
func init() {
	rehearsal = true
	dir := os.Getenv("STONETOWN_REHEARSAL")
	if dir == "" {
		return
	}
	file, err := os.CreateTemp(dir, filepath.Base(os.Args[0])+"-*.sql")
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	observe = func(sql string) {
		mu.Lock()
		defer mu.Unlock()
		if seen[sql] {
			return
		}
		seen[sql] = true
		if bytes.ContainsRune([]byte(sql), 0) {
			panic("a statement with NUL")
		}
		if _, err := fmt.Fprintf(file, "%s\x00", sql); err != nil {
			panic(err)
		}
	}
}
