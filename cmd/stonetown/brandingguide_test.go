package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBrandingGuide runs the commands of docs/branding.md in the order of the page.
func TestBrandingGuide(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	script, _, _ := strings.Cut(section(t, string(readme), "Five minutes with curl"), "call POST")
	for _, b := range blocks(t, "docs/branding.md") {
		if b.language == "sh" && b.note == "" {
			script += b.text
		}
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+strings.ReplaceAll(script, "curl -sS", "curl -sS --noproxy '*'"))
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	if err != nil || strings.Count(string(out), `"error":"`) != 1 { // of the colour
		t.Errorf("the commands failed: %v\n%s", err, out)
	}
	for _, part := range []string{
		`"display_name":"Acme"`, "has 1.20:1", "the nearest colour with enough contrast is #7a7200", `"accent":"#7a7200"`, `"default_language":"en"`, `"sign_in_title":"Willkommen bei Acme"`,
		`"mail":"announcement"`, `"subject":"Welcome to {{tenant}}"`, "Hello Ann Example, please confirm your address.",
	} {
		if !strings.Contains(string(out), part) {
			t.Errorf("no answer has %s:\n%s", part, out)
		}
	}
}
