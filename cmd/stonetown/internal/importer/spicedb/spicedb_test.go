package spicedb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cockroachdb/datadriven"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/schema"
)

// TestRead runs testdata/read. The command file stores a file; read does so too, and prints the
// data or the error.
func TestRead(t *testing.T) {
	datadriven.Walk(t, "testdata/read", func(t *testing.T, path string) {
		files := fstest.MapFS{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			name := d.CmdArgs[0].Key
			files[name] = &fstest.MapFile{Data: []byte(d.Input)}
			if d.Cmd == "file" {
				return ""
			}
			w, err := Read(files, name)
			if err != nil {
				return err.Error() + "\n"
			}
			renamed := slices.ContainsFunc(w.Report, func(f importer.Finding) bool { return f.Kind == importer.Renamed })
			if !printsBack(t, w.Types) && !renamed { // the original names are actions
				t.Errorf("%s: not all can be said: %q", d.Pos, Print(w.Types).Lost)
			}
			return show(w)
		})
	})
}

// show formats data, one line for each item.
func show(w *importer.Data) string {
	var b strings.Builder
	for _, t := range w.Types {
		fmt.Fprintf(&b, "type %s\n", t.Name)
		if t.Description != "" {
			fmt.Fprintf(&b, "  %q\n", t.Description)
		}
		for _, c := range t.Conditions {
			fmt.Fprintf(&b, "  condition %s%v %s\n", c.Name, c.Parameters, c.Expression)
		}
		for _, r := range t.Relations {
			var parts []string
			for i := range r.Rewrites {
				parts = append(parts, showRewrite(&r.Rewrites[i]))
			}
			if len(parts) > 0 {
				fmt.Fprintf(&b, "  %s = %s\n", r.Name, strings.Join(parts, " | "))
			} else {
				fmt.Fprintf(&b, "  %s: %v\n", r.Name, r.Subjects)
			}
		}
		for _, action := range slices.Sorted(maps.Keys(t.Actions)) {
			fmt.Fprintf(&b, "  action %s: %s\n", action, t.Actions[action])
		}
	}
	for _, op := range w.Relations {
		fmt.Fprintf(&b, "%s#%s@%s", op.Resource, op.Relation, op.Subject)
		if op.Condition != "" {
			fmt.Fprintf(&b, " if %s%s", op.Condition, op.Context)
		}
		if !op.ExpiresAt.IsZero() {
			fmt.Fprintf(&b, " until %s", op.ExpiresAt.Format(time.RFC3339Nano))
		}
		b.WriteString("\n")
	}
	for _, a := range w.Assertions {
		fmt.Fprintf(&b, "%s:%d ", a.At.File, a.At.Line)
		switch {
		case a.Check != nil:
			fmt.Fprintf(&b, "%s %s %s is %s", a.Check.Subject, a.Check.Action, a.Check.Resource, a.Check.Want)
		case a.Subjects != nil:
			fmt.Fprintf(&b, "%s %s is %s%v", a.Subjects.Action, a.Subjects.Resource, a.Subjects.Type, a.Subjects.Want)
			if a.Subjects.Partial {
				b.WriteString(" among others")
			}
		}
		if a.Context != nil {
			context, _ := json.Marshal(a.Context)
			fmt.Fprintf(&b, " with %s", context)
		}
		b.WriteString("\n")
	}
	for _, f := range w.Report {
		fmt.Fprintf(&b, "%s:%d %s: %s\n", f.At.File, f.At.Line, f.Kind, f.Message)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func showRewrite(rw *schema.Rewrite) string {
	list := func(operator string) string {
		var parts []string
		for i := range rw.Children {
			parts = append(parts, showRewrite(&rw.Children[i]))
		}
		return "(" + strings.Join(parts, operator) + ")"
	}
	switch rw.Kind {
	case schema.Computed:
		return rw.Relation
	case schema.Self:
		return "self"
	case schema.TupleToUserset:
		if rw.Mode == schema.All {
			return rw.Tupleset + ".all(" + rw.Computed + ")"
		}
		return rw.Tupleset + "->" + rw.Computed
	case schema.Union:
		return list(" | ")
	case schema.Intersection:
		return list(" & ")
	case schema.Exclusion:
		return "(" + showRewrite(rw.Base) + " - " + showRewrite(rw.Subtract) + ")"
	}
	return string(rw.Kind)
}

// TestLimits reads files that exceed a limit, which must be refused before they are expensive.
func TestLimits(t *testing.T) {
	many := strings.Repeat
	var definitions strings.Builder
	for i := range schema.MaxTypes + 1 {
		fmt.Fprintf(&definitions, "definition d%d {}\n", i)
	}
	for _, test := range []struct{ name, file, text, want string }{
		{"file", "f.txt", many("\n", maxFile+1), "f.txt: longer than 33554432 bytes"},
		{"schema", "f.zed", many("\n", maxSchema+1), "f.zed: a schema of more than 524288 bytes"},
		{"validation", "f.yaml", many("\n", maxValidation+1), "f.yaml: longer than 8388608 bytes; relationships can stand in a file of their own, named by relationshipsFile"},
		{"parentheses", "f.zed", "definition d { relation r: d permission p = " + many("(", 101) + "r" + many(")", 101) + "}", "f.zed:1: parentheses are nested more than 100 deep"},
		{"name", "f.zed", "definition " + many("d", 257) + " {}", "f.zed:1: a name of more than 256 bytes"},
		{"path", "f.zed", "\ndefinition " + many("d/", 200) + "d {}", "f.zed:2: a name of more than 256 bytes"},
		{"operands", "f.zed", "definition d { relation r: d\npermission p = r" + many("+r", 1000) + "}", "f.zed:2: d#p has more than 1000 parts"},
		{"subjects", "f.zed", "definition d { relation r: d" + many("|d", 1000) + "}", "f.zed:1: d#r has more than 1000 parts"},
		{"definitions", "f.zed", definitions.String(), "f.zed:1001: 1001 definitions, at most 1000 are allowed"},
		{"comment", "f.zed", "\n" + many("/*", 1<<17), "f.zed:2: the comment is not closed"},
		{"string", "f.zed", `import "` + many(`\"`, 1<<17), "f.zed:1: the string is not closed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read(fstest.MapFS{test.file: {Data: []byte(test.text)}}, test.file)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestChain reads permissions that each refer to the next one, in parentheses, down to nil.
func TestChain(t *testing.T) {
	const types, each = 3, 199
	var b strings.Builder
	for i := range types {
		fmt.Fprintf(&b, "definition d%d {\n", i)
		for j := range each {
			fmt.Fprintf(&b, "permission p%d = %sp%d%s\n", j, strings.Repeat("(", maxNesting), j+1, strings.Repeat(")", maxNesting))
		}
		fmt.Fprintf(&b, "permission p%d = nil\n}\n", each)
	}
	w, err := Read(fstest.MapFS{"f.zed": {Data: []byte(b.String())}}, "f.zed")
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Types) != types || len(w.Types[0].Relations) != each+1 {
		t.Errorf("read %d types", len(w.Types))
	}
}

// TestReadPath refuses names that do not stay within the folder.
func TestReadPath(t *testing.T) {
	for name, want := range map[string]string{
		"../f.zed": "../f.zed: not a path within the folder that is read",
		"f.zed":    "f.zed: file does not exist",
		"f.json":   "f.json: file does not exist",
	} {
		if _, err := Read(fstest.MapFS{}, name); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// FuzzRead requires that the data of every accepted file compiles, and that nothing panics.
func FuzzRead(f *testing.F) {
	f.Add("definition user {}\ndefinition doc { relation r: user | user:* with c\n permission p = (r - nil) & r->p }\ncaveat c(a int) { a < 1 }", "doc:1#r@user:*[c:{\"a\":1}]", "doc:1#p@user:ann with {}")
	f.Add("use partial\npartial p { relation m: group#m with expiration }\ndefinition group { ...p }", "group:1#m@group:2#m[expiration:2030-01-01T00:00:00Z]", "[group:2#m] is <group:1#m>")
	f.Add("use self\n/** x */ definition a/b { relation c: a/b#...\n permission d: a = c.all(d) + self }", "// no", "[a/b:* - {a/b:c[...]}]")
	f.Fuzz(func(t *testing.T, text, relationships, question string) {
		quote := func(s string) string {
			b, _ := json.Marshal(s)
			return string(b)
		}
		files := fstest.MapFS{
			"s.zed": {Data: []byte(text)},
			"r.txt": {Data: []byte(relationships)},
			"v.yaml": {Data: []byte("schemaFile: s.zed\nrelationshipsFile: r.txt\nassertions: {assertTrue: [" + quote(question) + "]}\n" +
				"validation: {" + quote(relationships) + ": [" + quote(question) + "]}\n")},
			"i.yaml": {Data: []byte("schema: |\n  " + strings.ReplaceAll(text, "\n", "\n  ") + "\nrelationships: >-\n  " + strings.ReplaceAll(relationships, "\n", "\n  ") +
				"\nassertions:\n  assertFalse:\n  - " + question + "\n")},
			"w.yaml": {Data: []byte(text)},
		}
		for name := range files {
			w, err := Read(files, name)
			if err != nil {
				if !strings.Contains(err.Error(), ": ") {
					t.Errorf("%s: no place in %q", name, err)
				}
				continue
			}
			if _, err := schema.Compile(w.Types); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, f := range w.Report {
				if f.At.File == "" || f.At.Line < 1 || f.Message == "" {
					t.Errorf("%s: finding without a place: %v", name, f)
				}
			}
		}
	})
}
