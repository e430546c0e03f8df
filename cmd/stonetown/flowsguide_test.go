package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stonetown/webhooks/signature"
)

// TestSignInFlowsGuide runs the commands of docs/sign-in-flows.md in the order of the page, with its
// service.
func TestSignInFlowsGuide(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	helpers, _, _ := strings.Cut(section(t, string(readme), "Five minutes with curl"), "call POST")
	service := "http://127.0.0.1:65533"
	var out strings.Builder
	paste := func(script string) string {
		t.Helper()
		script = strings.NewReplacer("curl -sS", "curl -sS --noproxy '*'", "https://risk.example.com", service).Replace(helpers + script)
		shell := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+script)
		shell.Dir = dir
		said, err := shell.CombinedOutput()
		if err != nil || strings.Contains(string(said), `"error":"`) {
			t.Fatalf("the commands failed: %v\n%s", err, said)
		}
		out.Write(said)
		return string(said)
	}
	draft := ""
	for _, b := range blocks(t, "docs/sign-in-flows.md") {
		switch {
		case b.note != "":
		case b.language == "python":
			if err := os.WriteFile(filepath.Join(dir, "service.py"), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			secret, err := signature.ParseSecret(regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`).FindString(out.String()))
			if err != nil {
				t.Fatalf("%v in %s", err, out.String())
			}
			service, _ = runReceiver(t, dir, []string{program(t, "python3"), "service.py"}, secret)
			service = strings.TrimSuffix(service, "/hook")
			paste(draft) // the address of the service is known only now
		case b.section == "Steps":
			draft = b.text
			paste(draft)
		default:
			paste(b.text)
		}
	}
	for _, part := range []string{
		`"signing_secret":"whsec_`, `"result":"skipped"`, `"message":"Too many sign-ins from your network."`, `"outcome":"denied"`, `"note":"Risk of each sign-in"`, `"restored_from":1`,
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no answer has %s:\n%s", part, out.String())
		}
	}
}
