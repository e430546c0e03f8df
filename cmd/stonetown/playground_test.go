package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The playground tests a model while one types it, explains answers, opens a file of another engine
// and shares itself by a link: by keyboard alone, without requests to another host.
func TestPlayground(t *testing.T) {
	if _, err := os.Stat("../../api/docs/playground/engine.gz"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the playground was not built: run make playground")
		}
		t.Skip("the playground was not built: run make playground")
	}
	server := start(t, "--dev", "--data-dir", t.TempDir(), "--rate-limits", "page.ip=unlimited")
	b := newInspector(t, openBrowser(t, server))
	// says waits for a text. To load the engine takes long on a machine that is busy with other tests.
	says := func(words string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
		defer cancel()
		if err := chromedp.Do(ctx, chromedp.WaitVisible(chromedp.Search(fmt.Sprintf(`//*[@id="workbench"]//*[self::p or self::li or self::span or self::button][contains(., %q)]`, words)))); err != nil {
			b.failed(fmt.Errorf("%q: %w", words, err))
		}
	}
	b.open("/docs/playground")
	b.browser.at("/docs/playground", "Playground")
	says("All 17 hold")
	b.do(chromedp.WaitVisible(chromedp.CSS("#workbench .graph .box")))
	says("Read as a file of Stonetown: 2 types, 10 relations, 17 assertions.")

	// A question, by keyboard, with the steps of the proof and with what is missing.
	b.do(chromedp.Focus(chromedp.CSS("#ask-op")))
	b.tabTo("Subject")
	b.keys("user:ann")
	b.tabTo("Action or relation")
	b.keys("view")
	b.tabTo("Resource")
	b.keys("document:q3" + kb.Enter)
	says("✓ Allowed")
	says("user:ann is member of group:eng")
	b.do(chromedp.WaitVisible(chromedp.CSS("#workbench .box.proof")))
	b.inspected("/docs/playground")
	b.picture("docs-playground", "allowed")
	ask(b.browser, chromedp.Evaluate[bool](typed("ask-subject", `() => "user:zoe"`)))
	b.press("Ask")
	says("✗ Denied")
	says("this relation does not exist")
	b.do(chromedp.WaitVisible(chromedp.CSS("#workbench .line.missing")))
	b.inspected("/docs/playground")
	ask(b.browser, chromedp.Evaluate[bool](typed("ask-subject", `() => "zoe"`)))
	b.press("Ask")
	b.do(chromedp.WaitVisible(chromedp.CSS(`#ask-subject[aria-invalid=true]:focus`)))
	says("is not a subject")
	ask(b.browser, chromedp.Evaluate[bool](typed("ask-subject", `() => "user:zoe"`)))

	// The model is edited in the editor: a test fails, and leads to its line.
	b.do(chromedp.Click(chromedp.Search(`//label[.="Types, relations and tests"]`)))
	b.keys(kb.End)
	ask(b.browser, chromedp.Evaluate[bool](typed("text", `before => before.replace("- document:q3#banned@user:eve", "- document:q3#banned@user:ann")`)))
	says("of 17 fail")
	says("Expected denied, got")
	b.press("Ask")
	says("✗ Denied")
	b.inspected("/docs/playground")
	b.picture("docs-playground", "failed")

	// The link, in a fresh page, shows the same.
	b.press("Share by link")
	b.do(chromedp.WaitVisible(chromedp.CSS("#link")))
	link := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("#link").value`))
	if !strings.HasPrefix(link, b.base+"/docs/playground#m=") {
		t.Fatalf("the link is %.200s", link)
	}
	before := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("#text").value`))
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	says("Expected denied, got")
	if after := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("#text").value`)); after != before || !strings.Contains(after, "banned@user:ann") {
		t.Errorf("the text is\n%s", after)
	}
	if subject := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("#ask-subject").value`)); subject != "user:zoe" {
		t.Errorf("the subject is %q", subject)
	}

	// A file of another engine.
	b.do(chromedp.Focus(chromedp.CSS("#example")))
	b.keys(kb.ArrowDown + kb.ArrowDown)
	says("Read as a file of OpenFGA")
	says("All 8 hold")
	b.press("Find what no test covers")
	b.do(chromedp.WaitVisible(chromedp.Search(`//*[starts-with(text(), "Without one of these") or starts-with(text(), "The tests depend on every part")]`)))
	b.inspected("/docs/playground")

	// A text that cannot be read leads to its line, and none of it is HTML.
	ask(b.browser, chromedp.Evaluate[bool](typed("text", `() => 'types:\n- name: doc\n  relations: [{name: viewer}]\ntests:\n- allow: ["<img src=x onerror=alert(1)>"]\n'`)))
	says("Go to line 5")
	says("is not a subject")
	if ask(b.browser, chromedp.Evaluate[bool](`document.querySelector("#workbench img") !== null`)) {
		t.Error("the page has an element of the document")
	}
	b.press("Go to line 5")
	if got := ask(b.browser, chromedp.Evaluate[string](`document.querySelector(".editor").shadowRoot.querySelector(".cm-activeLine").textContent`)); !strings.Contains(got, "img") {
		t.Errorf("the cursor is in %q", got)
	}

	// Links of strangers.
	for _, fragment := range []string{"#m=", "#m=%3Cscript%3E", "#m=AAAA", "#m=" + strings.Repeat("A", 64_001), "#m=q1YqzUvMTVWyUgIA"} {
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(b.base+"/docs/playground"+fragment))
		b.do(chromedp.WaitVisible(chromedp.Search(`//*[contains(@class, "status") and (contains(., "The link is damaged") or contains(., "The link is too long"))]`)))
	}

	// Only this page may run scripts, and it loads nothing from elsewhere.
	if others := ask(b.browser, chromedp.Evaluate[string](`performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith(location.origin + "/") && !n.startsWith("blob:")).join()`)); others != "" {
		t.Errorf("the page loads %s", others)
	}
	for path, scripts := range map[string]bool{"/docs/playground": true, "/docs/modelling": false, "/docs": false} {
		resp, _ := server.get(t, path)
		if policy := resp.Header.Get("Content-Security-Policy"); strings.Contains(policy, "'wasm-unsafe-eval'") != scripts || strings.Contains(policy, "'unsafe-eval'") || strings.Contains(policy, "unsafe-inline") {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
	if resp, _ := server.get(t, "/docs/playground/other/engine.gz"); resp.StatusCode != 404 {
		t.Errorf("another version of the engine: %s", resp.Status)
	}
}

// typed is a script that changes a field by a function, as a person who types.
func typed(id, change string) string {
	return fmt.Sprintf(`(f => { f.value = (%s)(f.value); return f.dispatchEvent(new Event("input", {bubbles: true})) })(document.getElementById(%q))`, change, id)
}
