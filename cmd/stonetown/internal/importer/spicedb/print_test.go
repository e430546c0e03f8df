package spicedb

import (
	"math/rand/v2"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"stonetown/cmd/stonetown/internal/importer/importertest"
	"stonetown/engine/enginetest"
	"stonetown/schema"
)

// printsBack requires that printed types are read as the same types. It reports whether the
// language could say all of them.
func printsBack(t *testing.T, types []schema.Type) bool {
	t.Helper()
	printed := Print(types)
	if len(printed.Lost) > 0 {
		return false
	}
	again, err := Read(fstest.MapFS{"m.zed": {Data: []byte(printed.Text)}}, "m.zed")
	if err != nil {
		t.Fatalf("%v\n%s", err, printed.Text)
	}
	if diff := cmp.Diff(importertest.Meaning(types), importertest.Meaning(again.Types)); diff != "" {
		t.Fatalf("(-types +read):\n%s\n%s", diff, printed.Text)
	}
	if text := Print(again.Types).Text; text != printed.Text {
		t.Fatalf("printed again:\n%s\nbefore:\n%s", text, printed.Text)
	}
	return true
}

// TestPrintRandomTypes prints types of which few can be said in the language.
func TestPrintRandomTypes(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	said := 0
	t.Logf("seed %d", seed)
	for range 3000 {
		if printsBack(t, enginetest.RandomTypes(r)) {
			said++
		}
	}
	t.Logf("%d of 3000 types were said", said)
	if said == 0 {
		t.Error("no types were said")
	}
}
