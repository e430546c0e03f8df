package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The committed scripts are those that the sources make.
func TestScriptsAreBuilt(t *testing.T) {
	dist := filepath.Join(t.TempDir(), "dist")
	build := exec.CommandContext(t.Context(), "make", "-C", "../..", "console", "DIST="+dist)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make console (it needs npm): %v\n%s", err, out)
	}
	built, committed := filesOf(t, os.DirFS(dist)), filesOf(t, os.DirFS("dist"))
	if len(built) == 0 {
		t.Fatal("nothing was built")
	}
	for name, text := range built {
		if !bytes.Equal(text, committed[name]) {
			t.Errorf("dist/%s is not what the sources make: run make console", name)
		}
		delete(committed, name)
	}
	for name := range committed {
		t.Errorf("the sources do not make dist/%s: run make console", name)
	}
	lock, err := os.ReadFile("web/package-lock.json")
	if err != nil || bytes.Contains(lock, []byte(`"resolved"`)) {
		t.Errorf("the lock file names where its packages were loaded from: set omit-lockfile-registry-resolved of npm; %v", err)
	}
}

func filesOf(t *testing.T, folder fs.FS) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if all[entry.Name()], err = fs.ReadFile(folder, entry.Name()); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// What a page loads before it draws a graph has at most 250 KiB.
func TestSizeOfScripts(t *testing.T) {
	all, folder, err := islands()
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for path, file := range all {
		if strings.HasSuffix(path, ".js") && path != folder+"elk-worker.min.js" {
			size += len(file.compressed())
		}
	}
	if t.Logf("%d KiB", size>>10); size == 0 || size > 250<<10 {
		t.Errorf("the scripts have %d bytes, compressed", size)
	}
}

// A script is compressed for those who take it so, and kept for good.
func TestScriptIsServed(t *testing.T) {
	all, folder, err := islands()
	if err != nil {
		t.Fatal(err)
	}
	file := all[folder+"model.js"]
	for _, encoding := range []string{"", "gzip, br"} {
		r := httptest.NewRequest(http.MethodGet, folder+"model.js", nil)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		file.Serve(w, r)
		text := io.Reader(w.Body)
		if encoding != "" {
			if text, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		body, err := io.ReadAll(text)
		if err != nil || !bytes.Equal(body, file.document.Body) {
			t.Errorf("with %q: %d bytes, %v", encoding, len(body), err)
		}
		h := w.Header()
		if h.Get("Content-Type") != "text/javascript; charset=utf-8" || h.Get("Vary") != "Accept-Encoding" || !strings.Contains(h.Get("Cache-Control"), "immutable") || (h.Get("Content-Encoding") == "gzip") != (encoding != "") {
			t.Errorf("with %q: %v", encoding, h)
		}
	}
}
