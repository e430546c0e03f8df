package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgentsGuide runs the commands of docs/agents.md in the order of the page.
func TestAgentsGuide(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	script, _, _ := strings.Cut(section(t, string(readme), "Five minutes with curl"), "call POST")
	for _, b := range blocks(t, "docs/agents.md") {
		if b.language == "sh" && b.note == "" {
			script += b.text
		}
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+strings.ReplaceAll(script, "curl -sS", "curl -sS --noproxy '*'"))
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	if err != nil || strings.Contains(string(out), `"error":"`) {
		t.Errorf("the commands failed: %v\n%s", err, out)
	}
	for _, part := range []string{`"name":"notes:write"`, `"dcr_mode":"open"`, `"registration_access_token":"rat_`, `"access_token":"`, `"relation":"act_as"`} {
		if !strings.Contains(string(out), part) {
			t.Errorf("no answer has %s:\n%s", part, out)
		}
	}
}
