package docs

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stonetown/api/console"
)

// built returns the files of the playground. A machine without them has no playground to test; CI
// builds it before the tests.
func built(t *testing.T) scripts {
	t.Helper()
	s, err := loadScripts()
	if err != nil {
		t.Fatal(err)
	}
	if s.files == nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the playground was not built: run make playground")
		}
		t.Skip("the playground was not built: run make playground")
	}
	return s
}

// The engine for browsers is at most 5 MiB, as it is sent, and it is a program in WebAssembly.
func TestPlaygroundSize(t *testing.T) {
	engine := built(t).files[engineFile].Text()
	if size := len(engine); size > 5<<20 {
		t.Errorf("%d bytes", size)
	}
	z, err := gzip.NewReader(bytes.NewReader(engine))
	if err != nil {
		t.Fatal(err)
	}
	start := make([]byte, 8)
	if _, err := io.ReadFull(z, start); err != nil || string(start) != "\x00asm\x01\x00\x00\x00" {
		t.Errorf("it begins with %q, %v", start, err)
	}
}

// The exported site has all that the playground loads.
func TestPlaygroundIsExported(t *testing.T) {
	s := built(t)
	folder := t.TempDir()
	if _, err := Export(folder); err != nil {
		t.Fatal(err)
	}
	for name, file := range s.files {
		if text, err := os.ReadFile(filepath.Join(folder, "playground", name)); err != nil || !bytes.Equal(text, file.Text()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	page, err := os.ReadFile(filepath.Join(folder, "playground.html"))
	if err != nil || !strings.Contains(string(page), `src="playground/playground.js"`) || !strings.Contains(string(page), `data-scripts="playground/"`) {
		t.Errorf("%v: %s", err, page)
	}
}

// Without the engine, the page states how to build it, and the menu leaves it out.
func TestSiteWithoutPlayground(t *testing.T) {
	load := loadScripts
	defer func() { loadScripts = load }()
	for _, test := range []struct {
		s    scripts
		want bool
	}{{scripts{}, false}, {scripts{map[string]console.Island{}, "folder"}, true}} {
		loadScripts = func() (scripts, error) { return test.s, nil }
		site, err := New(Served)
		if err != nil {
			t.Fatal(err)
		}
		page, first := string(site.Page(playgroundPage).HTML), string(site.Page("").HTML)
		menu, _, _ := strings.Cut(first, "<main")
		if strings.Contains(page, "make build</code> builds it with") == test.want || strings.Contains(page, "<script") != test.want || strings.Contains(menu, Served.Page(playgroundPage)) != test.want {
			t.Errorf("with %+v: %s", test.s, page)
		}
	}
}
