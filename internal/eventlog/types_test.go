package eventlog

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTypesListsEveryConstant compares the list with the constants in the source.
func TestTypesListsEveryConstant(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var constants []Type
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			name, ok := value.Type.(*ast.Ident)
			if !ok || name.Name != "Type" || len(value.Values) != 1 {
				t.Fatalf("%s is not a constant of type Type with a value", value.Names[0].Name)
			}
			text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			constants = append(constants, Type(text))
		}
	}
	if len(constants) < 70 || !slices.Equal(Types(), constants) {
		t.Errorf("listed are %v\nconstants are %v", Types(), constants)
	}
}

func TestTypesAreOrderedByCategory(t *testing.T) {
	var categories []string
	seen := map[Type]bool{}
	for _, typ := range Types() {
		category, change, ok := strings.Cut(string(typ), ".")
		if !ok || category == "" || change == "" || strings.Contains(change, ".") || typ.Category() != category {
			t.Errorf("%q has the category %q", typ, typ.Category())
		}
		if seen[typ] {
			t.Errorf("%s is listed twice", typ)
		}
		seen[typ] = true
		if len(categories) == 0 || categories[len(categories)-1] != category {
			if slices.Contains(categories, category) {
				t.Errorf("%s is apart from the other types of its category", typ)
			}
			categories = append(categories, category)
		}
	}
}
