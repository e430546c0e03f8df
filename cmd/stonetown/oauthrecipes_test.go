package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOAuthRecipes runs the commands of docs/oauth-recipes.md in the order of the page.
func TestOAuthRecipes(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	script, _, _ := strings.Cut(section(t, string(readme), "Five minutes with curl"), "call POST")
	wanted := map[string][]string{ // of each section, what it prints
		"Single-page application": {`https://notes.example.com/callback?code=ac_`, `"email":"ann@example.com"`, `"expires_in":`, `"error":"invalid_grant"`},
		"Web server":              {`"id_token":"ey`, `https://shop.example.com/callback?code=ac_`},
		"Mobile and desktop":      {`"refresh_token":"rt_`},
		"Device":                  {`"user_code":"`, `"status":"allowed"`, `"id_token":"ey`},
		"Machine":                 {`"data":`, `"active":true`},
		"Token exchange":          {`"relation":"caller"`, `"issued_token_type":"urn:`, `"error":"invalid_target"`, `"scope":"orders:read"`},
		"Agents":                  {`"relation":"act_as"`, `"act":{"sub":"client_`, `"error":"invalid_grant"`},
	}
	last := ""
	for _, b := range blocks(t, "docs/oauth-recipes.md") {
		if b.section != last {
			script, last = script+"\necho '## "+b.section+"'\n", b.section
		}
		script += b.text
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+strings.ReplaceAll(script, "curl -sS", "curl -sS --noproxy '*'"))
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("the commands failed: %v\n%s", err, out)
	}
	for title, parts := range wanted {
		_, after, _ := strings.Cut(string(out), "## "+title+"\n")
		printed, _, _ := strings.Cut(after, "\n## ")
		for _, part := range parts {
			if !strings.Contains(printed, part) {
				t.Errorf("%s does not print %s:\n%s", title, part, printed)
			}
		}
	}
}
