package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sends are the methods of internal/sqldb that take a statement, with their minimum number of
// arguments.
var sends = map[string]int{"Query": 2, "QueryRow": 2, "Exec": 2, "Queue": 3}

// block is a piece of code in a coverage profile.
type block struct{ startLine, startColumn, endLine, endColumn int }

func (b block) contains(p token.Position) bool {
	after := p.Line > b.startLine || p.Line == b.startLine && p.Column >= b.startColumn
	before := p.Line < b.endLine || p.Line == b.endLine && p.Column <= b.endColumn
	return after && before
}

// ran reads a coverage profile and returns the executed blocks by file; a file's name begins
// with its module.
func ran(profile string) (map[string][]block, error) {
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	blocks := map[string][]block{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.startLine, &b.startColumn, &b.endLine, &b.endColumn, &statements, &count); err == nil && count > 0 {
			blocks[name] = append(blocks[name], b)
		}
	}
	return blocks, nil
}

// unsent finds the places of a module that send a statement and were not run. The package
// internal/sqldb, which sends the statements of others, has no statements of its own except
// SQLite's; functions with SQLite in their names send statements for it alone. The statements of
// package bench prepare measurements, and are not of the product.
func unsent(root, module string, blocks map[string][]block) (places []token.Position, found int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "tools" || name == "bench" || name == "internal/sqldb" || name == "internal/pgtest" || name == "tuplestore/storetest"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && strings.Contains(f.Name.Name, "SQLite") {
				return false // sends what only SQLite gets
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sends[method.Sel.Name] == 0 || len(call.Args) < sends[method.Sel.Name] {
				return true
			}
			found++
			at := files.Position(method.Sel.Pos())
			for _, b := range blocks[module+"/"+filepath.ToSlash(name)] {
				if b.contains(at) {
					return true
				}
			}
			places = append(places, at)
			return true
		})
		return nil
	})
	return places, found, err
}
