package main

import (
	"path/filepath"
	"testing"
)

// Without a server the command is not run, and the code is not that of success.
func TestNoServer(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, args := range map[string][]string{
		"nothing":        nil,
		"no binary":      {"", "true"},
		"no command":     {"/bin/true"},
		"missing binary": {filepath.Join(t.TempDir(), "cockroach"), "true"},
		"another binary": {"/bin/true", "true"},
	} {
		if code, err := run(args); code == 0 || err == nil {
			t.Errorf("%s: %d, %v", name, code, err)
		}
	}
}
