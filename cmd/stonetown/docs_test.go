package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stonetown/api/docs"
)

// A reader of the documentation finds the way by the menu, by links and by the search, without
// scripts and on a narrow screen.
func TestDocs(t *testing.T) {
	server := start(t, "--dev", "--data-dir", t.TempDir(), "--rate-limits", "page.ip=unlimited")
	b := newInspector(t, openBrowser(t, server))
	b.scripts(false)
	site, err := docs.New(docs.Served)
	if err != nil {
		t.Fatal(err)
	}
	generated := []string{"api", "api-scopes", "api-errors", "control-api-organizations", "control-api-schemas"} // one of each kind
	for _, p := range site.Pages {
		if strings.Contains(p.Name, "api") && !slices.Contains(generated, p.Name) {
			continue
		}
		address := docs.Served.Page(p.Name)
		b.open(address)
		b.at(address, p.Title)
	}
	b.open("/docs")
	b.fill("q", "dead letters")
	b.press("Search")
	b.at("/docs/search", "Search")
	b.press("Webhooks › Dead letters")
	b.browser.at("/docs/webhooks#dead-letters", "Webhooks")
	b.open("/docs/search?q=%3Cscript%3E")
	b.says("No section contains")
	b.at("/docs/search", "Search")
	b.open("/docs/none")
	b.browser.at("/docs/none", "Page not found")
	b.open("/docs/")
	b.browser.at("/docs", "Stonetown")

	for path, status := range map[string]int{"/docs": 200, "/docs/webhooks": 200, "/docs/assets/docs.css": 200, "/docs/none": 404, "/docs/%00": 404} {
		resp, _ := server.get(t, path)
		if resp.StatusCode != status {
			t.Errorf("%s: %s", path, resp.Status)
		}
		if status == 200 && resp.Header.Get("ETag") == "" {
			t.Errorf("%s cannot be cached", path)
		}
		if policy := resp.Header.Get("Content-Security-Policy"); !strings.HasSuffix(path, ".css") && status == 200 && !strings.HasPrefix(policy, "default-src 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
}

// get requests a path of the development tenant, and returns the response and its body.
func (s *running) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get("http://" + s.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestDocsCanBeTurnedOff(t *testing.T) {
	server := start(t, "--dev", "--data-dir", t.TempDir(), "--docs=false")
	for _, path := range []string{"/docs", "/docs/webhooks", "/docs/search?q=x", "/docs/assets/docs.css"} {
		if resp, _ := server.get(t, path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	if _, body := server.get(t, "/"); !strings.Contains(body, "Stonetown is running") || strings.Contains(body, `"/docs"`) {
		t.Errorf("the welcome page is\n%s", body)
	}
}

// The exported site needs nothing but its folder.
func TestDocsExport(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "site")
	out, err := command(t, "docs", "export", folder)
	if err != nil || !strings.HasPrefix(out, "wrote ") {
		t.Fatalf("%s, %v", out, err)
	}
	if out, err = command(t, "docs", "export", folder); err != nil {
		t.Fatalf("the second time: %s, %v", out, err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "index.html"))
	if err != nil || !strings.Contains(string(page), `href="webhooks.html"`) || strings.Contains(string(page), `"/docs`) {
		t.Errorf("%v: %s", err, page)
	}
	if _, err := os.Stat(filepath.Join(folder, "docs.css")); err != nil {
		t.Error(err)
	}
	file := writeFile(t, "")
	for _, args := range [][]string{{"docs", "export"}, {"docs", "export", file}, {"docs", "export", filepath.Join(file, "below")}} {
		if out, err := command(t, args...); err == nil {
			t.Errorf("%q: no error, %s", args, out)
		}
	}
}
