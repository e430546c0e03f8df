package openfga

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"testing"

	"stonetown/engine"
	"stonetown/schema"
)

// FuzzRead requires that a file is refused or becomes consistent data, the same every time.
func FuzzRead(f *testing.F) {
	names := []string{"f.fga", "f.fga.yaml", "f.json", "f.jsonl", "f.csv", "fga.mod"}
	for _, s := range slices.Concat(accessSamples, organizationSamples, conditionSamples) {
		for _, name := range slices.Sorted(maps.Keys(s.files)) {
			for i := range names {
				if kindOf(names[i]) == kindOf(name) && (path.Base(name) == "fga.mod") == (names[i] == "fga.mod") {
					f.Add(uint8(i), string(s.files[name].Data))
				}
			}
		}
	}
	f.Add(uint8(0), head+"    define a: ([user, user:*, document#viewer] or viewer from parent) but not viewer\n")
	f.Fuzz(func(t *testing.T, kind uint8, text string) {
		name := names[int(kind)%len(names)]
		files := folder("model.fga", head, "a.fga", "module a\ntype user\n", "t.jsonl", `{"user": "user:a", "relation": "viewer", "object": "document:1"}`)
		maps.Copy(files, folder(name, text))
		w, err := Read(files, name)
		again, errAgain := Read(files, name)
		if (err == nil) != (errAgain == nil) || err == nil && !reflect.DeepEqual(w, again) {
			t.Fatalf("%+v, %v\nand then\n%+v, %v", w, err, again, errAgain)
		}
		if err != nil {
			return
		}
		c, err := schema.Compile(w.Types)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range w.Assertions {
			fits(t, c, a.Contextual)
			if len(a.Contextual) > engine.MaxContextual {
				t.Errorf("%d contextual tuples", len(a.Contextual))
			}
			if q := a.Check; q != nil {
				answers(t, c, q.Resource.Type, q.Action)
			}
			if q := a.Resources; q != nil {
				answers(t, c, q.Type, q.Action)
			}
			if q := a.Subjects; q != nil {
				answers(t, c, q.Resource.Type, q.Action)
			}
		}
		if len(w.Types) > 0 {
			fits(t, c, w.Relations)
		}
	})
}

// fits reports operations that the types do not allow.
func fits(t *testing.T, c *schema.Compiled, ops []engine.WriteOp) {
	for _, op := range ops {
		if refusal := c.Allows(op.Resource.Type, op.Relation, schema.SubjectType(op.Subject.Shape())); refusal != schema.Allowed {
			t.Errorf("%+v is refused: %s", op, refusal)
		}
		if len(op.Resource.ID) > engine.MaxID || len(op.Subject.ID) > engine.MaxID {
			t.Errorf("%+v has too long an ID", op)
		}
		if op.Condition == "" {
			continue
		}
		condition := c.Condition(op.Resource.Type, op.Condition)
		if condition == nil {
			t.Errorf("%+v stands on a condition that does not exist", op)
		} else if _, err := condition.Normalize(op.Context); err != nil {
			t.Errorf("%+v: %v", op, err)
		}
	}
}

// answers reports actions of undefined relations.
func answers(t *testing.T, c *schema.Compiled, typ, action string) {
	if _, ok := c.ActionRelation(typ, action); !ok {
		t.Errorf("%s has no action %q", typ, action)
	}
}
