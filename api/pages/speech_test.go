package pages

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every text of the pages has a translation in each language, with the same values and all plural
// forms, and no translation is without a text.
func TestTexts(t *testing.T) {
	used := slices.Concat(textsOfTemplates(t), messagesOfCode(t))
	slices.Sort(used)
	used = slices.Compact(used)
	if len(used) < 150 {
		t.Fatalf("%d texts were found: the pages have more", len(used))
	}
	for _, fault := range texts().Faults(used) {
		t.Error(fault)
	}
}

var textOfTemplate = regexp.MustCompile(`\.T ("(?:[^"\\]|\\.)*")`)

func textsOfTemplates(t *testing.T) (all []string) {
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		source, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range textOfTemplate.FindAllSubmatch(source, -1) {
			text, err := strconv.Unquote(string(found[1]))
			if err != nil {
				t.Fatal(name, err)
			}
			all = append(all, text)
		}
	}
	return all
}

// messagesOfCode returns the constants of the type message. Other packages are not loaded: their
// types are invalid then, which is no matter for constants of this one.
func messagesOfCode(t *testing.T) (all []string) {
	set := token.NewFileSet()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Error: func(error) {}}
	_, _ = config.Check("stonetown/api/pages", set, parsed, info)
	for expr, of := range info.Types {
		if _, literal := expr.(*ast.BasicLit); !literal || of.Value == nil || of.Type == nil || !strings.HasSuffix(of.Type.String(), ".message") {
			continue
		}
		all = append(all, constant.StringVal(of.Value))
	}
	return all
}
