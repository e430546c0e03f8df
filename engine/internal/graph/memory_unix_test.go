//go:build unix

package graph

import (
	"runtime/debug"
	"testing"

	"stonetown/engine/internal/arena"
)

func init() { memories["arena"] = inArena }

// inArena returns an empty graph in an arena. What it has must not depend on the garbage collector,
// which runs often until the end of the test.
func inArena(t *testing.T) *Graph {
	t.Helper()
	memory, err := arena.New(t.TempDir(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	before := debug.SetGCPercent(5)
	t.Cleanup(func() {
		debug.SetGCPercent(before)
		if err := memory.Err(); err != nil {
			t.Error(err)
		}
	})
	return NewIn(memory)
}
