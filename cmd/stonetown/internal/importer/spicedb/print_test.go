package spicedb

import (
	"math/rand/v2"
	"strings"
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

// A union or an intersection with one operand is that operand, which may need parentheses.
func TestPrintNested(t *testing.T) {
	relation := func(name string) schema.Rewrite { return schema.Rewrite{Kind: schema.Computed, Relation: name} }
	of := func(kind schema.Kind, operands ...schema.Rewrite) schema.Rewrite {
		return schema.Rewrite{Kind: kind, Children: operands}
	}
	minus := func(base, subtract schema.Rewrite) schema.Rewrite {
		return schema.Rewrite{Kind: schema.Exclusion, Base: &base, Subtract: &subtract}
	}
	a, b, c := relation("a"), relation("b"), relation("c")
	for want, rw := range map[string]schema.Rewrite{
		"a - (b + c)": minus(a, of(schema.Union, of(schema.Union, b, c))),
		"(a + b) - c": minus(of(schema.Intersection, of(schema.Union, a, b)), c),
		"a - (b & c)": minus(a, of(schema.Union, of(schema.Intersection, b, c))),
		"a - (b - c)": minus(a, of(schema.Union, minus(b, c))),
		"a - b":       minus(of(schema.Union, of(schema.Intersection, a)), b),
	} {
		types := []schema.Type{{Name: "doc", Relations: []schema.Relation{
			{Name: "a", Subjects: []schema.SubjectType{{Type: "user"}}},
			{Name: "b", Subjects: []schema.SubjectType{{Type: "user"}}},
			{Name: "c", Subjects: []schema.SubjectType{{Type: "user"}}},
			{Name: "d", Rewrites: []schema.Rewrite{rw}},
		}}}
		if text := Print(types).Text; !strings.Contains(text, "permission d = "+want+"\n") {
			t.Errorf("want %s:\n%s", want, text)
		}
		if !printsBack(t, types) {
			t.Errorf("%s cannot be said", want)
		}
	}
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
