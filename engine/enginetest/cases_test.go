package enginetest

import (
	"fmt"
	"path/filepath"
	"testing"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// by is the origin of the tests' changes.
var by = engine.Origin{Actor: "test"}

// TestCases runs testdata on every backend, and asks each question in every way.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	everywhere(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) {
		for n, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				tenant := fmt.Sprint("tnt_", n)
				c := Cases{Engine: e, Tenant: tenant, Ways: Ways(e, tenant)}
				c.Run(t, file)
			})
		}
	})
}
