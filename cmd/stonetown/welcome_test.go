package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The front page of a development server leads to everything that it names, and its commands work.
func TestWelcome(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", filepath.Join(dir, "data's"))
	b := newInspector(t, openBrowser(t, server))
	const title = "Stonetown is running"
	b.scripts(false)
	b.open("/")
	b.browser.at("/", title)
	b.accessible("/")
	links := ask(b.browser, chromedp.Evaluate[[]string](`[...document.querySelectorAll("main a")].map(a => a.href)`))
	if len(links) < 9 {
		t.Errorf("the page has the links %q", links)
	}
	for _, link := range links {
		// Its redirects lead to the sign-in.
		out, err := exec.CommandContext(t.Context(), "curl", "-sSL", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}", link).CombinedOutput()
		if err != nil || string(out) != "200" {
			t.Errorf("%s: %s, %v", link, out, err)
		}
	}
	commands := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("pre.commands").textContent`))
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+strings.ReplaceAll(commands, "curl -sS", "curl -sS --noproxy '*'")).CombinedOutput()
	if err != nil || !slices.Equal(decisions(string(out)), quickstartDecisions) {
		t.Errorf("the commands answer %v\n%s", err, out)
	}
	// The control plane has no such page.
	control := strings.Replace(b.base, "dev.localhost", "control.localhost", 1)
	b.do(chromedp.Navigate(control + "/"))
	b.do(chromedp.WaitVisible(chromedp.Search(`//h1[normalize-space()="Sign in"]`)))
}
