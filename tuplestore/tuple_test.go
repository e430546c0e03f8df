package tuplestore_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stonetown/tuplestore"
)

// Objects compare as their texts do, which is the order of the columns of a database.
func TestObjectsCompareAsTheirTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.Custom(func(t *rapid.T) tuplestore.Object {
			return tuplestore.Object{
				Type: rapid.StringOfN(rapid.RuneFrom([]rune("a/0;~")), 1, 3, -1).Draw(t, "type"),
				ID:   rapid.StringOfN(rapid.RuneFrom([]rune("a:0")), 0, 2, -1).Draw(t, "id"),
			}
		})
		a, b := object.Draw(t, "a"), object.Draw(t, "b")
		if got, want := a.Compare(b), strings.Compare(a.String(), b.String()); got != want {
			t.Errorf("%v and %v: %d, want %d", a, b, got, want)
		}
		var none tuplestore.Object
		if none.Compare(a) != -1 || a.Compare(none) != 1 || none.Compare(none) != 0 {
			t.Errorf("no object is not before %v", a)
		}
	})
}
