package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWebhooksGuide runs the commands of docs/webhooks.md in the order of the page.
func TestWebhooksGuide(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer receiver.Close()
	dir := t.TempDir()
	start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	helpers, _, _ := strings.Cut(section(t, string(readme), "Five minutes with curl"), "call POST")
	paste := func(script string) string {
		t.Helper()
		script = strings.NewReplacer(
			"curl -sS", "curl -sS --noproxy '*'",
			"https://billing.example.com", receiver.URL, "https://partner.example.com", receiver.URL,
		).Replace(helpers + script)
		shell := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+script)
		shell.Dir = dir
		out, err := shell.CombinedOutput()
		if err != nil || strings.Contains(string(out), `"error":"`) {
			t.Errorf("the commands failed: %v\n%s", err, out)
		}
		return string(out)
	}
	var script strings.Builder
	for _, b := range blocks(t, "docs/webhooks.md") {
		if b.language == "sh" && b.note == "" {
			script.WriteString(b.text)
		}
	}
	out := paste(script.String())
	for _, part := range []string{
		`"signing_secret":"whsec_`, `"delivery_id":"whd_`, `"category":"`, `"event_type":"test.ping"`, `"queued":0`, `"state":"disabled"`, `"state":"enabled"`,
		`"visible_to":{"subject":{"type":"group","id":"eng"},"action":"view"}`, `"owners":[{"type":"application"`,
	} {
		if !strings.Contains(out, part) {
			t.Errorf("no answer has %s:\n%s", part, out)
		}
	}
}
