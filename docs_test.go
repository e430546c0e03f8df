package stonetown_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quotedPath is a path of the repository in Markdown, such as `engine/check.go`.
var quotedPath = regexp.MustCompile("`([a-z][A-Za-z0-9_.-]*/[A-Za-z0-9_./-]*)`")

// TestDocsNameExistingFiles fails if a document names a file or folder that does not exist.
func TestDocsNameExistingFiles(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range quotedPath.FindAllStringSubmatch(string(text), -1) {
			top, _, _ := strings.Cut(match[1], "/")
			info, err := os.Stat(top)
			if err != nil || !info.IsDir() || top == "bin" || top == "data" { // make run writes those two
				continue // not a path of the repository
			}
			found++
			if _, err := os.Stat(match[1]); err != nil {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d paths found in the documents", found)
	}
}

// quotedTest is a test or a scenario of the conformance suite in Markdown, such as `TestX` or
// `every_operation_requires_its_scope`.
var quotedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*|[a-z0-9]+(?:_[a-z0-9]+){2,})`")

// TestSecurityModelNamesExistingTests fails if a threat of the security model is shown by a test that
// does not exist.
func TestSecurityModelNamesExistingTests(t *testing.T) {
	page, err := os.ReadFile("docs/security-model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, threats, _ := strings.Cut(string(page), "\n## Threats and tests\n")
	threats, _, _ = strings.Cut(threats, "\n## ")
	named := map[string]bool{}
	for _, match := range quotedTest.FindAllStringSubmatch(threats, -1) {
		named[match[1]] = true
	}
	if len(named) < 80 {
		t.Errorf("%d tests named", len(named))
	}
	defined := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(|^\t"([a-z0-9_]+)": +\w+,$`)
	err = filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range defined.FindAllSubmatch(source, -1) {
			delete(named, string(match[1])+string(match[2]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range named {
		t.Errorf("there is no %s", name)
	}
}
