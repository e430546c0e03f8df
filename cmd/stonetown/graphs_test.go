package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
)

// A server that starts again reads a tenant from the folder that the one before left.
func TestGraphDir(t *testing.T) {
	dir := t.TempDir()
	var lines strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&lines, `{"resource":{"type":"document","external_id":"%d"},"relation":"viewer","subject":{"type":"user","id":"%d"}}`+"\n", i, i)
	}
	files := folder(t, map[string]string{"schema.zed": zedSchema, "relations.ndjson": lines.String()})

	// runs starts a server, and stops it when the tenant is resident.
	runs := func(before func(), args ...string) engine.Stats {
		t.Helper()
		s := start(t, append([]string{"--dev", "--data-dir", dir}, args...)...)
		before()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			want(t, dir, "check", "user:77", "view", "document:77")
			if stats := s.server.Engine.Stats(); stats.Loads+stats.LoadsRestored > 0 {
				if err := s.wait(); err != nil {
					t.Error(err)
				}
				return stats
			}
			if time.Now().After(deadline) {
				t.Fatal("the tenant is not resident")
			}
		}
	}
	graphs := func() int {
		paths, err := filepath.Glob(filepath.Join(dir, "graphs", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
		return len(paths)
	}
	load := func() {
		want(t, dir, "import", filepath.Join(files, "schema.zed"))
		want(t, dir, "import", "--bulk", filepath.Join(files, "relations.ndjson"))
	}
	if stats := runs(load, "--graph-dir", "none"); stats.LoadsRestored != 0 || graphs() != 0 {
		t.Errorf("%d graphs restored, %d files", stats.LoadsRestored, graphs())
	}
	nothing := func() {}
	if stats := runs(nothing); stats.LoadsRestored != 0 || graphs() != 1 {
		t.Errorf("%d graphs restored, %d files", stats.LoadsRestored, graphs())
	}
	if stats := runs(nothing); stats.LoadsRestored != 1 || stats.Loads != 0 {
		t.Errorf("%d graphs restored, %d loaded", stats.LoadsRestored, stats.Loads)
	}
}
