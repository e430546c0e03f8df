package stonetown_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Without a binary of CockroachDB, make test-cockroach fails at once, with one line that
// says what it needs. It must not pass as if it had tested something.
func TestCockroachNeedsABinary(t *testing.T) {
	for name, binary := range map[string]string{
		"none": "", "missing": filepath.Join(t.TempDir(), "cockroach"), "a folder": t.TempDir(), "not executable": "go.mod",
	} {
		cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "test-cockroach", "COCKROACH="+binary)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if _, failed := err.(*exec.ExitError); !failed {
			t.Errorf("%s: %v, want an exit status", name, err)
		}
		line, rest, _ := strings.Cut(errs.String(), "\n")
		if out.String() != "" || !strings.Contains(line, "make test-cockroach COCKROACH=/path/to/cockroach") {
			t.Errorf("%s: stdout %q, first line of stderr %q", name, out.String(), line)
		}
		// The rest is make's own line about the exit status; its prefix says how deep make is.
		if !strings.HasPrefix(rest, "make") || !strings.Contains(rest, "***") || strings.Count(rest, "\n") != 1 {
			t.Errorf("%s: more follows: %q", name, rest)
		}
	}
}
