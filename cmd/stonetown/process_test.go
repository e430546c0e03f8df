package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stonetown/internal/pgtest"
)

// TestMain lets the test binary stand in for the program.
func TestMain(m *testing.M) {
	if os.Getenv("STONETOWN_TEST_MAIN") != "" {
		main()
		return
	}
	pgtest.Main(m)
}

// TestProcess starts the program as a process, pastes what it prints into a
// shell, and ends it with SIGTERM.
func TestProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), self, "serve", "--dev", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	server.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1")
	var log bytes.Buffer
	server.Stderr = &log
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if script.Len() > 0 || strings.HasPrefix(lines.Text(), "BASE=") {
			script.WriteString(lines.Text() + "\n")
		}
		if strings.Contains(lines.Text(), `"id":"bob"`) { // the last command
			break
		}
	}
	// A proxy of the machine's environment must not see the requests.
	paste := strings.ReplaceAll(script.String(), "curl -sS", "curl -sS --noproxy '*'")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+paste).CombinedOutput()
	if err != nil {
		t.Errorf("the pasted commands failed: %v\n%s", err, out)
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != 4 || !strings.Contains(answers[2], `"allowed":true`) || !strings.Contains(answers[3], `"allowed":false`) {
		t.Errorf("the pasted commands answered:\n%s\nlog:\n%s", out, log.String())
	}

	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(30*time.Second, func() { _ = server.Process.Kill() })
	defer kill.Stop()
	if err := server.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	if !strings.Contains(log.String(), "draining") || !strings.Contains(log.String(), "stopped") {
		t.Errorf("log:\n%s", log.String())
	}
}

// section is the commands of a section of the README, up to the next one of its
// level.
func section(t *testing.T, readme, title string) string {
	t.Helper()
	_, text, found := strings.Cut(readme, "\n## "+title+"\n")
	if !found {
		t.Fatalf("the README has no section %q", title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var script strings.Builder
	for i, block := range strings.Split(text, "```") {
		if commands, ok := strings.CutPrefix(block, "sh\n"); ok && i%2 == 1 {
			script.WriteString(commands)
		}
	}
	return script.String()
}

// TestReadme pastes the commands of the README.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, target := range map[string]string{"stonetown": self, "examples": examples} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	paste := func(script string) string {
		t.Helper()
		script = strings.NewReplacer("curl -sS", "curl -sS --noproxy '*'", "bin/stonetown", "./stonetown").Replace(script)
		shell := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+script)
		shell.Dir = dir
		shell.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1")
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Errorf("the commands failed: %v\n%s", err, out)
		}
		return string(out)
	}

	out := paste(section(t, readme, "Five minutes with curl"))
	var answers []string
	for line := range strings.Lines(out) {
		for _, answer := range regexp.MustCompile(`"allowed":(true|false)|"error":"(\w+)"`).FindAllStringSubmatch(line, -1) {
			answers = append(answers, answer[1]+answer[2])
		}
	}
	// Bob through his group; Eve, herself, the document but not the folder; Eve,
	// banned; Cid from the office, and from nobody knows where; Dan, an auditor; an
	// application that may not call an API, before it may.
	if want := []string{"true", "true", "false", "false", "true", "condition_context_missing", "true", "invalid_target"}; !slices.Equal(answers, want) {
		t.Errorf("answers %v, want %v\n%s", answers, want, out)
	}
	for _, part := range []string{`"plans/q1 draft"`, `"consistency_token"`, `"next_cursor":null`, `"slug":"auditors"`, `"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"`} {
		if !strings.Contains(out, part) {
			t.Errorf("no answer has %s", part)
		}
	}

	out = paste(section(t, readme, "From the terminal"))
	for _, part := range []string{"allowed\n", "folder:2026#owner@user:ann\n", "from_office", "relation.bulk_applied"} {
		if !strings.Contains(out, part) {
			t.Errorf("the terminal does not show %q:\n%s", part, out)
		}
	}
	out = paste(section(t, readme, "Coming from OpenFGA or SpiceDB"))
	for _, part := range []string{"10 of 10 assertions hold", "12 of 12 assertions hold", "wrote 8 relations\nallowed\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("the terminal does not show %q:\n%s", part, out)
		}
	}
}
