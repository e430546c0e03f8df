// Command cockroach reads the statements that the tests sent in a rehearsal (see
// internal/sqldb/rehearsal.go) and parses each with CockroachDB's own grammar. It verifies
// neither types nor effects. It also reads the coverage of those tests and fails if the product
// has a call that could send a statement that no test has sent.
//
// It is a module of its own, so that the product does not depend on the grammar.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cockroachdb/cockroachdb-parser/pkg/sql/parser"
)

// avoided are patterns that parse but must not be sent, with the reason.
var avoided = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`::`), "SQLite has no :: casts"},
	{regexp.MustCompile(`(?i)\bnow\(\)`), "the time of a transaction is not that of SQLite; pass it as an argument"},
	{regexp.MustCompile(`(?i)\bpg_(try_)?advisory`), "advisory locks do nothing on CockroachDB"},
	{regexp.MustCompile(`(?i)\bskip\s+locked\b`), "SQLite does not have it"},
	{regexp.MustCompile(`(?i)\bdelete\b.*\busing\b`), "SQLite does not have it"},
	{regexp.MustCompile(`(?i)\b(nextval|serial|identity)\b`), "sequences make hot keys"},
	{regexp.MustCompile(`(?is)\bwith\b.*\bas\b.*\(\s*(insert|update|delete)\b`), "SQLite has no CTEs that write"},
	{regexp.MustCompile(`\bctid\b|(?i)\blateral\b`), "this is a statement for PostgreSQL alone"},
}

// foreign matches statements of the tests and of the migration tool, which are not checked.
var foreign = regexp.MustCompile(`(?i)\bgoose_|pg_tables|pg_class|pg_catalog|\battached\b|storetest_rows|\baccounts\b|\bruns\b|array_to_string|^\s*(do \$|prepare|explain|deallocate|analyze|set\b)|select version\(\)`)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cockroach FOLDER")
		os.Exit(2)
	}
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.sql"))
	if err != nil || len(files) == 0 {
		fmt.Fprintln(os.Stderr, "no statements in", os.Args[1], err)
		os.Exit(1)
	}
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for sql := range bytes.SplitSeq(text, []byte{0}) {
			if s := strings.TrimSpace(string(sql)); s != "" {
				seen[s] = true
			}
		}
	}
	statements := make([]string, 0, len(seen))
	for sql := range seen {
		statements = append(statements, sql)
	}
	slices.Sort(statements)
	checked, bad := 0, 0
	for _, sql := range statements {
		if foreign.MatchString(sql) {
			continue
		}
		checked++
		if err := check(sql); err != nil {
			bad++
			fmt.Printf("%s\n\t%v\n", sql, err)
		}
	}
	fmt.Printf("%d statements, %d of the tests' own left out, %d bad\n", checked, len(statements)-checked, bad)
	blocks, err := ran(filepath.Join(os.Args[1], "cover.out"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	places, found, err := unsent("../..", "stonetown", blocks)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, at := range places {
		fmt.Printf("%s: no test sends this\n", at)
	}
	fmt.Printf("%d places send statements, %d of them in no test\n", found, len(places))
	if bad > 0 || checked < 100 || len(places) > 0 || found < 50 {
		os.Exit(1)
	}
}

// check parses a statement. The parser panics on some texts.
func check(sql string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser panicked: %v", p)
		}
	}()
	if _, err := parser.Parse(sql); err != nil {
		return err
	}
	for _, a := range avoided {
		if a.pattern.MatchString(sql) {
			return fmt.Errorf("%s: %s", a.pattern, a.why)
		}
	}
	return nil
}
