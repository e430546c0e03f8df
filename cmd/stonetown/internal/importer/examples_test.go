package importer_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/openfga"
	"stonetown/cmd/stonetown/internal/importer/spicedb"
)

// TestExamples requires that the assertions of the examples hold, and that all of their
// constructs have an equivalent.
func TestExamples(t *testing.T) {
	for dir, read := range map[string]func(fs.FS, string) (*importer.Data, error){
		"../../../../examples/openfga": openfga.Read, "../../../../examples/spicedb": spicedb.Read,
	} {
		files := os.DirFS(dir)
		names, err := fs.Glob(files, "*.yaml")
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", dir, names, err)
		}
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				data, err := read(files, name)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range data.Report {
					if f.Kind == importer.Unsupported {
						t.Errorf("%s:%d: %s", f.At.File, f.At.Line, f.Message)
					}
				}
				result, err := importer.Validate(t.Context(), data)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range result.Differences {
					t.Errorf("%s:%d: %s want %s, got %s", d.At.File, d.At.Line, d.Question, d.Want, d.Got)
				}
				if result.Passed < 4 {
					t.Errorf("only %d assertions", result.Passed)
				}
				readme, err := os.ReadFile("../../../../examples/README.md")
				if err != nil || !strings.Contains(string(readme), "/"+name+"`") {
					t.Errorf("the README does not mention it: %v", err)
				}
			})
		}
	}
}
