package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stonetown"
)

// block is a code block of a page.
type block struct {
	page, section  string // the file, and the heading of level 2 above
	language, note string // the first word after the fence, and the others
	text           string
}

// blocks returns the code blocks of a page.
func blocks(t *testing.T, page string) (all []block) {
	t.Helper()
	text, err := stonetown.Documentation.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var section string
	var open *block
	for line := range strings.Lines(string(text)) {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			language, note, _ := strings.Cut(strings.TrimSpace(fence), " ")
			open = &block{page: page, section: section, language: language, note: note}
		case isFence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line
		case strings.HasPrefix(line, "## "):
			section = strings.TrimSpace(line[3:])
		}
	}
	if open != nil {
		t.Errorf("%s: the block in %q has no end", page, open.section)
	}
	return all
}

// runBy are the tests that run code blocks, by the page, and if it has several, by the section.
var runBy = map[string]string{
	"README.md/Five minutes with curl":         "TestReadme",
	"README.md/From the terminal":              "TestReadme",
	"README.md/Testing a model":                "TestReadme",
	"README.md/Coming from OpenFGA or SpiceDB": "TestReadme",
	"docs/agents.md":                           "TestAgentsGuide",
	"docs/branding.md":                         "TestBrandingGuide",
	"docs/control-plane.md":                    "TestControlPlaneGuide",
	"docs/modelling.md":                        "TestModellingGuide",
	"docs/moving.md":                           "TestMovingGuide",
	"docs/oauth-recipes.md":                    "TestOAuthRecipes",
	"docs/sign-in-flows.md":                    "TestSignInFlowsGuide",
	"docs/typescript-client.md":                "TestTypeScriptClient",
	"docs/webhooks.md/Verify a delivery":       "TestReceivers",
	"docs/webhooks.md":                         "TestWebhooksGuide",
}

// TestBlocksAreRun requires that each code block of each page is run by a test, or states why it is
// not, as in "```sh not run: it needs two deployments". Text is not code.
func TestBlocksAreRun(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(source)
	}
	used := map[string]bool{}
	err = fs.WalkDir(stonetown.Documentation, ".", func(page string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, b := range blocks(t, page) {
			reason, excepted := strings.CutPrefix(b.note, "not run: ")
			if b.language == "text" || excepted && reason != "" {
				continue
			}
			key := page + "/" + b.section
			if runBy[key] == "" {
				key = page
			}
			used[key] = true
			if test := runBy[key]; b.note != "" || test == "" || !strings.Contains(tests.String(), "func "+test+"(t *testing.T)") {
				t.Errorf("%s: no test runs the block %q %q in %q", page, b.language, b.note, b.section)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key := range runBy {
		if !used[key] {
			t.Errorf("%s has no block", key)
		}
	}
}

// TestModellingGuide runs each model of the guide with its tests. They depend on every part of it.
func TestModellingGuide(t *testing.T) {
	all := blocks(t, "docs/modelling.md")
	if len(all) < 5 {
		t.Errorf("%d models", len(all))
	}
	for _, b := range all {
		t.Run(b.section, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "model.test.yaml")
			if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := command(t, "test", "--require-coverage", file); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestControlPlaneGuide uses the settings of the guide, and runs its commands.
func TestControlPlaneGuide(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	for _, b := range blocks(t, "docs/control-plane.md") {
		if b.language == "yaml" {
			config, err := resolve(t, []string{"--config", writeFile(t, b.text)}, nil)
			if err != nil || config.ControlURL != "https://control.example.com" || config.MaxTenants != defaultConfig().MaxTenants {
				t.Errorf("%+v, %v", config, err)
			}
			continue
		}
		script := strings.NewReplacer("http://control.localhost:8080", server.config.ControlURL, "curl -sS", "curl -sS --noproxy '*'").Replace(b.text)
		shell := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+script)
		shell.Dir = dir
		out, err := shell.CombinedOutput()
		if err != nil || strings.Contains(string(out), `"error"`) {
			t.Errorf("the commands failed: %v\n%s", err, out)
		}
		for _, part := range []string{`"slug":"acme"`, `"email":"bob@example.com"`, `"name":"Terraform"`, `"tenant.created"`} {
			if !strings.Contains(string(out), part) {
				t.Errorf("no answer has %s:\n%s", part, out)
			}
		}
	}
}
