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
			if info, err := os.Stat(top); err != nil || !info.IsDir() {
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
